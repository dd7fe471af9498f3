"""Two hundred tools of ten servers, as offices have them, and twenty questions that need one of them each.

The questions were written before the search was tried on them.
"""

from __future__ import annotations

from typing import Any, Final

from langchain_core.tools import BaseTool, StructuredTool

_TOOLS: Final = """
forge
create_issue | Open a new issue in a repository. | repository, title, body, labels
list_issues | List the issues of a repository, by state and label. | repository, state, label, page
close_issue | Close an issue and say why. | repository, number, reason
comment_on_issue | Add a comment to an issue or a pull request. | repository, number, body
assign_issue | Set who is responsible for an issue. | repository, number, user
create_pull_request | Propose to merge a branch into another one. | repository, source, target, title, body
list_pull_requests | List the pull requests of a repository. | repository, state, author, page
review_pull_request | Approve a pull request, or request changes. | repository, number, verdict, body
merge_pull_request | Merge a pull request. | repository, number, method
get_diff | Return the changed lines of a pull request or a commit. | repository, reference
list_commits | List the commits of a branch, newest first. | repository, branch, since, page
create_branch | Make a branch from a commit. | repository, name, commit
delete_branch | Remove a branch that is merged. | repository, name
read_blob | Return the content of a file at a commit. | repository, path, commit
search_code | Find source files that contain a text. | query, repository, language
list_workflow_runs | List the runs of the build pipeline and how they ended. | repository, branch, status
rerun_workflow | Run a failed build again. | repository, run_id
get_workflow_log | Return the log of a job of the build pipeline. | repository, run_id, job
create_release | Publish a version with notes and files. | repository, tag, notes
list_contributors | List who has written how much of a repository. | repository
calendar
list_events | List the events of a calendar between two dates. | calendar, start, end
create_event | Put a meeting into a calendar and invite people. | calendar, title, start, end, attendees
update_event | Move a meeting to another time, or change its title. | event_id, title, start, end
cancel_event | Call off a meeting and tell those who are invited. | event_id, message
find_free_time | Find when several people are all free. | attendees, minutes, earliest, latest
respond_to_invitation | Accept or decline an invitation. | event_id, answer
list_calendars | List the calendars that you may see. |
share_calendar | Let another person see a calendar. | calendar, person, access
book_room | Reserve a meeting room. | room, start, end
list_rooms | List meeting rooms, how many seats they have, and whether they have a screen. | building, seats
create_reminder | Be reminded at a time. | text, time
list_reminders | List the reminders that are still to come. |
delete_reminder | Forget a reminder. | reminder_id
set_working_hours | Set on which hours of which days you work. | days, start, end
set_out_of_office | Answer all mail and invitations with a note while you are away. | start, end, note
get_holidays | List the public holidays of a country. | country, year
convert_time_zone | Convert a time from one zone to another. | time, source_zone, target_zone
list_attendees | List who comes to a meeting, and who has not answered. | event_id
attach_to_event | Attach a document to a meeting. | event_id, document
export_calendar | Write a calendar to an ICS file. | calendar, start, end
mail
send_message | Send an email. | to, subject, body, cc
reply_to_message | Answer an email. | message_id, body, reply_all
forward_message | Pass an email on to someone else. | message_id, to, note
search_messages | Search the mailbox by sender, subject, words and dates. | query, sender, since, until
read_message | Return an email with its headers and text. | message_id
download_attachment | Save an attachment of an email. | message_id, name
move_message | Move an email to another folder. | message_id, folder
delete_message | Put an email into the bin. | message_id
mark_as_read | Mark emails as read or unread. | message_ids, read
create_folder | Make a folder in the mailbox. | name, parent
list_folders | List the folders of the mailbox with the number of unread emails. |
create_filter | Sort incoming emails by a rule. | condition, action
delete_filter | Remove a rule for incoming emails. | filter_id
create_draft | Write an email without sending it. | to, subject, body
list_drafts | List emails that were not sent yet. |
block_sender | Take no more emails from an address. | address
unsubscribe | Leave a mailing list. | message_id
list_contacts | Search the address book. | query
add_contact | Add a person to the address book. | name, address, phone
set_signature | Set the lines that end each email. | text
cluster
list_pods | List the pods of a namespace and their state. | namespace, selector
get_pod_logs | Return the last lines that a pod has logged. | namespace, pod, container, lines
delete_pod | Delete a pod, so that it is started anew. | namespace, pod
exec_in_pod | Run a command in a container. | namespace, pod, command
list_deployments | List deployments with their images and replicas. | namespace
scale_deployment | Change how many replicas a deployment has. | namespace, deployment, replicas
restart_deployment | Replace all pods of a deployment, one after the other. | namespace, deployment
rollback_deployment | Return a deployment to an earlier revision. | namespace, deployment, revision
set_image | Let a deployment use another image. | namespace, deployment, container, image
list_services | List services, their ports and addresses. | namespace
list_nodes | List the machines of the cluster, their load and capacity. |
drain_node | Move all work away from a machine. | node
cordon_node | Let no new work be started on a machine. | node
list_config_maps | List configuration maps. | namespace
update_config_map | Change a value of a configuration map. | namespace, name, key, value
list_secrets | List the names of secrets, without their values. | namespace
create_namespace | Make a namespace. | name
list_cluster_events | List what happened lately: failed starts, evictions, full disks. | namespace, since
get_resource_usage | Return how much processor time and memory pods use. | namespace
apply_manifest | Create or change resources from YAML. | manifest, namespace
database
run_query | Run a SELECT statement and return the rows. | sql, limit
explain_query | Return the plan of a statement: which indexes it uses and what it costs. | sql
list_tables | List the tables of a schema with their sizes. | schema
describe_table | Return the columns, keys and indexes of a table. | table
list_schemas | List the schemas of a database. |
create_index | Create an index for columns of a table. | table, columns, unique
drop_index | Drop an index. | name
list_slow_statements | List the statements that took longest. | since, limit
list_locks | List which sessions wait for which locks. |
kill_session | End a session of the database. | pid
create_backup | Back up a database. | database, destination
restore_backup | Restore a database from a backup. | backup_id, database
list_backups | List backups with their age and size. | database
vacuum_table | Free the space of deleted rows. | table
list_roles | List the roles and what they may do. |
grant_privilege | Allow a role to read or write a table. | role, table, privilege
revoke_privilege | Take a right away from a role. | role, table, privilege
export_table | Write a table to a CSV file. | table, path
import_csv | Load a CSV file into a table. | table, path
get_replication_lag | Return how far a replica is behind. | replica
shop
search_products | Search the catalogue. | query, category, page
get_product | Return price, stock and text of a product. | sku
update_price | Change the price of a product. | sku, price, currency
update_stock | Set how many pieces of a product are in a warehouse. | sku, warehouse, quantity
create_order | Place an order for a customer. | customer_id, items, address
get_order | Return an order and where its parcel is. | order_id
list_orders | List the orders of a customer. | customer_id, state
cancel_order | Cancel an order that was not sent yet. | order_id, reason
refund_order | Pay money back for an order. | order_id, amount, reason
create_return_label | Make a label with which a customer sends goods back. | order_id
track_parcel | Say where a parcel is. | tracking_number
create_coupon | Make a discount code. | code, percent, valid_until
disable_coupon | Let a discount code be valid no more. | code
list_reviews | List what customers wrote about a product. | sku, stars
answer_review | Write an answer below a review. | review_id, text
get_customer | Return the name and addresses of a customer. | customer_id
merge_customers | Join two records of one customer. | keep_id, drop_id
list_abandoned_carts | List carts that were filled and not paid. | since
get_sales_report | Return turnover by day, product or country. | start, end, group_by
set_tax_rate | Set the value-added tax of a country. | country, percent
chat
post_message | Write into a channel. | channel, text
reply_in_thread | Answer below a message in a channel. | channel, thread, text
send_direct_message | Write to one person. | user, text
list_channels | List the channels and what they are about. | archived
create_channel | Open a channel. | name, private, topic
archive_channel | Close a channel; what was written stays. | channel
invite_to_channel | Add people to a channel. | channel, users
search_history | Search what was written. | query, channel, author, since
add_reaction | React to a message with an emoji. | channel, message, emoji
pin_message | Keep a message at the top of a channel. | channel, message
upload_snippet | Share a piece of code or a file. | channel, content, title
schedule_message | Write into a channel later. | channel, text, time
edit_message | Change a message that you wrote. | channel, message, text
remove_message | Take a message back. | channel, message
list_members | List who is in a channel. | channel
get_presence | Say whether a person is active or away. | user
set_status | Say what you are doing, with an emoji. | text, emoji, until
create_poll | Ask a channel to choose between answers. | channel, question, options
list_user_groups | List groups of people that can be mentioned together. |
mute_channel | Hear nothing of a channel for some time. | channel, until
money
create_invoice | Bill a customer. | customer, items, due_date
send_invoice | Send an invoice to the customer. | invoice_id
list_invoices | List invoices, paid, open or overdue. | status, customer, since
record_payment | Note that an invoice was paid. | invoice_id, amount, date
void_invoice | Make an invoice invalid. | invoice_id, reason
send_payment_reminder | Remind a customer of an overdue invoice. | invoice_id, level
create_expense | Hand in what you paid for the company. | amount, currency, category, receipt
approve_expense | Approve an expense of an employee. | expense_id
list_expenses | List expenses by employee and state. | employee, status
get_balance | Return the balance of a bank account. | account
list_transactions | List what went in and out of a bank account. | account, start, end
transfer_money | Send money from an account to another. | source, target, amount, text
get_exchange_rate | Return what a currency costs in another one. | base, quote, date
create_budget | Plan how much a department may spend. | department, year, amount
get_budget_report | Compare what was planned with what was spent. | department, year
run_payroll | Pay the salaries of a month. | month
get_payslip | Return the payslip of an employee. | employee, month
export_ledger | Export all bookings for the accountant. | start, end, format
list_suppliers | List companies that we buy from. | query
pay_bill | Pay a bill of a supplier. | bill_id, account
staff
get_employee | Return the post, team and manager of an employee. | name
list_team | List the members of a team. | team
request_leave | Ask for days off. | start, end, kind
approve_leave | Approve days off of an employee. | request_id
get_leave_balance | Return how many days of vacation are left. | employee, year
list_absences | List who is away on which days, ill or on vacation. | team, start, end
create_job_posting | Publish an open position. | title, team, text, location
list_candidates | List who applied for a position. | posting_id, stage
move_candidate | Move an applicant to the next stage. | candidate_id, stage
schedule_interview | Find a time for an interview and invite the applicant. | candidate_id, interviewers
record_feedback | Write down what you thought of an applicant. | candidate_id, rating, text
make_offer | Offer a position and a salary to an applicant. | candidate_id, salary, start
onboard_employee | Prepare accounts and devices for a new colleague. | name, team, start
offboard_employee | Close the accounts of a colleague who leaves. | name, last_day
list_trainings | List courses that can be booked. | topic
book_training | Register an employee for a course. | training_id, employee
get_on_call | Say who is on call for a service, and until when. | service
swap_on_call | Let two people swap their on-call shifts. | service, first, second
create_survey | Ask employees questions without names. | title, questions
get_org_chart | Return who reports to whom. | root
watch
query_metrics | Return the values of a metric over time. | metric, start, end, step
list_metrics | List the metrics that are collected. | prefix
search_logs | Search log lines of all services. | query, service, since, limit
list_alerts | List alerts that are firing. | severity, service
silence_alert | Mute an alert for some time. | alert_id, minutes, comment
acknowledge_alert | Say that you look after an alert. | alert_id
create_alert_rule | Define when to raise an alarm. | metric, threshold, minutes, severity
delete_alert_rule | Remove the definition of an alarm. | rule_id
list_dashboards | List dashboards. | tag
create_dashboard | Make a dashboard of charts. | title, charts
render_chart | Draw a chart of a metric as a picture. | metric, start, end
get_trace | Return the spans of a request through all services. | trace_id
find_slow_requests | List the requests that took longest. | service, since, limit
get_error_rate | Return the share of requests that fail. | service, since
list_incidents | List incidents, open and past. | state, since
open_incident | Declare an incident and page those who are responsible. | title, severity, service
update_incident | Write what is known of an incident now. | incident_id, text, state
write_postmortem | Start the report on an incident from what happened when. | incident_id
get_uptime | Return for how long a service was reachable. | service, month
check_certificate | Say when the TLS certificate of a host expires. | host
"""

