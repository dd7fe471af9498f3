"""Keep the history valid: answer the calls that never got an answer, keep only what can be saved."""

from __future__ import annotations

import json
from asyncio import CancelledError
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final, NotRequired, cast

from langchain.agents import AgentState
from langchain.agents.middleware.types import PrivateStateAttr, ToolCallRequest
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, RemoveMessage
from langgraph.config import get_config
from langgraph.errors import GraphInterrupt
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from deepagents._state.runtime import moves_what_is_removed
from deepagents._state.schema import NOT_SHARED
from deepagents.middleware._base import BaseMiddleware, Request, Response, ToolResult, inner, keeping
from deepagents.middleware.approval.middleware import HELD
from deepagents.middleware.patch_tool_calls.outcomes import CallFates
from deepagents.middleware.patch_tool_calls.unanswered import first_wrong, malformed_result, repaired_turns

_LARGEST: Final = 2**64
"""Checkpoints are MessagePack, which has no larger whole numbers (its specification, "int format family")."""

_DEEPEST: Final = 100
"""Levels of lists and dicts that arguments keep; what reads and saves them cannot follow without end."""

_TOO_DEEP = "(nested too deep to show)"


class PatchToolCallsState(AgentState[Any]):
    """State of agents whose calls may wait for a person."""

    held_calls: NotRequired[Annotated[list[str] | None, PrivateStateAttr, NOT_SHARED]]


class PatchToolCallsMiddleware(BaseMiddleware):
    """Keep a history valid that a crash, a cancelled run or a malformed call left with calls without results.

    What the model reads in the place of a result says what is known: that nothing was run, that the call was
    cancelled while it ran, or that its result was lost and it may have taken effect. Numbers in a model's
    calls that are too large for a checkpoint become text, and so does what is nested too deep; the call is
    then a mistake that the model can mend.
    """

    state_schema: type[Any] = PatchToolCallsState

    def __init__(self) -> None:
        super().__init__()
        self._fates = CallFates()

    def before_agent(self, state: dict[str, Any], runtime: Any) -> dict[str, Any] | None:
        """Give each call one result right behind it, and drop results of no call, before the model reads."""
        fates = self._fates.taken(_thread())
        messages: Sequence[AnyMessage] = state["messages"]
        first = first_wrong(messages)
        if first is None:
            return None
        tail = messages[first:]
        repaired = repaired_turns(tail, frozenset(state.get(HELD) or ()), fates)
        return {"messages": _in_place(messages[:first], tail, repaired)}

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        response = await inner(handler, request)
        said = [answer for message in response.result for answer in _with_malformed_answered(message)]
        if len(said) == len(response.result) and all(map(_is_same, said, response.result)):
            return response
        response = replace(response, result=said)
        return keeping(response, (), {"jump_to": "model"}) if _has_nothing_to_run(said) else response

    async def _around_tool(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolResult]
    ) -> ToolResult:
        """Note which calls end without a result, and why, for the next run of the thread."""
        thread, call_id = _thread(), request.tool_call["id"]
        self._fates.forget(thread, call_id)
        try:
            return await inner(handler, request)
        except (CancelledError, KeyboardInterrupt):
            self._fates.note(thread, call_id, "cancelled")
            raise
        except GraphInterrupt as raised:
            if _asks_before_it_runs(raised, call_id):
                self._fates.note(thread, call_id, "waiting")
            raise


def _asks_before_it_runs(raised: GraphInterrupt, call_id: str | None) -> bool:
    """Tell whether this is the question of LangChain's approval about this call by itself."""
    asked: Sequence[Any] = raised.args[0] if raised.args else ()
    return any(_is_approval(each.value, call_id) for each in asked)


def _is_approval(value: object, call_id: str | None) -> bool:
    match value:
        case {"type": "tool_approval", "tool_call_id": str(about)}:
            return about == call_id
        case _:
            return False


def _thread() -> str | None:
    try:
        thread = get_config().get("configurable", {}).get("thread_id")
    except RuntimeError:
        return None
    return None if thread is None else str(thread)


def _in_place(
    sound: Sequence[AnyMessage], tail: Sequence[AnyMessage], repaired: Sequence[AnyMessage]
) -> list[BaseMessage]:
    """Write the repaired tail: without touching what is sound before it, where the channel can do that."""
    if not moves_what_is_removed("messages") or not all(message.id for message in tail):
        return [RemoveMessage(REMOVE_ALL_MESSAGES), *sound, *repaired]
    same = next(
        (at for at, pair in enumerate(zip(tail, repaired, strict=False)) if not _is_same(*pair)), None
    )
    same = min(len(tail), len(repaired)) if same is None else same
    return [*(RemoveMessage(message.id or "") for message in tail[same:]), *repaired[same:]]


def _with_malformed_answered(message: BaseMessage) -> list[BaseMessage]:
    """Return the message as it can be saved, and a result for each of its calls that cannot be run."""
    malformed = message.invalid_tool_calls if isinstance(message, AIMessage) else []
    return [_savable(message), *(malformed_result(call) for call in malformed if call["id"])]


def _has_nothing_to_run(said: Sequence[BaseMessage]) -> bool:
    """Tell whether all calls were malformed: the model is to read that before the run may end."""
    made = [message for message in said if isinstance(message, AIMessage)]
    return len(said) > len(made) and not any(message.tool_calls for message in made)


def _is_same(one: object, other: object) -> bool:
    return one is other


def _savable(message: BaseMessage) -> BaseMessage:
    if not isinstance(message, AIMessage) or not message.tool_calls:
        return message
    parts = {"tool_calls": message.tool_calls, "content": message.content}
    changed = {name: _shallow(part, _DEEPEST) for name, part in parts.items()}
    same = all(changed[name] is part for name, part in parts.items())
    return message if same else message.model_copy(update=changed)


def _shallow(value: Any, levels: int) -> Any:
    """Return the same object, or one without what cannot be saved."""
    match value:
        case bool() | str():
            return value
        case int() if not -_LARGEST // 2 <= value < _LARGEST:
            return _as_text(value)
        case dict() | list() if levels == 0:
            return _as_text(value)
        case dict():
            given = cast("dict[Any, Any]", value)
            made = dict(zip(given, _each(given.values(), levels), strict=True))
            return given if all(map(_is_same, made.values(), given.values())) else made
        case list():
            items = cast("list[Any]", value)
            found = _each(items, levels)
            return items if all(map(_is_same, found, items)) else found
        case _:
            return value


def _each(values: Iterable[Any], levels: int) -> list[Any]:
    return [_shallow(each, levels - 1) for each in values]


def _as_text(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (RecursionError, TypeError, ValueError):
        return _TOO_DEEP
