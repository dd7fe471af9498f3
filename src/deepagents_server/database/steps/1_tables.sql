CREATE TABLE api_keys (
key_id TEXT NOT NULL,
owner TEXT NOT NULL,
digest TEXT NOT NULL,
created_at TEXT NOT NULL,
expires_at TEXT,
revoked_at TEXT,
PRIMARY KEY (key_id)
)

CREATE UNIQUE INDEX api_keys_by_digest ON api_keys (digest)

CREATE TABLE assistant_versions (
assistant_id TEXT NOT NULL,
version BIGINT NOT NULL,
owner TEXT DEFAULT '' NOT NULL,
graph_id TEXT NOT NULL,
name TEXT DEFAULT '' NOT NULL,
description TEXT,
config JSONB DEFAULT '{}' NOT NULL,
context JSONB DEFAULT '{}' NOT NULL,
metadata JSONB DEFAULT '{}' NOT NULL,
created_at TEXT NOT NULL,
PRIMARY KEY (assistant_id, version)
)

CREATE TABLE assistants (
assistant_id TEXT NOT NULL,
owner TEXT DEFAULT '' NOT NULL,
graph_id TEXT NOT NULL,
name TEXT DEFAULT '' NOT NULL,
description TEXT,
config JSONB DEFAULT '{}' NOT NULL,
context JSONB DEFAULT '{}' NOT NULL,
metadata JSONB DEFAULT '{}' NOT NULL,
version BIGINT DEFAULT '1' NOT NULL,
created_at TEXT NOT NULL,
updated_at TEXT NOT NULL,
PRIMARY KEY (assistant_id)
)

CREATE INDEX assistants_by_graph ON assistants (graph_id)

CREATE TABLE commands (
run_id TEXT NOT NULL,
call_id TEXT NOT NULL,
attempt BIGINT DEFAULT '0' NOT NULL,
began_at TEXT NOT NULL,
ended_at TEXT,
exit_code BIGINT,
PRIMARY KEY (run_id, call_id)
)

CREATE TABLE crons (
cron_id TEXT NOT NULL,
owner TEXT DEFAULT '' NOT NULL,
assistant_id TEXT NOT NULL,
thread_id TEXT,
schedule TEXT NOT NULL,
timezone TEXT,
payload TEXT NOT NULL,
metadata JSONB DEFAULT '{}' NOT NULL,
enabled SMALLINT DEFAULT '1' NOT NULL,
on_run_completed TEXT,
end_time TEXT,
next_run_date TEXT,
created_at TEXT NOT NULL,
updated_at TEXT NOT NULL,
PRIMARY KEY (cron_id)
)

CREATE INDEX crons_by_date ON crons (enabled, next_run_date)

CREATE INDEX crons_by_thread ON crons (thread_id)

CREATE INDEX crons_of_owner ON crons (owner)

CREATE TABLE leases (
thread_id TEXT NOT NULL,
run_id TEXT,
worker TEXT,
token BIGINT DEFAULT '0' NOT NULL,
removed_at TEXT,
PRIMARY KEY (thread_id)
)

CREATE INDEX leases_by_removal ON leases (removed_at)

CREATE INDEX leases_by_worker ON leases (worker) WHERE worker IS NOT NULL

CREATE INDEX leases_in_queue ON leases (run_id) WHERE run_id IS NOT NULL AND worker IS NULL

CREATE TABLE quotas (
owner TEXT NOT NULL,
runs BIGINT,
tokens BIGINT,
money FLOAT,
schedules BIGINT,
megabytes BIGINT,
kept_bytes BIGINT DEFAULT '0' NOT NULL,
seconds BIGINT DEFAULT '86400' NOT NULL,
began_at FLOAT DEFAULT '0' NOT NULL,
used_tokens BIGINT DEFAULT '0' NOT NULL,
used_money FLOAT DEFAULT '0' NOT NULL,
PRIMARY KEY (owner)
)

CREATE TABLE run_events (
run_id TEXT NOT NULL,
seq BIGINT NOT NULL,
events TEXT NOT NULL,
created_at TEXT NOT NULL,
PRIMARY KEY (run_id, seq)
)

CREATE INDEX run_events_by_age ON run_events (created_at)

CREATE TABLE runs (
run_id TEXT NOT NULL,
thread_id TEXT NOT NULL,
owner TEXT DEFAULT '' NOT NULL,
assistant_id TEXT NOT NULL,
graph_id TEXT NOT NULL,
status TEXT DEFAULT 'pending' NOT NULL,
metadata JSONB DEFAULT '{}' NOT NULL,
kwargs TEXT NOT NULL,
multitask_strategy TEXT DEFAULT 'enqueue' NOT NULL,
priority BIGINT DEFAULT '0' NOT NULL,
version TEXT DEFAULT '1' NOT NULL,
attempt BIGINT DEFAULT '0' NOT NULL,
cancelled TEXT,
error TEXT,
due_at TEXT NOT NULL,
created_at TEXT NOT NULL,
updated_at TEXT NOT NULL,
number BIGINT DEFAULT '0' NOT NULL,
PRIMARY KEY (run_id)
)

CREATE INDEX runs_by_age ON runs (updated_at)

CREATE INDEX runs_by_number ON runs (number)

CREATE INDEX runs_by_thread ON runs (thread_id, number)

CREATE INDEX runs_in_line ON runs (thread_id, number) WHERE status = 'pending'

CREATE INDEX runs_of_owner ON runs (owner, status)

CREATE INDEX runs_to_start ON runs (status, due_at)

CREATE TABLE threads (
thread_id TEXT NOT NULL,
owner TEXT DEFAULT '' NOT NULL,
status TEXT DEFAULT 'idle' NOT NULL,
metadata JSONB DEFAULT '{}' NOT NULL,
config JSONB DEFAULT '{}' NOT NULL,
"values" TEXT,
interrupts TEXT DEFAULT '{}' NOT NULL,
error TEXT,
created_at TEXT NOT NULL,
updated_at TEXT NOT NULL,
state_updated_at TEXT NOT NULL,
ttl_seconds BIGINT,
ttl_strategy TEXT,
thinned_at TEXT,
PRIMARY KEY (thread_id)
)

CREATE INDEX threads_by_age ON threads (updated_at)

CREATE INDEX threads_by_status ON threads (owner, status, updated_at)

CREATE INDEX threads_by_ttl ON threads (ttl_seconds)

CREATE INDEX threads_by_update ON threads (owner, updated_at)

CREATE TABLE webhooks (
run_id TEXT NOT NULL,
address TEXT NOT NULL,
body TEXT NOT NULL,
attempt BIGINT DEFAULT '0' NOT NULL,
failed BIGINT DEFAULT '0' NOT NULL,
due_at TEXT NOT NULL,
PRIMARY KEY (run_id)
)

CREATE INDEX webhooks_by_date ON webhooks (due_at)

CREATE TABLE workers (
worker_id TEXT NOT NULL,
seen_at FLOAT NOT NULL,
host TEXT DEFAULT '' NOT NULL,
slots BIGINT DEFAULT '0' NOT NULL,
PRIMARY KEY (worker_id)
)
