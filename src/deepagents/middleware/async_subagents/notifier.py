"""Tells the agent that started this run, on the same server, how it ended."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any, Final

from langchain_core.messages import message_to_dict
from langgraph.config import get_config
from langgraph.errors import GraphBubbleUp

from deepagents._async import IOCall
from deepagents.middleware._base import BaseMiddleware, Request, Response, inner
from deepagents.middleware.async_subagents.answers import Said, as_json, said_as
from deepagents.middleware.async_subagents.client import (
    MOST_SECONDS,
    Clients,
    Deadline,
    Remote,
    RemoteFailure,
)
from deepagents.middleware.async_subagents.notifications import notification
from deepagents.middleware.async_subagents.requests import plain_context
from deepagents.middleware.async_subagents.spec import RemoteAgent, checked
from deepagents.middleware.async_subagents.state import PARENT, TaskEvent, mapping

_MOST_REMEMBERED: Final = 1_000
_SERVER: Final = "langgraph_api"
_PAUSES: Final = (0.2, 0.4, 0.8, 1.6, 3.2)
_EXPECTED: Final = (404, 409)
_log = logging.getLogger(__name__)


def on_agent_server() -> bool:
    """Tell whether this process is an agent server: only there can a run have a parent to be told."""
    return _SERVER in sys.modules


@dataclass(frozen=True, slots=True)
class Parent:
    """Who is to be told, and of which run of which task."""

    thread_id: str
    assistant_id: str
    event: TaskEvent

    @classmethod
    def of(cls, status: str) -> Parent | None:
        """Find the parent of the running graph, `None` where it has none or runs inside another graph."""
        config: Any = get_config()
        configurable: Mapping[str, Any] = config.get("configurable") or {}
        metadata: Mapping[str, Any] = config.get("metadata") or {}
        thread_id, assistant_id = metadata.get("parent_thread_id"), metadata.get("parent_assistant_id")
        if given := mapping(configurable.get(PARENT)):
            thread_id, assistant_id = given.get("thread_id"), given.get("assistant_id")
        if not thread_id or not assistant_id or "|" in configurable.get("checkpoint_ns", ""):
            return None
        event: TaskEvent = {
            "task_id": str(configurable.get("thread_id") or ""),
            "agent_name": str(metadata.get("subagent_name") or "unknown"),
            "status": status,
        }
        run_id = configurable.get("run_id") or metadata.get("run_id")
        return cls(str(thread_id), str(assistant_id), {**event, "run_id": str(run_id)} if run_id else event)


class ParentNotifierMiddleware(BaseMiddleware):
    """When this run is somebody's async task, start a run of theirs that begins with how this one ended.

    A parent that is busy is given a few seconds to come to rest; one that stays busy asks by itself. Nothing
    that goes wrong ends this run.
    """

    def __init__(self) -> None:
        super().__init__()
        self._clients = Clients()
        self._told: OrderedDict[str, None] = OrderedDict()
        self._lock = Lock()

    async def _after_agent(self, state: Mapping[str, Any], runtime: Any) -> dict[str, Any] | None:
        if parent := Parent.of("success"):
            await self._tell(parent, said_as(state["messages"][-1].content), runtime)
        return None

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        try:
            return await inner(handler, request)
        except GraphBubbleUp:
            raise
        except Exception as error:
            if parent := Parent.of("error"):
                said = as_json({"error": type(error).__name__})
                await self._tell(parent, said_as(said), request.runtime)
            raise

    async def _tell(self, parent: Parent, said: Said, runtime: Any) -> None:
        if not self._is_first(parent.event.get("run_id", "")):
            return
        try:
            await _delivered(Remote(_LOOPBACK, self._clients, Deadline(MOST_SECONDS)), parent, said, runtime)
        except RemoteFailure as failure:
            level = logging.DEBUG if failure.status in _EXPECTED else logging.WARNING
            _log.log(level, "the parent of this run was not told how it ended: %s", failure.text)

    def _is_first(self, run_id: str) -> bool:
        with self._lock:
            if run_id in self._told:
                return False
            self._told[run_id] = None
            while len(self._told) > _MOST_REMEMBERED:
                self._told.popitem(last=False)
            return True


async def _delivered(remote: Remote, parent: Parent, said: Said, runtime: Any) -> None:
    status = await _at_rest(remote, parent)
    if status not in ("idle", "error"):
        return
    told = message_to_dict(notification(parent.event, said))
    context = plain_context(getattr(runtime, "context", None))
    await remote.ask(
        lambda client: client.runs.create(
            parent.thread_id,
            assistant_id=parent.assistant_id,
            input={"messages": [{**told["data"], "type": told["type"]}]},
            multitask_strategy="reject",
            **({"context": context} if context else {}),
        )
    )


async def _at_rest(remote: Remote, parent: Parent) -> object:
    """Return the status of the parent's thread, once it is not busy or has been so for too long."""
    for pause in (*_PAUSES, 0.0):
        thread = await remote.ask(lambda client: client.threads.get(parent.thread_id))
        status = mapping(thread).get("status")
        if status != "busy" or not pause:
            return status
        await IOCall(partial(time.sleep, pause), partial(asyncio.sleep, pause))
    return None


_LOOPBACK: Final[RemoteAgent] = checked(
    [{"name": "the parent", "description": "started this run", "graph_id": "parent"}]
)["the parent"]
