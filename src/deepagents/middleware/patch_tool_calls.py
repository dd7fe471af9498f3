"""Answer the tool calls that never got an answer, so that the history is valid when the model reads it."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, AnyMessage, RemoveMessage, ToolMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES

_NO_RESULT = (
    "Error: no result of this call was recorded; it may have been cancelled or interrupted, and may or "
    "may not have taken "
    "effect. Check before you repeat it."
)
_MALFORMED = "Error: the arguments of this call could not be parsed, so nothing was run."


class PatchToolCallsMiddleware(AgentMiddleware[Any, Any, Any]):
    """Repair a history that a crash or a cancelled run left with unanswered tool calls."""

    def before_agent(self, state: dict[str, Any], runtime: Any) -> dict[str, Any] | None:
        """Insert an error result behind each unanswered call, before the model reads the history."""
        messages: list[AnyMessage] = state["messages"]
        patched = _patched(messages)
        return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), *patched]} if patched else None


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
