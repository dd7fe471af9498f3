"""What an agent keeps of the tasks that it started elsewhere."""

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
    """One task: where it runs, and what was last known of it. Times are UTC, as `YYYY-MM-DDTHH:MM:SSZ`.

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
    """What a notification is about; stands in `additional_kwargs` of its message."""

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
    """The tasks by id. They lie outside the messages, so that no compaction forgets them."""

    async_tasks: NotRequired[Tasks]


def merged_pair(known: dict[str, Any] | None, update: dict[str, Any] | None) -> dict[str, Any]:
    """Lay one mapping of tasks over another, task by task."""
    return {**(known or {}), **(update or {})}


def mapping(given: object) -> Mapping[str, Any]:
    """Take an answer of a server as a mapping, an empty one where it is none."""
    return cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else dict[str, Any]()


def is_plain_id(given: object) -> bool:
    """Tell whether something can be an id, which stands in addresses and in what the model reads."""
    return isinstance(given, str) and _PLAIN_ID.fullmatch(given) is not None


def now() -> str:
    """Return the time as records hold it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def changed(task: AsyncTask, status: str, run_id: str) -> AsyncTask:
    """Return a record as of now; it counts as updated where something about it is new."""
    moment = now()
    new = (status, run_id) != (task["status"], task["run_id"])
    updated = moment if new else task["last_updated_at"]
    record: AsyncTask = {**task, "status": status, "run_id": run_id}
    return {**record, "last_checked_at": moment, "last_updated_at": updated}
