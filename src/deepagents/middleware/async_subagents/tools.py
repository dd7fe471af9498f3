"""Define the tools for asynchronous tasks: start, check, update, cancel, list, and wait."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Literal
from uuid import uuid4

from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool
from pydantic import BaseModel, Field

from deepagents._async import as_io_call, gather_threads, seconds_left
from deepagents._values import valueclass
from deepagents.errors import ErrorCode, ToolFailure
from deepagents.middleware.async_subagents.client import Clients, RemoteFailure, make_malformed_failure
from deepagents.middleware.async_subagents.local import LocalClient, TaskClient, open_client
from deepagents.middleware.async_subagents.messages import (
    ShownMessages,
    escape,
    first_messages,
    render_status,
    run_options,
    thread_metadata,
)
from deepagents.middleware.async_subagents.spec import (
    TASKS,
    UNFINISHED,
    AsyncAgent,
    AsyncTask,
    list_agents,
    new_task,
    update_task,
)
from deepagents.tools._tool import Content, Runtime, ToolOutput, ToolSpec, make_tool

_MAX_SUPERSEDED: Final = 50
_log = logging.getLogger(__name__)

ASYNC_TASK_TOOL_DESCRIPTION: Final = """Start a task on an agent that works in the background. Returns a \
task id at once, not the result.

Agents:
{available_agents}

