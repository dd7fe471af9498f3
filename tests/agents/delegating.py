"""What tests of subagents say again and again: who is called, and with what."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage

from deepagents.testing import ScriptedModel, call, calls


def delegate(to: str, what: str = "Go") -> AIMessage:
    """Hand a task to one subagent."""
    return call("task", description=what, subagent_type=to)


def together(*to: str) -> AIMessage:
    """Hand a task to each of these in one turn."""
    return calls(*(("task", {"description": "Go", "subagent_type": name}) for name in to))


def worker(name: str, *script: Any, **rest: Any) -> Any:
    """Describe a subagent with a model of its own."""
    return {"name": name, "description": f"does {name}", "model": ScriptedModel(*script), **rest}


def text(content: str) -> dict[str, Any]:
    """Make the record of a file."""
    return {"content": content, "encoding": "utf-8"}
