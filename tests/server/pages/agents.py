"""What the pages of others talk to: agents whose models do as they are told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Any

from langchain_core.tools import tool
from langgraph.types import interrupt

from deepagents import create_deep_agent
from deepagents.testing import ScriptedModel, call, calls
from deepagents.testing.scripted import Asked, ScriptedAnswer

_TABLES = count(1)
_PLAN = [{"content": "Measure the pier", "status": "in_progress"}, {"content": "Report", "status": "pending"}]
_ANSWERS_ALLOWED = {"allow_accept": True, "allow_edit": True, "allow_respond": True, "allow_ignore": True}


@tool
def tide(harbour: str) -> str:
    """Say when the water is high."""
    return f"High water in {harbour} at 06:40."


@tool
async def watch(harbour: str) -> str:
    """Watch the water, and never end."""
    await asyncio.Event().wait()
    return harbour


@tool
def warn(harbour: str) -> str:
    """Warn a harbour, if a person agrees; asked in the form of LangGraph's agent inbox."""
    request = {"action": "warn", "args": {"harbour": harbour}}
    [said] = interrupt([{"action_request": request, "config": _ANSWERS_ALLOWED, "description": "A storm."}])
    chosen = said["args"]["args"]["harbour"] if said["type"] == "edit" else harbour
    return f"{said['type']}: {chosen if said['type'] in ('accept', 'edit') else said['args']}"


def _plan(harbour: str) -> ScriptedAnswer:
    return calls(
        ("write_todos", {"todos": _PLAN}),
        ("write_file", {"file_path": "/plan.md", "content": f"# {harbour}"}),
        ("task", {"description": f"tide {harbour}", "subagent_type": "general-purpose"}),
    )


_ANSWERS: dict[str, Callable[[str], ScriptedAnswer]] = {
    "table": lambda rest: f"Table {next(_TABLES)}: high water comes **twice** a day on most coasts.",
    "count": lambda number: " ".join(map(str, range(int(number)))),
    "tide": lambda harbour: call("tide", harbour=harbour),
    "watch": lambda harbour: call("watch", harbour=harbour),
    "warn": lambda harbour: call("warn", harbour=harbour),
    "note": lambda text: call("write_file", file_path="/note.md", content=text),
    "plan": _plan,
    "fail": lambda reason: ValueError(f"no {reason}"),
}


def _answer(asked: Asked) -> ScriptedAnswer:
    last = asked.messages[-1]
    if last.type == "tool":
        return f"Done. {last.text}"
    order, _, rest = last.text.partition(" ")
    return _ANSWERS[order](rest) if order in _ANSWERS else f"You said: {last.text}"


def _make(**options: Any) -> Any:
    return create_deep_agent(ScriptedModel(always=_answer), tools=[tide, watch, warn], **options)


pilot = _make()
clerk = _make(interrupt_on={"write_file": True})
