"""The five tools for tasks elsewhere: start, check, update, cancel, list."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final

from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool

from deepagents._async import IOCall, as_io_call, gather_threads
from deepagents.errors import ToolFailure
from deepagents.middleware.async_subagents import schemas
from deepagents.middleware.async_subagents.answers import escaped, report
from deepagents.middleware.async_subagents.client import (
    Deadline,
    Remote,
    RemoteFailure,
)
from deepagents.middleware.async_subagents.office import Office, failed
from deepagents.middleware.async_subagents.pace import MOST_AT_ONCE
from deepagents.middleware.async_subagents.requests import run_options
from deepagents.middleware.async_subagents.spec import RemoteAgent, listed
from deepagents.middleware.async_subagents.starting import start
from deepagents.middleware.async_subagents.state import TASKS, UNFINISHED, AsyncTask, changed
from deepagents.middleware.async_subagents.status import Standing, as_run, newest_run, observe
from deepagents.tools._tool import Runtime, ToolOutput, ToolSpec, make_tool

_MOST_SUPERSEDED: Final = 50
_log = logging.getLogger(__name__)


async def _check(office: Office, task_id: str) -> ToolOutput:
    task = office.task(task_id)
    remote = office.remote(task["agent_name"])
    try:
        standing = await observe(remote, task)
    except ToolFailure as failure:
        raise failed("Failed to get run status", failure) from None
    office.pace.asked(task["task_id"])
    record = changed(task, standing.status, standing.run_id)
    return ToolOutput(report(task, standing), update={TASKS: {task["task_id"]: record}})


async def _update(office: Office, task_id: str, message: str) -> ToolOutput:
    task = office.task(task_id)
    remote = office.remote(task["agent_name"])
    agent, thread_id = remote.agent, task["thread_id"]
    _refuse_second(office.runtime, task["task_id"])
    options = run_options(agent, office.runtime)
    try:
        answer = await remote.ask(
            lambda client: client.runs.create(
                thread_id,
                assistant_id=agent.graph_id,
                input={"messages": [{"role": "user", "content": message}]},
                multitask_strategy=agent.update_strategy,
                **options,
            )
        )
        run = as_run(answer)
    except ToolFailure as failure:
        raise failed(f"Failed to update async task {task['task_id']}", failure) from None
    office.pace.begun(task["task_id"])
    queued = agent.update_strategy == "enqueue"
    record = changed(task, run["status"] if queued else "running", run["run_id"])
    record["superseded_run_ids"] = _superseded(task)
    dropped = " The question that it had for a person is dropped." if task["status"] == "waiting" else ""
    done = (
        "It takes this up when it has finished what it is doing." if queued else "It begins anew with this."
    )
    return ToolOutput(
        f"Updated task {task['task_id']}. {done}{dropped}", update={TASKS: {task["task_id"]: record}}
    )


def _superseded(task: AsyncTask) -> list[str]:
    """List the runs that an update leaves behind: all that have not been heard of since the last end."""
    earlier = task.get("superseded_run_ids", []) if task["status"] in UNFINISHED else []
    return [*earlier, *filter(None, [task["run_id"]])][-_MOST_SUPERSEDED:]


def _refuse_second(runtime: Runtime, task_id: str) -> None:
    asked = next((each for each in reversed(runtime.state["messages"]) if isinstance(each, AIMessage)), None)
    same = [
        call["id"]
        for call in (asked.tool_calls if asked else ())
        if call["name"] == "update_async_task" and str(call["args"].get("task_id")).strip() == task_id
    ]
    if runtime.tool_call_id in same[1:]:
        raise ToolFailure(
            "invalid_argument",
            f"task {task_id} is already being updated in this turn; put all instructions in one update",
        )


async def _cancel(office: Office, task_id: str) -> ToolOutput:
    task = office.task(task_id)
    remote = office.remote(task["agent_name"])
    run_id = task["run_id"]
    if task["status"] != "waiting":
        try:
            run_id = run_id or await _only_run(remote, task)
            await _stop(remote, task["thread_id"], run_id)
        except RemoteFailure as failure:
            ended = await _ended(remote, task, failure)
            update = {TASKS: {task["task_id"]: changed(task, ended.status, ended.run_id)}}
            return ToolOutput(f"Task {task['task_id']} had already ended: {ended.status}.", update=update)
        for earlier in reversed(task.get("superseded_run_ids", [])):
            await _stop_quietly(remote, task["thread_id"], earlier)
    record = changed(task, "cancelled", run_id)
    return ToolOutput(f"Cancelled task {task['task_id']}.", update={TASKS: {task["task_id"]: record}})


async def _only_run(remote: Remote, task: AsyncTask) -> str:
    newest = await newest_run(remote, task["thread_id"])
    return newest["run_id"] if newest else ""


async def _stop(remote: Remote, thread_id: str, run_id: str) -> None:
    if run_id:
        await remote.ask(lambda client: client.runs.cancel(thread_id, run_id))


async def _stop_quietly(remote: Remote, thread_id: str, run_id: str) -> None:
    try:
        await _stop(remote, thread_id, run_id)
    except RemoteFailure as failure:
        if failure.status != 404:
            _log.warning("an earlier run of %r was not cancelled: %s", remote.agent.name, failure.text)


async def _ended(remote: Remote, task: AsyncTask, failure: RemoteFailure) -> Standing:
    """Look whether a task could not be cancelled because there was nothing left of it to cancel."""
    refusal = failed("Failed to cancel run", failure)
    if failure.status not in (400, 404, 409, 422):
        raise refusal from None
    try:
        standing = await observe(remote, task)
    except ToolFailure:
        raise refusal from None
    if standing.status in UNFINISHED:
        raise refusal
    return standing


async def _list(office: Office, status_filter: str | None = None) -> ToolOutput:
    wanted = [task for task in office.tasks.values() if status_filter in (None, "all", task["status"])]
    if not wanted:
        return ToolOutput("No async subagent tasks tracked.")
    deadline = office.deadline()
    live = [task for task in wanted if task["status"] in UNFINISHED]
    fresh: dict[str, str] = {}
    for at in range(0, len(live), MOST_AT_ONCE):
        asked = await gather_threads(
            [_refreshed(office, task, deadline) for task in live[at : at + MOST_AT_ONCE]]
        )
        fresh.update(filter(None, asked))
    lines = [_line(task, fresh.get(task["task_id"], task["status"])) for task in wanted]
    return ToolOutput("\n".join([f"{len(wanted)} tracked task(s):", *lines]))


def _refreshed(office: Office, task: AsyncTask, deadline: Deadline) -> IOCall[tuple[str, str] | None]:
    """Ask for a status, and record nothing: what has ended is still to be announced with its result."""

    async def flow() -> tuple[str, str] | None:
        try:
            standing = await observe(office.remote(task["agent_name"], deadline), task)
        except ToolFailure as failure:
            _log.warning("the status of a task of %r is not known: %s", task["agent_name"], failure.text)
            return None
        return task["task_id"], standing.status

    return as_io_call(flow)


def _line(task: AsyncTask, status: str) -> str:
    named = f"task_id: {task['task_id']}, agent: {task['agent_name']}, status: {status}"
    return escaped(f"- {named}, started: {task['created_at']}", None)


START: Final = ToolSpec(
    "start_async_task", schemas.ASYNC_TASK_TOOL_DESCRIPTION, schemas.StartAsyncTaskSchema, start
)
TOOLS: Final = (
    START,
    ToolSpec("check_async_task", schemas.CHECK, schemas.CheckAsyncTaskSchema, _check),
    ToolSpec("update_async_task", schemas.UPDATE, schemas.UpdateAsyncTaskSchema, _update),
    ToolSpec("cancel_async_task", schemas.CANCEL, schemas.CancelAsyncTaskSchema, _cancel),
    ToolSpec("list_async_tasks", schemas.LIST, schemas.ListAsyncTasksSchema, _list),
)


def tools_for(agents: Mapping[str, RemoteAgent], office: Callable[[Runtime], Office]) -> list[BaseTool]:
    """Make the five tools over these agents."""
    queueing = [agent.name for agent in agents.values() if agent.update_strategy == "enqueue"]
    waits = f"These finish that first: {', '.join(queueing)}." if queueing else ""
    return [
        make_tool(
            spec,
            office,
            spec.description.replace("{available_agents}", listed(agents))
            .replace("{queueing}", waits)
            .strip(),
        )
        for spec in TOOLS
    ]
