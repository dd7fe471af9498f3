"""Define the state that an agent keeps about its asynchronous tasks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final, NotRequired, cast

from langchain.agents import AgentState
from typing_extensions import TypedDict

from deepagents._state.delta_channels import SNAPSHOT_AFTER, GrowingChannel
from deepagents._state.schema import Sharing, merge_latest

TASKS: Final = "async_tasks"
EVENT: Final = "deepagents_notification"
PARENT: Final = "deepagents_parent"
UNFINISHED: Final = frozenset({"pending", "running", "waiting"})
FINISHED: Final = frozenset({"success", "error", "timeout", "cancelled", "interrupted"})
_PLAIN_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")


class AsyncTask(TypedDict):
    """One task: where it runs and what was last known of it. Times are UTC, as `YYYY-MM-DDTHH:MM:SSZ`.

    `run_id` is empty while it is not known whether the task was begun.
    """

    task_id: str
    agent_name: str
    thread_id: str
    run_id: str
    superseded_run_ids: NotRequired[list[str]]
    status: str
    created_at: str
    last_checked_at: str
    last_updated_at: str


class TaskEvent(TypedDict):
    """The task that a notification is about; stands in `additional_kwargs` of its message."""

    task_id: str
    agent_name: str
    status: str
    run_id: NotRequired[str]


Tasks = Annotated[
    dict[str, AsyncTask],
    GrowingChannel(merge_latest, snapshot_frequency=SNAPSHOT_AFTER),
    Sharing(down=False),
]


class AsyncSubAgentState(AgentState[Any]):
    """The tasks by id. They stand outside the messages, so compaction does not forget them."""

    async_tasks: NotRequired[Tasks]


def as_mapping(value: object) -> Mapping[str, Any]:
    """Return a server's answer as a mapping, an empty one when it is something else."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else dict[str, Any]()


def is_plain_id(value: object) -> bool:
    """Return whether a value can be an id: ids stand in URLs and in text that the model reads."""
    return isinstance(value, str) and _PLAIN_ID.fullmatch(value) is not None


def new_task(agent_name: str, thread_id: str, run_id: str, status: str) -> AsyncTask:
    """Make the record of a task that starts now; its id is the id of its thread."""
    now = _now()
    return {
        "task_id": thread_id,
        "agent_name": agent_name,
        "thread_id": thread_id,
        "run_id": run_id,
        "status": status,
        "created_at": now,
        "last_checked_at": now,
        "last_updated_at": now,
    }


def update_task(task: AsyncTask, status: str, run_id: str) -> AsyncTask:
    """Return the record as checked now, and as updated now if its status or run is new."""
    now = _now()
    is_new = (status, run_id) != (task["status"], task["run_id"])
    updated = now if is_new else task["last_updated_at"]
    record: AsyncTask = {**task, "status": status, "run_id": run_id}
    return {**record, "last_checked_at": now, "last_updated_at": updated}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
