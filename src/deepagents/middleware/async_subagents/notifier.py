"""Notify the agent that started this run, on the same server, of how the run ended."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from langgraph.config import get_config
from langgraph.errors import GraphBubbleUp

from deepagents.middleware._base import BaseMiddleware, inner
from deepagents.middleware._requests import Request, Response
from deepagents.middleware.async_subagents.client import Clients, RemoteClient, RemoteFailure
from deepagents.middleware.async_subagents.messages import (
    content_blocks,
    make_notification,
    plain_context,
    to_json,
    to_wire,
)
from deepagents.middleware.async_subagents.spec import PARENT, AsyncAgent, TaskEvent, as_mapping

_MAX_REMEMBERED: Final = 1_000
_EXPECTED: Final = (404, 409)
_THIS_SERVER: Final = AsyncAgent("the parent", "started this run", "parent")
_log = logging.getLogger(__name__)


class _Parent(NamedTuple):
    """The thread and assistant that started this run as a task, and this task as they know it."""

    thread_id: str
    assistant_id: str
    event: TaskEvent


def _find_parent(status: str) -> _Parent | None:
    """Find the parent of the running graph, `None` where it has none or runs inside another graph."""
    config: Any = get_config()
    configurable: Mapping[str, Any] = config.get("configurable") or {}
    metadata: Mapping[str, Any] = config.get("metadata") or {}
    thread_id, assistant_id = metadata.get("parent_thread_id"), metadata.get("parent_assistant_id")
    if given := as_mapping(configurable.get(PARENT)):
        thread_id, assistant_id = given.get("thread_id"), given.get("assistant_id")
    if not thread_id or not assistant_id or "|" in configurable.get("checkpoint_ns", ""):
        return None
    event: TaskEvent = {
        "task_id": str(configurable.get("thread_id") or ""),
        "agent_name": str(metadata.get("subagent_name") or "unknown"),
        "status": status,
    }
    if run_id := configurable.get("run_id") or metadata.get("run_id"):
        event["run_id"] = str(run_id)
    return _Parent(str(thread_id), str(assistant_id), event)


class ParentNotifierMiddleware(BaseMiddleware):
    """When this run is a task of another agent, start a run of that agent which begins with how this ended.

    A parent that is busy is left alone: it polls by itself, and a run that still
    notifies has the status `running`. Nothing that goes wrong here ends this run.
    """

    def __init__(self) -> None:
        super().__init__()
        self._clients = Clients()
        self._notified: deque[str] = deque(maxlen=_MAX_REMEMBERED)

    async def _after_agent(self, state: Mapping[str, Any], runtime: Any) -> dict[str, Any] | None:
        if parent := _find_parent("success"):
            await self._notify(parent, state["messages"][-1].content, runtime)
        return None

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        try:
            return await inner(handler, request)
        except GraphBubbleUp:
            # A question to a person is no end of this run.
            raise
        except Exception as error:
            if parent := _find_parent("error"):
                # The type alone: the text of an error may hold addresses and keys.
                await self._notify(parent, to_json({"error": type(error).__name__}), request.runtime)
            raise

    async def _notify(self, parent: _Parent, content: Any, runtime: Any) -> None:
        run_id = parent.event.get("run_id", "")
        if run_id in self._notified:
            return
        # Before the request: a call of the model that is made again comes here again.
        self._notified.append(run_id)
        client = RemoteClient(_THIS_SERVER, self._clients)
        notification = make_notification(parent.event, content_blocks(content))
        # A parent that began a run meanwhile polls by itself.
        options: dict[str, Any] = {"multitask_strategy": "reject"}
        if context := plain_context(getattr(runtime, "context", None)):
            options["context"] = context
        try:
            thread = await client.get_thread(parent.thread_id)
            # One look only: waiting for a busy parent would keep this run, which it polls, from ending.
            if thread.get("status") in ("idle", "error"):
                await client.create_run(
                    parent.thread_id, [to_wire(notification)], options, parent.assistant_id
                )
        except RemoteFailure as failure:
            level = logging.DEBUG if failure.status in _EXPECTED else logging.WARNING
            _log.log(level, "the parent of this run was not notified how it ended: %s", failure.text)
