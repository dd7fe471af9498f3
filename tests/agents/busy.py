"""A busy agent without a mind: each step follows from its number, so that any run of it can be made again."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, AnyMessage, ToolCall
from langchain_core.tools import BaseTool, tool

from deepagents.testing import Asked

CYCLE = 100
WORDS = ["agent", "backend", "context", "decimal", "engine", "filter", "gauge", "handle", "index", "ledger"]


def text(size: int, seed: str) -> str:
    """Make a text of so many characters, the same for the same seed."""
    chance = random.Random(seed)
    lines: list[str] = []
    made = 0
    while made < size:
        line = " ".join(chance.choices(WORDS, k=10))
        lines.append(line)
        made += len(line) + 1
    return "\n".join(lines)[:size]


@tool
def look_up(topic: str, size: int) -> str:
    """Look something up."""
    return f"[{topic}]\n{text(size, topic)}"


@tool
def fail(topic: str) -> str:
    """Try something that does not work."""
    raise ValueError(f"nothing is known about {topic}")


TOOLS: Sequence[BaseTool] = (look_up, fail)


def _calls(*wanted: tuple[str, Mapping[str, Any]], said: str = "") -> AIMessage:
    made = [
        ToolCall(name=name, args=dict(args), id=f"{said}_{number}")
        for number, (name, args) in enumerate(wanted)
    ]
    return AIMessage(f"Step {said}.", tool_calls=made)


def _some(chance: random.Random, step: int, least: int, most: int) -> tuple[str, Mapping[str, Any]]:
    return "look_up", {"topic": f"{step}-{chance.random():.6f}", "size": chance.randint(least, most)}


def _small(chance: random.Random, step: int) -> AIMessage:
    return _calls(_some(chance, step, 50, 400), said=f"{step}")


def _medium(chance: random.Random, step: int) -> AIMessage:
    return _calls(_some(chance, step, 1_000, 8_000), said=f"{step}")


def _parallel(chance: random.Random, step: int) -> AIMessage:
    many = [_some(chance, step, 50, 5_000) for _ in range(chance.randint(2, 4))]
    return _calls(*many, ("fail", {"topic": f"{step}"}), said=f"{step}")


def _write(chance: random.Random, step: int) -> AIMessage:
    content = text(chance.randint(2_000, 24_000), f"file {step}")
    return _calls(("write_file", {"file_path": f"/files/{step}.txt", "content": content}), said=f"{step}")


def _edit(chance: random.Random, step: int) -> AIMessage:
    old, new = text(3_000, f"no such text {step}"), text(3_000, f"new text {step}")
    args = {"file_path": "/files/notes.txt", "old_string": old, "new_string": new}
    return _calls(("edit_file", args), ("fail", {"topic": f"{step}"}), said=f"{step}")


def _large(chance: random.Random, step: int) -> AIMessage:
    return _calls(_some(chance, step, 20_000, 60_000), said=f"{step}")


def _huge(chance: random.Random, step: int) -> AIMessage:
    return _calls(_some(chance, step, 90_000, 120_000), said=f"{step}")


def _read(chance: random.Random, step: int) -> AIMessage:
    return _calls(
        ("read_file", {"file_path": "/files/notes.txt"}), ("ls", {"path": "/files"}), said=f"{step}"
    )


KINDS: Sequence[tuple[Callable[[random.Random, int], AIMessage], int]] = (
    (_small, 36),
    (_medium, 26),
    (_parallel, 14),
    (_write, 12),
    (_edit, 4),
    (_large, 3),
    (_huge, 1),
    (_read, 4),
)


def step_of(number: int) -> AIMessage:
    """Say what is done in a step; after a cycle, steps of the same kinds and sizes come again."""
    chance = random.Random(f"step {number % CYCLE}")
    make = chance.choices([kind for kind, _ in KINDS], [weight for _, weight in KINDS])[0]
    return make(chance, number)


@dataclass
class Busy:
    """Takes one step for each request, and says that a part is done after each `every` steps."""

    every: int
    taken: int = 0
    at_step: Callable[[int], None] = lambda _: None

    def __call__(self, asked: Asked) -> AIMessage | str:
        """Answer a request."""
        self.at_step(self.taken)
        self.taken += 1
        if self.taken % self.every == 0:
            return f"Part {self.taken // self.every} is done."
        return step_of(self.taken)


@dataclass(frozen=True)
class Seen:
    """What the state held when a request was made."""

    messages: Sequence[AnyMessage]
    event: Mapping[str, Any] | None
    hidden: frozenset[str]
    clipped: Mapping[str, Any]

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> Seen:
        """Read it from a state."""
        return cls(
            list(state["messages"]),
            state.get("_summarization_event"),
            frozenset(state.get("_summarized_ids") or ()),
            dict(state.get("_clipped_messages") or {}),
        )


class Watcher(AgentMiddleware[Any, Any, Any]):
    """Notes what the state holds whenever the model is called."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Seen] = []

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        """Note, and go on."""
        self.seen.append(Seen.of(request.state))
        return handler(request)

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        """Note, and go on."""
        self.seen.append(Seen.of(request.state))
        return await handler(request)


def last_step(asked: Asked) -> int:
    """Find the number of the last step that a request shows."""
    said = [message for message in asked.messages if message.type == "ai"]
    found = [re.match(r"Step (\d+)", message.text) for message in said]
    return max((int(match[1]) for match in found if match), default=0)
