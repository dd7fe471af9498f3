"""Show what agents ask as forms of the Model Context Protocol: flat, so that any client can show them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from deepagents_server.serialize import dump

Form = tuple[str, dict[str, Any]]
"""What a person reads, and the schema of what they fill in."""
_IN_A_FORM: Final = ("approve", "reject", "respond")
"""To edit a call takes its arguments, which are not flat."""


def make_form(question: Any) -> Form | None:
    """Describe a form for what an agent asks; `None` if a form has no place for any answer."""
    if isinstance(question, dict) and "action_requests" in question:
        return _decisions(cast(dict[str, Any], question))
    answer = {"type": "string", "title": "Answer"}
    return as_text(question), {"type": "object", "properties": {"answer": answer}, "required": ["answer"]}


def _decisions(question: Mapping[str, Any]) -> Form | None:
    """Let a person decide about each call of a tool that waits."""
    allowed = {each["action_name"]: each["allowed_decisions"] for each in question["review_configs"]}
    properties: dict[str, Any] = {}
    decisions: list[str] = []
    for number, action in enumerate(question["action_requests"], 1):
        choices = [each for each in _IN_A_FORM if each in allowed[action["name"]]]
        if not choices:
            return None
        decisions.append(f"decision_{number}")
        properties[decisions[-1]] = {"type": "string", "title": action["name"], "enum": choices}
        if choices != ["approve"]:
            why = "Why not, or what to answer instead"
            properties[f"message_{number}"] = {"type": "string", "title": why}
    return as_text(question), {"type": "object", "properties": properties, "required": decisions}


def as_text(question: Any) -> str:
    """Write what an agent asks as a person reads it."""
    if isinstance(question, dict) and "action_requests" in question:
        actions = cast(list[dict[str, Any]], question["action_requests"])
        return "\n\n".join(
            each.get("description") or f"{each['name']} {dump(each['args'])}" for each in actions
        )
    return question if isinstance(question, str) else dump(question).decode()


def read_form(filled: Mapping[str, Any]) -> Any:
    """Return the answer of a form as the agent takes it."""
    if "answer" in filled:
        return filled["answer"]
    decisions: list[dict[str, Any]] = []
    while (number := len(decisions) + 1) and (kind := filled.get(f"decision_{number}")):
        message = filled.get(f"message_{number}") if kind != "approve" else None
        decisions.append({"type": kind, **({"message": message} if message else {})})
    return {"decisions": decisions}
