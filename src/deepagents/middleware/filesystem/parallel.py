"""Calls of one turn that would change the same place at the same time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AIMessage, ToolMessage

from deepagents._paths import normalise, overlap
from deepagents.errors import BackendError

_MUTATIONS = frozenset({"write_file", "edit_file", "delete"})


def repeats_a_mutation(request: ToolCallRequest) -> bool:
    """Tell whether an unfinished call before this one, in the same turn, changes the same place."""
    target = _target(request.tool_call)
    if target is None:
        return False
    answered: set[str] = set()
    for message in reversed(cast("Mapping[str, Any]", request.state)["messages"]):
        if isinstance(message, ToolMessage):
            answered.add(message.tool_call_id)
        if isinstance(message, AIMessage):
            earlier = _calls_before(message, request.tool_call["id"])
            running = [call for call in earlier if call["id"] not in answered]
            others = [other for call in running if (other := _target(call)) is not None]
            return any(overlap(target, other) for other in others)
    return False


def _calls_before(message: AIMessage, call_id: str | None) -> list[Any]:
    before: list[Any] = []
    for call in message.tool_calls:
        if call["id"] == call_id:
            return before
        before.append(call)
    return []


def _target(call: Mapping[str, Any]) -> str | None:
    path = call["args"].get("file_path") if call["name"] in _MUTATIONS else None
    try:
        return normalise(path) if isinstance(path, str) else None
    except BackendError:
        return None
