"""What is new about unfinished tasks: asked for rarely, all at once, and briefly."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.errors import GraphBubbleUp

from deepagents._async import IOCall, as_io_call, gather_threads
from deepagents.middleware.async_subagents.client import Clients, Deadline, Remote, RemoteFailure, malformed
from deepagents.middleware.async_subagents.notifications import announcement
from deepagents.middleware.async_subagents.pace import Pace
from deepagents.middleware.async_subagents.spec import RemoteAgent
from deepagents.middleware.async_subagents.state import UNFINISHED, AsyncTask, changed
from deepagents.middleware.async_subagents.status import Standing, observe

_LOST = (
    "Its server does not know this task any more; it may have been restarted. Start the task again if it is "
    "still needed."
)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class News:
    """A task as it is now, and what the model is told: of an end, and of a question to a person."""

    task: AsyncTask
    told: HumanMessage | None = None


@dataclass(frozen=True, slots=True)
class Poll:
    """Asks about the tasks of a conversation."""

    agents: Mapping[str, RemoteAgent]
    clients: Clients
    pace: Pace

    async def news(self, tasks: Mapping[str, AsyncTask], *, at_the_end: bool = False) -> list[News]:
        """Return what has changed about unfinished tasks; what fails is tried again later."""
        servers = {
            task["task_id"]: self.agents[task["agent_name"]].server
            for task in tasks.values()
            if task["status"] in UNFINISHED and task["agent_name"] in self.agents
        }
        due = self.pace.choose(servers, at_the_end=at_the_end) if servers else []
        if not due:
            return []
        found = await gather_threads([self._asked(tasks[task_id]) for task_id in due])
        return [each for each in found if each]

    def _asked(self, task: AsyncTask) -> IOCall[News | None]:
        async def flow() -> News | None:
            agent = self.agents[task["agent_name"]]
            began = time.monotonic()
            remote = Remote(agent, self.clients, Deadline(self.pace.wait(agent.server)))
            try:
                news = await _new(remote, task)
            except RemoteFailure as failure:
                return self._failed(agent, task, failure)
            self.pace.answered(agent.server, time.monotonic() - began)
            return news

        return as_io_call(flow)

    def _failed(self, agent: RemoteAgent, task: AsyncTask, failure: RemoteFailure) -> News | None:
        if failure.status == 404:
            return _news(task, Standing("error", task["run_id"], error=_LOST))
        if failure.code != "not_supported":
            self.pace.failed(agent.server)
            _log.warning("a task of async subagent %r could not be polled: %s", agent.name, failure.text)
        return None


async def _new(remote: Remote, task: AsyncTask) -> News | None:
    """Ask about a task; an answer so odd that it cannot be told is a failure of its server."""
    try:
        return _news(task, await observe(remote, task))
    except (RemoteFailure, GraphBubbleUp):
        raise
    except Exception as odd:
        raise malformed(type(odd).__name__) from odd


def _news(task: AsyncTask, standing: Standing) -> News | None:
    if (standing.status, standing.run_id) == (task["status"], task["run_id"]):
        return None
    now = changed(task, standing.status, standing.run_id)
    return News(now, None if standing.status in ("pending", "running") else announcement(now, standing))


def recorded(tasks: Mapping[str, AsyncTask], event: Mapping[str, Any]) -> AsyncTask | None:
    """Return the record of a task after a notification came in, `None` where that changes nothing."""
    task = tasks.get(event["task_id"])
    if task is None:
        return None
    run_id: str = event.get("run_id") or task["run_id"]
    known = (task["status"], task["run_id"])
    ended_otherwise = run_id != task["run_id"] and task["status"] not in UNFINISHED
    if known == (event["status"], run_id) or ended_otherwise or task["status"] == "cancelled":
        return None
    return changed(task, event["status"], run_id)
