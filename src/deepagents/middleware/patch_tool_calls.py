"""Answer the tool calls that never got an answer, so that the history is valid when the model reads it."""

from __future__ import annotations

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
    whole: list[AnyMessage] = []
    repaired = False
    for at, message in enumerate(messages):
        whole.append(message)
        if isinstance(message, AIMessage) and (message.tool_calls or message.invalid_tool_calls):
            missing = _unanswered(message, _answers_after(messages, at))
            repaired = repaired or bool(missing)
            whole.extend(missing)
    return whole if repaired else None


def _answers_after(messages: list[AnyMessage], at: int) -> set[str]:
    answered: set[str] = set()
    for message in messages[at + 1 :]:
        if not isinstance(message, ToolMessage):
            break
        answered.add(message.tool_call_id)
    return answered


def _unanswered(message: AIMessage, answered: set[str]) -> list[AnyMessage]:
    calls = [(call["id"], call["name"], _NO_RESULT) for call in message.tool_calls]
    calls += [(call["id"], call["name"] or "unknown", _MALFORMED) for call in message.invalid_tool_calls]
    return [
        ToolMessage(content=text, tool_call_id=call_id, name=name, status="error")
        for call_id, name, text in calls
        if call_id is not None and call_id not in answered
    ]
