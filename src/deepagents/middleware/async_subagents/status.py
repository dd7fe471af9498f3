"""How a task stands, worked out from what its server says of its run and of its thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Final, cast

from deepagents._text import truncate
from deepagents.middleware.async_subagents.client import Remote, malformed
from deepagents.middleware.async_subagents.privacy import without_secrets
from deepagents.middleware.async_subagents.state import UNFINISHED, AsyncTask, is_plain_id, mapping

Answer = Mapping[str, Any]

_RUN_STATUSES: Final = frozenset({"pending", "running", "error", "success", "timeout", "interrupted"})
_GENERIC_ERROR: Final = "The task failed; its server does not say why."
_NEVER_BEGAN: Final = "The task never began: start it again if it is still needed."
_MOST_OF_AN_ERROR: Final = 4_000


@dataclass(frozen=True, slots=True)
class Standing:
    """What a server says of a task now: its status and run, what it holds, and why it failed."""

    status: str
    run_id: str
    values: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    interrupts: tuple[Answer, ...] = ()
    error: str = ""


async def observe(remote: Remote, task: AsyncTask) -> Standing:
    """Ask how a task stands: one question while it runs, two where there may be a result.

    Raises:
        RemoteFailure: when the server does not say.
    """
    if task["status"] == "cancelled":
        return Standing("cancelled", task["run_id"])
    run = await _run(remote, task)
    if run["status"] == "interrupted":
        run = await _newest(remote, task)
    if run["status"] == "none":
        return Standing("error", run["run_id"], error=_NEVER_BEGAN)
    if run["status"] in UNFINISHED or run["status"] == "timeout":
        return Standing(run["status"], run["run_id"])
    thread = await _thread(remote, task)
    if run["status"] == "success" and thread.get("status") in ("busy", "error"):
        run = await _newest(remote, task)
    standing = _weighed(run, thread)
    return replace(standing, error=without_secrets(remote.agent, standing.error))


async def newest_run(remote: Remote, thread_id: str) -> Answer | None:
    """Return the run of a thread that was made last, `None` where there is none."""
    runs: Any = await remote.ask(lambda client: client.runs.list(thread_id, limit=1))
    if not isinstance(runs, list):
        raise malformed("a list of runs")
    found = cast("list[Any]", runs)
    return as_run(found[0]) if found else None


def as_run(answer: Any) -> Answer:
    """Check that an answer is a run.

    Raises:
        RemoteFailure: when it is not.
    """
    run = mapping(answer)
    status: Any = run.get("status")
    if not is_plain_id(run.get("run_id")) or not isinstance(status, str) or status not in _RUN_STATUSES:
        raise malformed("a run")
    return run


async def _run(remote: Remote, task: AsyncTask) -> Answer:
    if not task["run_id"]:
        return await _newest(remote, task)
    thread_id, run_id = task["thread_id"], task["run_id"]
    return as_run(await remote.ask(lambda client: client.runs.get(thread_id, run_id)))


async def _newest(remote: Remote, task: AsyncTask) -> Answer:
    newest = await newest_run(remote, task["thread_id"])
    return newest or {"status": "none", "run_id": task["run_id"]}


async def _thread(remote: Remote, task: AsyncTask) -> Answer:
    thread: Any = await remote.ask(lambda client: client.threads.get(task["thread_id"]))
    if not isinstance(thread, Mapping):
        raise malformed("a thread")
    return cast("Answer", thread)


def _weighed(run: Answer, thread: Answer) -> Standing:
    values: Any = thread.get("values")
    kept = mapping(values)
    waiting = _interrupts(thread)
    run_id: str = run["run_id"]
    match run["status"], thread.get("status"):
        case (("success" | "interrupted"), "interrupted") if waiting or run["status"] == "success":
            return Standing("waiting", run_id, kept, waiting)
        case "interrupted", _:
            return Standing("cancelled", run_id)
        case ("pending" | "running") as status, _:
            return Standing(status, run_id)
        case "success", "busy":
            return Standing("running", run_id)
        case ("error", _) | (_, "error"):
            return Standing("error", run_id, error=_error(thread))
        case status, _:
            return Standing(status, run_id, kept)


def _interrupts(thread: Answer) -> tuple[Answer, ...]:
    given: Any = thread.get("interrupts")
    by_task = mapping(given)
    lists = [cast("list[object]", each) for each in by_task.values() if isinstance(each, list)]
    found = [mapping(each) for each in chain.from_iterable(lists)]
    return tuple({"id": each.get("id"), "value": each.get("value")} for each in found if each)


def _error(thread: Answer) -> str:
    """Say why a task failed, as its server says it."""
    given: Any = thread.get("error")
    if isinstance(given, Mapping):
        parts = [cast("Answer", given).get(key) for key in ("error", "message")]
        given = ": ".join(part for part in parts if isinstance(part, str) and part)
    return truncate(given, _MOST_OF_AN_ERROR) if isinstance(given, str) and given else _GENERIC_ERROR
