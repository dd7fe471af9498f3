"""Draws docs/concepts/context.svg: the size of each request in a real run of an agent."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.utils import count_tokens_approximately as tokens
from langgraph.checkpoint.memory import InMemorySaver

from deepagents import create_deep_agent
from deepagents.testing import Asked, ScriptedModel, call

PICTURE = Path(__file__).parent / "concepts" / "context.svg"
WINDOW = 8_000
CHAPTERS = 26
SUMMARY = "Goal: review every chapter. Done so far: see /notes. Next: the chapter after the last note. " * 4
MEMORY = "Reviews are short. Notes go to /notes, one file for each chapter. " * 6
CHAPTER = "The quick brown fox jumps over the lazy dog, once more and then again. " * 14
NOTE = "A note that says what was good, what was not, and what should come next. " * 40


@dataclass(frozen=True)
class Sent:
    """Tokens of one request, part by part, and of the whole history at that time."""

    prompt: int
    summary: int
    clipped: int
    messages: int
    history: int

    @property
    def parts(self) -> tuple[int, int, int, int]:
        """The parts in the order in which they are sent."""
        return self.prompt, self.summary, self.clipped, self.messages


def measure_run() -> list[Sent]:
    """Run an agent that reads and writes for a while, and measure each of its requests."""
    model = ScriptedModel(always=_reviewer(), profile={"max_input_tokens": WINDOW})
    agent: Any = create_deep_agent(model, memory=["/AGENTS.md"], checkpointer=InMemorySaver())
    files = {"/AGENTS.md": MEMORY, **{f"/chapters/{at}.md": CHAPTER for at in range(CHAPTERS)}}
    given = {"messages": "Review every chapter.", "files": files}
    history = agent.invoke(given, {"configurable": {"thread_id": "picture"}})["messages"]
    before = [history[:at] for at, message in enumerate(history) if isinstance(message, AIMessage)]
    asked = [each for each in model.asked if not _wants_summary(each)]
    return [_measure(each, earlier) for each, earlier in zip(asked, before, strict=True)]


def _reviewer() -> Callable[[Asked], str | AIMessage]:
    turns: Iterator[int] = count()

    def answer(asked: Asked) -> str | AIMessage:
        if _wants_summary(asked):
            return SUMMARY
        chapter, writes = divmod(next(turns), 2)
        if chapter >= CHAPTERS:
            return "All chapters are reviewed."
        if writes:
            return call("write_file", file_path=f"/notes/{chapter}.md", content=NOTE)
        return call("read_file", file_path=f"/chapters/{chapter}.md")

    return answer


def _wants_summary(asked: Asked) -> bool:
    return "<messages>" in asked.last


def _measure(asked: Asked, history: Sequence[BaseMessage]) -> Sent:
    prompt = tokens(asked.messages[:1]) + len(json.dumps(asked.tools)) // 4
    groups: dict[str, list[BaseMessage]] = {"summary": [], "clipped": [], "messages": []}
    for message in asked.messages[1:]:
        groups[_group(message)].append(message)
    return Sent(
        prompt, **{name: tokens(each) for name, each in groups.items()}, history=prompt + tokens(history)
    )


def _group(message: BaseMessage) -> str:
    if message.additional_kwargs.get("lc_source") == "summarization":
        return "summary"
    written = isinstance(message, AIMessage) and any(
        "truncated" in str(each["args"].get("content")) for each in message.tool_calls
    )
    return "clipped" if written else "messages"


LEFT, TOP, WIDTH, HEIGHT = 64, 76, 640, 250
PARTS = (
    ("system prompt, memory, tools", "#64748b"),
    ("summary of what was archived", "#d97706"),
    ("old file writes, clipped", "#7c3aed"),
    ("messages", "#0284c7"),
)
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#334155}.t{font-size:14px;font-weight:600}"
    "@media(prefers-color-scheme:dark){text{fill:#cbd5e1}.b{fill:#0f172a}}"
)


def draw(run: Sequence[Sent]) -> str:
    """Draw one bar for each request, and lines for the window, the trigger and the whole history."""
    most = WINDOW * 1.25
    step = WIDTH / len(run)
    shapes = [shape for at, each in enumerate(run) for shape in _bar(each, LEFT + at * step, step - 2, most)]
    for share, label in ((1.0, "window"), (0.85, "summary from here on, 85 %"), (0.5, "clipping, 50 %")):
        y = _y(WINDOW * share, most)
        shapes.append(f'<path d="M{LEFT} {y}H{LEFT + WIDTH}" stroke="#94a3b8" stroke-dasharray="4 4"/>')
        shapes.append(_text(LEFT + WIDTH + 6, y + 4, label))
    shapes.append(_history(run, step, most))
    for value in range(0, int(most) + 1, 2_000):
        shapes.append(_text(LEFT - 8, _y(value, most) + 4, f"{value:,}", "end"))
    shapes.append(
        _text(LEFT, TOP + HEIGHT + 22, f"{len(run)} calls of the model, one bar each; height in tokens")
    )
    return _page([*_legend(), *shapes])


def _bar(each: Sent, x: float, width: float, most: float) -> Iterator[str]:
    floor = 0
    for size, (_, paint) in zip(each.parts, PARTS, strict=True):
        top, bottom = _y(floor + size, most), _y(floor, most)
        floor += size
        box = f'x="{x:.1f}" y="{top}" width="{width:.1f}" height="{round(bottom - top, 1)}"'
        yield f'<rect {box} fill="{paint}"/>'


def _history(run: Sequence[Sent], step: float, most: float) -> str:
    inside = [(at, each.history) for at, each in enumerate(run) if each.history <= most]
    points = " ".join(f"{LEFT + (at + 0.5) * step:.1f},{_y(size, most)}" for at, size in inside)
    x, y = LEFT + (inside[-1][0] + 0.5) * step + 6, _y(inside[-1][1], most) + 4
    line = f'<polyline points="{points}" fill="none" stroke="#dc2626" stroke-width="2"/>'
    return line + _text(x, y, f"the whole history; at the end {run[-1].history:,}")


def _legend() -> Iterator[str]:
    yield _text(LEFT, 22, "What the model is sent", css="t")
    for at, (label, paint) in enumerate(PARTS):
        x, y = LEFT + (at % 2) * 250, 42 + (at // 2) * 18
        yield f'<rect x="{x}" y="{y - 10}" width="11" height="11" fill="{paint}"/>'
        yield _text(x + 17, y, label)


def _text(x: float, y: float, text: str, anchor: str = "start", css: str = "") -> str:
    kind = f' class="{css}"' if css else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{kind}>{text}</text>'


def _y(value: float, most: float) -> float:
    return round(TOP + HEIGHT * (1 - value / most), 1)


def _page(shapes: Sequence[str]) -> str:
    width, height = LEFT + WIDTH + 190, TOP + HEIGHT + 40
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
            f"<title>What the model is sent, call by call</title><style>{STYLE}</style>",
            f'<rect class="b" width="{width}" height="{height}" fill="#ffffff"/>',
            *shapes,
            "</svg>\n",
        ]
    )


def main(arguments: list[str]) -> int:
    """Draw the picture, or check that it is what a run gives today."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail when it is out of date")
    parser.add_argument("--picture", type=Path, default=PICTURE, help="where the picture is")
    options = parser.parse_args(arguments)
    picture = draw(measure_run())
    if not options.check:
        options.picture.write_text(picture)
        return 0
    stale = not options.picture.exists() or options.picture.read_text() != picture
    print("context.svg is out of date; run: make docs" if stale else "", end="")
    return int(stale)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
