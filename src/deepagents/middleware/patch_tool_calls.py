"""Keep the history valid: answer the calls that never got an answer, keep only what can be saved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import takewhile
from typing import Any, cast

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, RemoveMessage, ToolMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from deepagents._flow import Flow
from deepagents.middleware._base import FlowMiddleware, Request, Response, inner

_NO_RESULT = (
    "Error: no result of this call was recorded; it may have been cancelled or interrupted, and may or "
    "may not have taken "
    "effect. Check before you repeat it."
)
_MALFORMED = "Error: the arguments of this call could not be parsed, so nothing was run."


_LARGEST = 2**64
"""Checkpoints are MessagePack, which has no larger whole numbers (its specification, "int format family")."""


class PatchToolCallsMiddleware(FlowMiddleware):
    """Repair a history that a crash or a cancelled run left with unanswered tool calls.

    Numbers in a model's calls that are too large for a checkpoint become text, and the call a mistake that
    the model can mend.
    """

    def before_agent(self, state: dict[str, Any], runtime: Any) -> dict[str, Any] | None:
        """Insert an error result behind each unanswered call, before the model reads the history."""
        messages: list[AnyMessage] = state["messages"]
        patched = _patched(messages)
        return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), *patched]} if patched else None

    def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Flow[Response]:
        response = yield from inner(handler, request)
        said: list[BaseMessage] = [_savable(message) for message in response.result]
        return response if said == response.result else replace(response, result=said)


def _savable(message: BaseMessage) -> BaseMessage:
    if not isinstance(message, AIMessage) or not message.tool_calls:
        return message
    parts = {"tool_calls": message.tool_calls, "content": message.content}
    changed = {name: _without_huge_numbers(part) for name, part in parts.items()}
    return message if changed == parts else message.model_copy(update=changed)


def _without_huge_numbers(value: Any) -> Any:
    match value:
        case bool() | str():
            return value
        case int() if not -_LARGEST // 2 <= value < _LARGEST:
            return str(value)
        case dict():
            items = cast("dict[Any, Any]", value).items()
            return {key: _without_huge_numbers(each) for key, each in items}
        case list():
            return [_without_huge_numbers(each) for each in cast("list[Any]", value)]
        case _:
            return value


def _patched(messages: list[AnyMessage]) -> list[AnyMessage] | None:
    strays = _strays(messages)
    whole: list[AnyMessage] = []
    repaired = False
    for at, message in enumerate(messages):
        if at in strays.values():
            repaired = True
            continue
        whole.append(message)
        for call_id, name, text in _unanswered(messages, at):
            stray = strays.get(call_id, 0)
            made = ToolMessage(content=text, tool_call_id=call_id, name=name, status="error")
            whole.append(messages[stray] if stray > at else made)
            repaired = True
    return whole if repaired else None


def _strays(messages: list[AnyMessage]) -> dict[str, int]:
    """Find by call id the answers that stand further on than right behind their call."""
    wanted: set[str] = set()
    found: dict[str, int] = {}
    behind: set[str] = set()
    for at, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            if message.tool_call_id in wanted and message.tool_call_id not in behind:
                found[message.tool_call_id] = at
                wanted.discard(message.tool_call_id)
            continue
        behind = {call_id for call_id, _, _ in _calls(message)}
        wanted |= {call_id for call_id, _, _ in _unanswered(messages, at)}
    return found


def _unanswered(messages: list[AnyMessage], at: int) -> list[tuple[str, str, str]]:
    calls = _calls(messages[at])
    if not calls:
        return []
    behind = takewhile(lambda each: isinstance(each, ToolMessage), messages[at + 1 :])
    answered = {each.tool_call_id for each in behind if isinstance(each, ToolMessage)}
    return [call for call in calls if call[0] not in answered]


def _calls(message: AnyMessage) -> list[tuple[str, str, str]]:
    if not isinstance(message, AIMessage):
        return []
    calls = [(call["id"], call["name"], _NO_RESULT) for call in message.tool_calls]
    calls += [(call["id"], call["name"] or "unknown", _MALFORMED) for call in message.invalid_tool_calls]
    return [(call_id, name, text) for call_id, name, text in calls if call_id is not None]
