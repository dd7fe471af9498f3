"""Keep the history valid: answer the calls that never got an answer, keep only what can be saved."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, RemoveMessage, ToolMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from deepagents._flow import Flow
from deepagents.middleware._base import FlowMiddleware, Request, Response, inner

_LARGEST: Final = 2**64
"""Checkpoints are MessagePack, which has no larger whole numbers (its specification, "int format family")."""

_DEEPEST: Final = 100
"""Levels of lists and dicts that arguments keep; what reads and saves them cannot follow without end."""

_NO_RESULT = (
    "Error: no result of this call was recorded; it may have been cancelled or interrupted, and may or may "
    "not have taken effect. Check before you repeat it."
)
_MALFORMED = "Error: the arguments of this call could not be parsed, so nothing was run."
_TOO_DEEP = "(nested too deep to show)"


class PatchToolCallsMiddleware(FlowMiddleware):
    """Repair a history that a crash or a cancelled run left with calls and results that do not match.

    Numbers in a model's calls that are too large for a checkpoint become text, and so does what is nested
    too deep; the call is then a mistake that the model can mend.
    """

    def before_agent(self, state: dict[str, Any], runtime: Any) -> dict[str, Any] | None:
        """Give each call one result right behind it, and drop results of no call, before the model reads."""
        messages: list[AnyMessage] = state["messages"]
        patched = _patched(messages)
        if len(patched) == len(messages) and all(map(_is_same, patched, messages)):
            return None
        return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), *patched]}

    def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Flow[Response]:
        response = yield from inner(handler, request)
        said: list[BaseMessage] = [_savable(message) for message in response.result]
        return response if all(map(_is_same, said, response.result)) else replace(response, result=said)


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


def _patched(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    answers = _answers(messages)
    whole: list[AnyMessage] = []
    for at, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            continue
        whole += [message, *answers[at]]
        answered = {answer.tool_call_id for answer in answers[at]}
        whole += [
            ToolMessage(content=text, tool_call_id=call_id, name=name, status="error")
            for call_id, name, text in _calls(message)
            if call_id not in answered
        ]
    return whole


def _answers(messages: Sequence[AnyMessage]) -> Mapping[int, list[ToolMessage]]:
    """Find by place of each message the results of its calls, wherever they stand behind it."""
    waiting: dict[str, list[int]] = {}
    found: defaultdict[int, list[ToolMessage]] = defaultdict(list)
    for at, message in enumerate(messages):
        if not isinstance(message, ToolMessage):
            asked = Counter(call_id for call_id, _, _ in _calls(message))
            waiting.update({call_id: [at] * count for call_id, count in asked.items()})
        elif waiting.get(message.tool_call_id):
            found[waiting[message.tool_call_id].pop()].append(message)
    return found


def _calls(message: AnyMessage) -> list[tuple[str, str, str]]:
    if not isinstance(message, AIMessage):
        return []
    calls = [(call["id"], call["name"], _NO_RESULT) for call in message.tool_calls]
    calls += [(call["id"], call["name"] or "unknown", _MALFORMED) for call in message.invalid_tool_calls]
    return [(call_id, name, text) for call_id, name, text in calls if call_id is not None]