QUESTIONS: Final = {
    "report a bug as an issue on the forge": "create_issue",
    "why did the build fail, I need its log": "get_workflow_log",
    "merge the pull request": "merge_pull_request",
    "when are Anna and Tom both free for half an hour": "find_free_time",
    "reserve a room for the meeting": "book_room",
    "move the meeting to tomorrow": "update_event",
    "forward this email to my boss": "forward_message",
    "find emails from the tax office": "search_messages",
    "restart the deployment of the web shop": "restart_deployment",
    "see the logs of a crashing pod": "get_pod_logs",
    "which columns does the table customers have": "describe_table",
    "what are the slowest database statements": "list_slow_statements",
    "give the customer her money back for the order": "refund_order",
    "where is the parcel": "track_parcel",
    "post a message in the channel of the team": "post_message",
    "list all overdue invoices": "list_invoices",
    "exchange rate of the euro to the yen": "get_exchange_rate",
    "how many vacation days do I have left": "get_leave_balance",
    "who is on call for payments tonight": "get_on_call",
    "when does our TLS certificate expire": "check_certificate",
}
"""What a model would look for, and the tool that it needs."""


def two_hundred(origin: str | None = "mcp") -> list[BaseTool]:
    """Make the tools; without an origin they are tools of the caller."""
    server, made = "", list[BaseTool]()
    for line in _TOOLS.strip().splitlines():
        if " | " not in line:
            server = line
            continue
        name, description, arguments = (part.strip() for part in line.split("|"))
        made.append(
            _make(server, name, description, [each for each in arguments.split(", ") if each], origin)
        )
    return made


def _make(server: str, name: str, description: str, arguments: list[str], origin: str | None) -> BaseTool:
    def run(**given: Any) -> str:
        return f"{name} did {sorted(given)}"

    properties = {
        each: {"type": "string", "description": f"The {each.replace('_', ' ')}, as the server has it."}
        for each in arguments
    }
    return StructuredTool(
        name=f"mcp__{server}__{name}" if origin else f"{server}_{name}",
        description=description,
        args_schema={"type": "object", "properties": properties, "required": arguments[:1]},
        func=run,
        metadata={"mcp": {"server": {"name": server}, "tool": {"name": name}}} if origin else None,
    )
