"""Ask how a task stands, on its server or in this process."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any, Final, TypeAlias

from deepagents._text import truncate
from deepagents.middleware.async_subagents.client import Clients, RemoteClient, Run, Thread
from deepagents.middleware.async_subagents.local import LocalClient
from deepagents.middleware.async_subagents.spec import (
    UNFINISHED,
    AsyncAgent,
    AsyncTask,
    TaskStatus,
    as_mapping,
)

TaskClient: TypeAlias = RemoteClient | LocalClient

_MAX_ERROR: Final = 4_000
_GENERIC_ERROR: Final = "The task failed; its server does not say why."
_NEVER_BEGAN: Final = "The task never began: start it again if it is still needed."


def open_client(agent: AsyncAgent, clients: Clients, seconds: float) -> TaskClient:
    """Return what answers about tasks of an agent: its server within these seconds, or this process."""
    return LocalClient(agent, clients) if agent.make else RemoteClient(agent, clients, seconds)


async def fetch_status(client: TaskClient, task: AsyncTask) -> TaskStatus:
    """Ask for the status of a task: one request while it runs, two or three when it has ended.

    Raises:
        RemoteFailure: when the server does not say.
    """
    if task["status"] == "cancelled":
        return TaskStatus("cancelled", task["run_id"])
    thread_id, run_id = task["thread_id"], task["run_id"]
    run: Run | None = await client.get_run(thread_id, run_id) if run_id else None
    # An interrupted run may have been replaced by an update, whose run is then the newest of the thread.
    if run is None or run["status"] == "interrupted":
        run = await client.get_newest_run(thread_id)
    if run is None:
        return TaskStatus("error", run_id, error=_NEVER_BEGAN)
    if run["status"] == "lost":
        return TaskStatus("interrupted", run_id)
    if run["status"] in UNFINISHED or run["status"] == "timeout":
        return TaskStatus(run["status"], run["run_id"])
    thread = await client.get_thread(thread_id)
    # A newer run is under way or has failed, and that is the one that counts.
    if run["status"] == "success" and thread.get("status") in ("busy", "error"):
        run = await client.get_newest_run(thread_id) or run
    return _combine(run, thread)


def _combine(run: Run, thread: Thread) -> TaskStatus:
    values, interrupts = as_mapping(thread.get("values")), _interrupts_of(thread)
    run_id: str = run["run_id"]
    match run["status"], thread.get("status"):
        # The protocol reports a run that stopped to ask a person as a success on an interrupted thread.
        case (("success" | "interrupted"), "interrupted") if interrupts or run["status"] == "success":
            return TaskStatus("waiting", run_id, values, interrupts)
        case "interrupted", _:
            return TaskStatus("cancelled", run_id)
        case ("pending" | "running") as status, _:
            return TaskStatus(status, run_id)
        case "success", "busy":
            return TaskStatus("running", run_id)
        case ("error", _) | (_, "error"):
            return TaskStatus("error", run_id, error=_error_of(thread))
        case status, _:
            return TaskStatus(status, run_id, values)


def _interrupts_of(thread: Thread) -> tuple[Mapping[str, Any], ...]:
    found = chain.from_iterable((thread.get("interrupts") or {}).values())
    return tuple({"id": each.get("id"), "value": each.get("value")} for each in found)


def _error_of(thread: Thread) -> str:
    given = thread.get("error")
    parts = (
        [given] if isinstance(given, str) else [as_mapping(given).get(key) for key in ("error", "message")]
    )
    return truncate(": ".join(str(part) for part in parts if part), _MAX_ERROR) or _GENERIC_ERROR
