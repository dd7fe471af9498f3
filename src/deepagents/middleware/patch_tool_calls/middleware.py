"""Keep the history valid: answer the calls that never got an answer, keep only what can be saved."""

from __future__ import annotations

import operator
from asyncio import CancelledError
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any, Final

from langchain.agents.middleware import hook_config
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, RemoveMessage
from langgraph.errors import GraphInterrupt
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from deepagents._state.channels import moves_what_is_removed
from deepagents._state.runtime import configurable
from deepagents.middleware._base import BaseMiddleware, inner
from deepagents.middleware._history import open_turn
from deepagents.middleware._requests import Request, Response, ToolResult, keeping
from deepagents.middleware.approval import HELD
from deepagents.middleware.patch_tool_calls.repair import (
    Outcome,
    find_fault,
    make_malformed_result,
    repair_turns,
    sanitize,
)

MOST_KNOWN: Final = 1_000


class PatchToolCallsMiddleware(BaseMiddleware):
    """Keep a history valid that a crash, a cancelled run or a malformed call left with calls without results.

    The result that the model reads instead says what is known: that nothing was run, that the call was
    cancelled while it ran, or that its result was lost and it may have taken effect. Calls without an id of
    their own get one. Numbers in a model's calls that are too large for a checkpoint become text, and so does
    what is nested too deep; the call is then a mistake that the model can mend.
    """

    def __init__(self) -> None:
        super().__init__()
        self._outcomes = CallOutcomes()

    def before_agent(self, state: dict[str, Any], runtime: Any) -> dict[str, Any] | None:
        """Put one result right behind each call, and drop results of no call, before the model reads."""
        # Nothing more here: LangGraph reads the byte code of a node's function whenever an agent is built.
        return self._repair(state)

    def _repair(self, state: dict[str, Any]) -> dict[str, Any] | None:
        outcomes = self._outcomes.take(_thread())
        messages: Sequence[AnyMessage] = state["messages"]
        fault = find_fault(messages)
        if fault is None:
            return None
        tail = messages[fault:]
        repaired = repair_turns(tail, held=state.get(HELD) or (), outcomes=outcomes)
        return {"messages": _replace_tail(messages[:fault], tail, repaired)}

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        response = await inner(handler, request)
        messages = [each for message in response.result for each in _answer_malformed(message)]
        if len(messages) == len(response.result) and all(map(operator.is_, messages, response.result)):
            return response
        response = replace(response, result=messages)
        return keeping(response, (), {"jump_to": "model"}) if _has_nothing_to_run(messages) else response

    async def _around_tool(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolResult]
    ) -> ToolResult:
        """Note which calls end without a result, and why, for the next run of the thread."""
        thread, call_id = _thread(), request.tool_call["id"]
        self._outcomes.forget(thread, call_id)
        try:
            return await inner(handler, request)
        except (CancelledError, KeyboardInterrupt):
            # A cancelled task leaves no message: only this process knows that the call had begun.
            self._outcomes.note(thread, call_id, "cancelled")
            raise
        except GraphInterrupt as raised:
            if _asks_before_it_runs(raised, call_id):
                self._outcomes.note(thread, call_id, "waiting")
            raise


class AskAgainMiddleware(BaseMiddleware):
    """Let the model read that its calls were malformed, where other middleware has a hook after the model.

    LangGraph clears the jump back to the model, which the model's own node asked for, once such a hook runs.
    """

    @hook_config(can_jump_to=["model"])
    def after_model(self, state: Mapping[str, Any], runtime: Any) -> dict[str, Any] | None:
        """Go back to the model after a turn in which nothing could be run."""
        messages: Sequence[AnyMessage] = state["messages"]
        turn = messages[-len(open_turn(messages)) - 1 :]
        return {"jump_to": "model"} if _has_nothing_to_run(turn) else None


def _asks_before_it_runs(raised: GraphInterrupt, call_id: str | None) -> bool:
    """Return whether this is the question of LangChain's approval about this call alone (`per_call`)."""
    for interrupt in raised.args[0] if raised.args else ():
        match interrupt.value:
            case {"type": "tool_approval", "tool_call_id": str(about)} if about == call_id:
                return True
            case _:
                continue
    return False


def _thread() -> str | None:
    thread = configurable().get("thread_id")
    return None if thread is None else str(thread)


def _replace_tail(
    sound: Sequence[AnyMessage], tail: Sequence[AnyMessage], repaired: Sequence[AnyMessage]
) -> list[BaseMessage]:
    """Write the repaired tail: without touching what is sound before it, where the channel can do that."""
    # LangGraph's own reducer leaves a message that is removed and added again where it stood; only our
    # channel moves it to the end, which is what puts a new result in front of it.
    if not moves_what_is_removed("messages") or not all(message.id for message in tail):
        return [RemoveMessage(REMOVE_ALL_MESSAGES), *sound, *repaired]
    pairs = zip(tail, repaired, strict=False)
    same = next((at for at, (old, new) in enumerate(pairs) if old is not new), min(len(tail), len(repaired)))
    return [*(RemoveMessage(message.id or "") for message in tail[same:]), *repaired[same:]]


def _answer_malformed(message: BaseMessage) -> list[BaseMessage]:
    """Return the message as it can be saved, and a result for each of its calls that cannot be run."""
    if not isinstance(message, AIMessage):
        return [message]
    message = sanitize(message)
    return [message, *map(make_malformed_result, message.invalid_tool_calls)]


def _has_nothing_to_run(messages: Sequence[BaseMessage]) -> bool:
    """Return whether all calls were malformed: the model is to read that before the run may end."""
    made = [message for message in messages if isinstance(message, AIMessage)]
    return any(each.invalid_tool_calls for each in made) and not any(each.tool_calls for each in made)


class CallOutcomes:
    """How calls ended that have no result, as far as this process saw it, by thread and call.

    Each is read once, and the oldest are forgotten first.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], Outcome] = OrderedDict()
        self._lock = Lock()

    def note(self, thread: str | None, call_id: str | None, outcome: Outcome) -> None:
        """Note how a call ended; nothing where it could be taken for another."""
        if thread is None or call_id is None:
            return
        with self._lock:
            self._known[thread, call_id] = outcome
            while len(self._known) > MOST_KNOWN:
                self._known.popitem(last=False)

    def forget(self, thread: str | None, call_id: str | None) -> None:
        """Forget a call that begins."""
        with self._lock:
            self._known.pop((thread or "", call_id or ""), None)

    def take(self, thread: str | None) -> Mapping[str, Outcome]:
        """Return what is known of a thread's calls, and forget it."""
        with self._lock:
            mine = [key for key in self._known if key[0] == thread]
            return {call_id: self._known.pop((name, call_id)) for name, call_id in mine}
