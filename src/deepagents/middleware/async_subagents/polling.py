"""Poll unfinished tasks: rarely, together and briefly, so that no server holds up a run."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final

from langchain_core.messages import HumanMessage
from langgraph.errors import GraphBubbleUp

from deepagents._async import as_io_call, gather_threads
from deepagents.middleware.async_subagents.client import (
    Clients,
    RemoteClient,
    RemoteFailure,
    TaskStatus,
    TimeBudget,
    fetch_status,
    make_malformed_failure,
)
from deepagents.middleware.async_subagents.messages import announce_status
from deepagents.middleware.async_subagents.spec import RemoteAgent
from deepagents.middleware.async_subagents.state import UNFINISHED, AsyncTask, update_task

MAX_AT_ONCE: Final = 8
POLL_BUDGET: Final = 2.0
JUST_NOW: Final = 0.5
_FIRST_PAUSE: Final = 15.0
_LONGEST_PAUSE: Final = 300.0
_MAX_REMEMBERED: Final = 10_000
_LOST: Final = (
    "Its server does not know this task any more; it may have been restarted. Start the task again if it is "
    "still needed."
)
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class PollSchedule:
    """Decide which tasks may be polled now. It lives in memory; after a restart everything may be polled.

    A server that fails is left alone for 15 s, then for twice as long each time, at most 5 minutes.
    """

    interval: float
    clock: Callable[[], float] = time.monotonic
    _polled: dict[str, float] = field(default_factory=dict[str, float])
    _pauses: dict[Hashable, tuple[int, float]] = field(default_factory=dict[Hashable, tuple[int, float]])
    _lock: Any = field(default_factory=Lock)

    def choose(self, servers: Mapping[str, Hashable], within: float | None = None) -> list[str]:
        """Choose from tasks, given with their servers, those that were polled longest ago.

        A task is due when it was not polled for `within` seconds; default the interval of this schedule.
        """
        now, least = self.clock(), self.interval if within is None else min(within, self.interval)
        with self._lock:
            age = {task_id: now - self._polled.get(task_id, -math.inf) for task_id in servers}
            due = [
                task_id
                for task_id, server in servers.items()
                if age[task_id] >= least and now >= self._pauses.get(server, (0, 0.0))[1]
            ]
            chosen = sorted(due, key=age.__getitem__, reverse=True)[:MAX_AT_ONCE]
            for task_id in chosen:
                # Noted before there is an answer, so that parallel runs do not ask about it as well.
                self._note(task_id, now)
            return chosen

    def note_polled(self, task_id: str, seconds_ago: float = 0.0) -> None:
        """Note that a task was asked about, or given work, outside of a poll."""
        with self._lock:
            self._note(task_id, self.clock() - seconds_ago)

    def note_answer(self, server: Hashable) -> None:
        """Note that a server answered: it is not left alone any more."""
        with self._lock:
            self._pauses.pop(server, None)

    def note_failure(self, server: Hashable) -> None:
        """Note that a server failed, once for all polls of one round."""
        now = self.clock()
        with self._lock:
            failures, until = self._pauses.get(server, (0, 0.0))
            if now >= until:
                # Bounded before the power is taken: a float cannot hold that of a thousand failures.
                pause = min(_FIRST_PAUSE * 2 ** min(failures, 10), _LONGEST_PAUSE)
                self._pauses[server] = failures + 1, now + pause

    def _note(self, task_id: str, at: float) -> None:
        self._polled.pop(task_id, None)
        self._polled[task_id] = at
        while len(self._polled) > _MAX_REMEMBERED:
            del self._polled[next(iter(self._polled))]


@dataclass(frozen=True, slots=True)
class TaskNews:
    """A task whose record changed, with the notification of an end or of a question to a person."""

    task: AsyncTask
    message: HumanMessage | None = None


async def poll_tasks(
    agents: Mapping[str, RemoteAgent],
    clients: Clients,
    schedule: PollSchedule,
    tasks: Mapping[str, AsyncTask],
    within: float | None = None,
) -> list[TaskNews]:
    """Return what changed about unfinished tasks; a poll that fails is made again later."""

    async def poll(task: AsyncTask) -> TaskNews | None:
        agent = agents[task["agent_name"]]
        try:
            found = await _fetch(RemoteClient(agent, clients, TimeBudget(POLL_BUDGET)), task)
        except RemoteFailure as failure:
            if failure.status == 404:
                return _as_news(task, TaskStatus("error", task["run_id"], error=_LOST))
            # That is our own refusal to block without a url, and no failure of the server.
            if failure.code != "not_supported":
                schedule.note_failure(agent.server)
                _log.warning("a task of async subagent %r could not be polled: %s", agent.name, failure.text)
            return None
        schedule.note_answer(agent.server)
        return found

    servers = {
        task["task_id"]: agents[task["agent_name"]].server
        for task in tasks.values()
        if task["status"] in UNFINISHED and task["agent_name"] in agents
    }
    due = schedule.choose(servers, within) if servers else []
    polls = [as_io_call(lambda task=tasks[task_id]: poll(task)) for task_id in due]
    return [news for news in await gather_threads(polls) if news] if polls else []


async def _fetch(client: RemoteClient, task: AsyncTask) -> TaskNews | None:
    """Ask about a task; an answer so odd that it cannot be shown counts as a failure of its server."""
    try:
        return _as_news(task, await fetch_status(client, task))
    except (RemoteFailure, GraphBubbleUp):
        raise
    except Exception as error:
        raise make_malformed_failure(type(error).__name__) from error


def _as_news(task: AsyncTask, found: TaskStatus) -> TaskNews | None:
    if (found.status, found.run_id) == (task["status"], task["run_id"]):
        return None
    record = update_task(task, found.status, found.run_id)
    runs_on = found.status in ("pending", "running")
    return TaskNews(record, None if runs_on else announce_status(record, found))
