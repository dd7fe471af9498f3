"""Tell the agent that started this run, on the same server, how the run ended."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from langchain_core.messages import HumanMessage
from langgraph.config import get_config
from langgraph.errors import GraphBubbleUp

from deepagents._async import BackgroundCode
from deepagents.middleware._base import BaseMiddleware, inner
from deepagents.middleware._requests import Request, Response
from deepagents.middleware.async_subagents.client import Clients, RemoteClient, RemoteFailure
from deepagents.middleware.async_subagents.messages import (
    content_blocks,
    make_notification,
    plain_context,
    to_json,
)
from deepagents.middleware.async_subagents.spec import (
    FINISHED,
    PARENT,
    TASKS,
    AsyncAgent,
    TaskEvent,
    as_mapping,
)

_MAX_REMEMBERED: Final = 1_000
_BUSY: Final = 409
_EXPECTED: Final = (404, _BUSY)
_PAUSES: Final = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
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

    A parent that is busy is left alone at first: it polls by itself. If that comes too early, because a run
    that still notifies has the status `running`, it hears of it a little later. Nothing that goes wrong here
    ends this run.
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
            # A question to a person is not an end of this run.
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
        notification = make_notification(parent.event, content_blocks(content))
        # A parent that began a run meanwhile polls by itself.
        options: dict[str, Any] = {"multitask_strategy": "reject"}
        if context := plain_context(getattr(runtime, "context", None)):
            options["context"] = context
        if await self._deliver(parent, notification, options):
            return
        # Not here: waiting would keep this run, which the parent polls, from ending.
        later = BackgroundCode()

        async def deliver_later() -> None:
            for seconds in _PAUSES:
                if await later.pause(seconds) and await self._deliver(parent, notification, options):
                    return

        await later.start(deliver_later)

    async def _deliver(self, parent: _Parent, notification: HumanMessage, options: dict[str, Any]) -> bool:
        """Start a run of the parent; return `False` while that is busy and may learn of it by itself."""
        client = RemoteClient(_THIS_SERVER, self._clients)
        try:
            thread = await client.get_thread(parent.thread_id)
            if thread.get("status") in ("idle", "error") and not _is_known(thread, parent.event):
                await client.create_run(parent.thread_id, [notification], options, parent.assistant_id)
            return thread.get("status") != "busy"
        except RemoteFailure as failure:
            level = logging.DEBUG if failure.status in _EXPECTED else logging.WARNING
            _log.log(level, "the parent of this run was not notified how it ended: %s", failure.text)
            return failure.status != _BUSY


def _is_known(thread: Mapping[str, Any], event: TaskEvent) -> bool:
    """Return whether a parent has polled the end of this very run."""
    task = as_mapping(as_mapping(as_mapping(thread.get("values")).get(TASKS)).get(event["task_id"]))
    return task.get("run_id") == event.get("run_id") and task.get("status") in FINISHED
