"""What the pages of others talk to: agents whose models do as they are told."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import count
from threading import Event
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import tool
from langgraph.types import interrupt

from deepagents import create_deep_agent
from deepagents.testing import ScriptedModel, call, calls
from deepagents.testing.scripted import Asked, ScriptedAnswer

_TABLES = count(1)
_GATES: defaultdict[str, Event] = defaultdict(Event)
"""What half an answer waits for, by the word that it has come to."""

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


def _go(word: str) -> ScriptedAnswer:
    _GATES[word].set()
    return "Gone."


_ANSWERS: dict[str, Callable[[str], ScriptedAnswer]] = {
    "table": lambda rest: f"Table {next(_TABLES)}: high water comes **twice** a day on most coasts.",
    "slowly": lambda word: f"Before {word} after.",
    "go": _go,
    "tide": lambda harbour: call("tide", harbour=harbour),
    "watch": lambda harbour: call("watch", harbour=harbour),
    "warn": lambda harbour: call("warn", harbour=harbour),
    "note": lambda text: call("write_file", file_path="/note.md", content=text),
    "send": lambda order: call("task", description=order, subagent_type="general-purpose"),
    "plan": _plan,
    "fail": lambda reason: ValueError(f"no {reason}"),
}


def _answer(asked: Asked) -> ScriptedAnswer:
    last = asked.messages[-1]
    if last.type == "tool":
        return f"Done. {last.text}"
    order, _, rest = last.text.partition(" ")
    return _ANSWERS[order](rest) if order in _ANSWERS else f"You said: {last.text}"


class _Halting(ScriptedModel):
    """Stops within an answer to `slowly WORD`, until another run is told to `go WORD`."""

    def _stream(
        self, messages: list[BaseMessage], *rest: Any, **options: Any
    ) -> Iterator[ChatGenerationChunk]:
        order, _, word = messages[-1].text.partition(" ")
        for chunk in super()._stream(messages, *rest, **options):
            yield chunk
            if order == "slowly" and chunk.text.strip() == word:
                _GATES[word].wait(60)


def _make(**options: Any) -> Any:
    return create_deep_agent(_Halting(always=_answer), tools=[tide, watch, warn], **options)


pilot = _make()
clerk = _make(interrupt_on={"write_file": True})