It starts blank: put all it needs in description. Do not wait for it or poll it: go on, or end your turn; \
its result, failure or question arrives by itself as a notification. The id is internal: do not show it to \
the user. For new instructions use update_async_task. A task that is `waiting` belongs to the user."""
ASYNC_TASK_SYSTEM_PROMPT: Final = (
    "Hand long work that you need not wait for to an agent in the background with start_async_task, then go "
    "on. How it ends is announced to you; earlier statuses in this conversation may be stale."
)
_CHECK: Final = (
    "Ask how a task stands now, and get its result if it is finished. Only when the user asks, or you cannot "
    "go on without: statuses seen earlier are stale, and ends are announced by themselves."
)
_WAIT: Final = (
    "Wait until a task ends, and get its result: when you have nothing else to do, and this answer needs it. "
    "A task that goes on after your answer is announced with the user's next message."
)
_UPDATE: Final = (
    "Give new instructions to a task; its agent keeps what it has seen. By default this interrupts what it "
    "is doing. {queueing}"
)
_CANCEL: Final = "Stop a task that is no longer needed."
_LIST: Final = (
    "List the tasks of this conversation with their present status. Use it to find ids again; statuses seen "
    "earlier are stale."
)
_ID: Final = "The id, exactly as start_async_task returned it."

WAIT_SECONDS: Final = 300

StatusFilter = Literal[
    "all", "pending", "running", "waiting", "success", "error", "timeout", "cancelled", "interrupted"
]


class StartAsyncTaskSchema(BaseModel):
    """The arguments of `start_async_task`."""

    description: str = Field(description="The task, with all the context it needs.")
    subagent_type: str = Field(description="Name of the agent.")


class CheckAsyncTaskSchema(BaseModel):
    """The arguments of `check_async_task`."""

    task_id: str = Field(description=_ID)


class WaitAsyncTaskSchema(BaseModel):
    """The arguments of `wait_async_task`."""

    task_id: str = Field(description=_ID)
    seconds: int = Field(default=WAIT_SECONDS, ge=1, le=3600, description="How long at most.")


class UpdateAsyncTaskSchema(BaseModel):
    """The arguments of `update_async_task`."""

    task_id: str = Field(description=_ID)
    message: str = Field(description="The new instructions.")


class CancelAsyncTaskSchema(BaseModel):
    """The arguments of `cancel_async_task`."""

    task_id: str = Field(description=_ID)


class ListAsyncTasksSchema(BaseModel):
    """The arguments of `list_async_tasks`."""

    status_filter: StatusFilter | None = Field(default=None, description="Only tasks that are so now.")


@valueclass
class TaskContext:
    """The agents, clients and run that one call of a tool works with."""

    agents: Mapping[str, AsyncAgent]
    clients: Clients
    runtime: Runtime
    request_seconds: float
    shown: ShownMessages | None = None

    @property
    def tasks(self) -> Mapping[str, AsyncTask]:
        """The tasks of this conversation."""
        return self.runtime.state.get(TASKS) or {}

    def find(self, task_id: str) -> tuple[AsyncTask, TaskClient]:
        """Return a task by its id, and a client for it.

        Raises:
            ToolFailure: when there is none.
        """
        task = self.tasks.get(task_id.strip())
        if task is None:
            raise ToolFailure(
                "invalid_argument",
                f"No tracked task found with id {task_id!r}. list_async_tasks lists them.",
            )
        return task, self.open_client(task["agent_name"])

    def open_client(self, name: str) -> TaskClient:
        """Return a client for an agent, with the time of one tool call.

        Raises:
            ToolFailure: for an unknown name.
        """
        agent = self.agents.get(name)
        if agent is None:
            names = ", ".join(f"`{each}`" for each in self.agents)
            raise ToolFailure(
                "unknown_subagent", f"Unknown async subagent type {name!r}; choose one of {names}"
            )
        return open_client(agent, self.clients, self.request_seconds)


async def _start(context: TaskContext, description: str, subagent_type: str) -> ToolOutput:
    client = context.open_client(subagent_type)
    agent, runtime = client.agent, context.runtime
    messages = first_messages(agent, description, runtime.state, context.shown)
    with _explain(f"Failed to launch async subagent {subagent_type!r}"):
        thread_id = await client.create_thread(str(uuid4()), thread_metadata(agent, runtime))
        if thread_id in context.tasks:
            raise make_malformed_failure()
        try:
            run = await client.create_run(thread_id, messages, run_options(agent, runtime))
        except RemoteFailure as failure:
            if failure.status is not None:
                raise
            # The run may go on without us: the task is kept with no run, and checking it finds out.
            text = (
                f"Error: it is not known whether async subagent {agent.name!r} began: {failure.text} Its "
                f"task_id is {thread_id}: check it before you start it again. [{failure.code}]"
            )
            return _output(text, new_task(agent.name, thread_id, "", "pending"), failure.code)
    text = f"Started. task_id: {thread_id}. Its result will be announced; go on without waiting."
    return _output(text, new_task(agent.name, thread_id, run["run_id"], "running"))


async def _check(context: TaskContext, task_id: str) -> ToolOutput:
    task, client = context.find(task_id)
    with _explain("Failed to get run status"):
        found = await client.status(task)
    return _output(render_status(task, found), update_task(task, found.status, found.run_id))


async def _wait(context: TaskContext, task_id: str, seconds: int = WAIT_SECONDS) -> ToolOutput:
    task, client = context.find(task_id)
    if not isinstance(client, LocalClient):
        raise ToolFailure("not_supported", f"task {task['task_id']} is on a server: its end is announced")
    left = seconds_left()
    await client.wait(task["thread_id"], seconds if left is None else min(seconds, left))
    return await _check(context, task_id)


async def _update(context: TaskContext, task_id: str, message: str) -> ToolOutput:
    task, client = context.find(task_id)
    _refuse_second_update(context.runtime, task["task_id"])
    strategy = client.agent.update_strategy
    options = {**run_options(client.agent, context.runtime), "multitask_strategy": strategy}
    with _explain(f"Failed to update async task {task['task_id']}"):
        run = await client.create_run(task["thread_id"], [{"role": "user", "content": message}], options)
    record = update_task(task, run["status"] if strategy == "enqueue" else "running", run["run_id"])
    record["superseded_run_ids"] = _list_superseded_runs(task)
    effect = (
        "It takes this up when it has finished what it is doing."
        if strategy == "enqueue"
        else "It begins anew with this."
    )
    dropped = " The question that it had for a person is dropped." if task["status"] == "waiting" else ""
    return _output(f"Updated task {task['task_id']}. {effect}{dropped}", record)


async def _cancel(context: TaskContext, task_id: str) -> ToolOutput:
    task, client = context.find(task_id)
    run_id = task["run_id"]
    # A task that waits for a person has no run that could be cancelled.
    if task["status"] != "waiting":
        with _explain("Failed to cancel run"):
            found = await client.status(task)
            if found.status not in UNFINISHED:
                text = f"Task {task['task_id']} had already ended: {found.status}."
                return _output(text, update_task(task, found.status, found.run_id))
            run_id = found.run_id
            if found.status != "waiting":
                await client.cancel_run(task["thread_id"], run_id)
        await _cancel_superseded(client, task)
    return _output(f"Cancelled task {task['task_id']}.", update_task(task, "cancelled", run_id))


async def _list(context: TaskContext, status_filter: str | None = None) -> ToolOutput:
    async def ask(task: AsyncTask) -> tuple[str, str] | None:
        # Nothing is recorded here: a task that has ended is still announced with its result.
        try:
            found = await context.open_client(task["agent_name"]).status(task)
        except ToolFailure as failure:
            _log.warning("the status of a task of %r is not known: %s", task["agent_name"], failure.text)
            return None
        return task["task_id"], found.status

    status = {task_id: task["status"] for task_id, task in context.tasks.items()}
    unfinished = [task for task in context.tasks.values() if task["status"] in UNFINISHED]
    polls = [as_io_call(lambda task=task: ask(task)) for task in unfinished]
    status.update(filter(None, await gather_threads(polls)))
    lines = [
        f"- task_id: {task['task_id']}, agent: {task['agent_name']}, status: {status[task_id]}, "
        f"started: {task['created_at']}"
        for task_id, task in context.tasks.items()
        if status_filter in (None, "all", status[task_id])
    ]
    if not lines:
        filtered = f" with status {status_filter!r}" if status else ""
        return ToolOutput(f"No async subagent tasks tracked{filtered}.")
    return ToolOutput(escape("\n".join([f"{len(lines)} tracked task(s):", *lines])))


def _output(text: Content, task: AsyncTask, code: ErrorCode | None = None) -> ToolOutput:
    return ToolOutput(text, update={TASKS: {task["task_id"]: task}}, code=code)


@contextmanager
def _explain(what: str) -> Generator[None]:
    """Say first what failed."""
    try:
        yield
    except ToolFailure as failure:
        raise ToolFailure(failure.code, f"{what}: {failure.text}") from None


def _list_superseded_runs(task: AsyncTask) -> list[str]:
    """List the runs that an update replaces: all whose end has not been seen."""
    earlier = task.get("superseded_run_ids", []) if task["status"] in UNFINISHED else []
    return [*earlier, *filter(None, [task["run_id"]])][-_MAX_SUPERSEDED:]


def _refuse_second_update(runtime: Runtime, task_id: str) -> None:
    """Refuse a second update of a task in one turn: it would cancel the first one."""
    messages: Sequence[Any] = runtime.state.get("messages") or ()
    last = next((each for each in reversed(messages) if isinstance(each, AIMessage)), None)
    same = [
        call["id"]
        for call in (last.tool_calls if last else ())
        if call["name"] == "update_async_task" and str(call["args"].get("task_id")).strip() == task_id
    ]
    if runtime.tool_call_id in same[1:]:
        raise ToolFailure(
            "invalid_argument",
            f"task {task_id} is already being updated in this turn; put all instructions in one update",
        )


async def _cancel_superseded(client: TaskClient, task: AsyncTask) -> None:
    """Cancel runs that an update left waiting, as far as they still exist."""
    for run_id in reversed(task.get("superseded_run_ids", [])):
        try:
            await client.cancel_run(task["thread_id"], run_id)
        except RemoteFailure as failure:
            if failure.status != 404:
                _log.warning("an earlier run of %r was not cancelled: %s", client.agent.name, failure.text)


TOOLS: Final = (
    ToolSpec("start_async_task", ASYNC_TASK_TOOL_DESCRIPTION, StartAsyncTaskSchema, _start),
    ToolSpec("check_async_task", _CHECK, CheckAsyncTaskSchema, _check, shows_delegated_work=True),
    ToolSpec("update_async_task", _UPDATE, UpdateAsyncTaskSchema, _update),
    ToolSpec("cancel_async_task", _CANCEL, CancelAsyncTaskSchema, _cancel),
    ToolSpec("list_async_tasks", _LIST, ListAsyncTasksSchema, _list),
)


WAIT: Final = ToolSpec("wait_async_task", _WAIT, WaitAsyncTaskSchema, _wait, shows_delegated_work=True)
"""Offered where an agent works in this process: nothing else would wake the main agent when that ends."""


def make_tools(agents: Mapping[str, AsyncAgent], context: Callable[[Runtime], TaskContext]) -> list[BaseTool]:
    """Make the tools over these agents."""
    queueing = [agent.name for agent in agents.values() if agent.update_strategy == "enqueue"]
    waits = f"These finish that first: {', '.join(queueing)}." if queueing else ""

    def describe(spec: ToolSpec) -> str:
        listed = spec.description.replace("{available_agents}", list_agents(agents))
        return listed.replace("{queueing}", waits).strip()

    waiting = [WAIT] if any(agent.make for agent in agents.values()) else []
    return [make_tool(spec, context, describe(spec)) for spec in [*TOOLS, *waiting]]
