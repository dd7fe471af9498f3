"""Draw what still changes: the open text, what runs, the subagents, the plan and what is queued."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from deepagents_cli.text import short_time
from deepagents_cli.views.conversation.chat import Chat
from deepagents_cli.views.conversation.transcript import Block, Call, Transcript
from deepagents_cli.views.terminal.theme import Look

if TYPE_CHECKING:
    from deepagents_cli.views.rendering.render import Renderer

_OUTPUT_LINES = 5
_PLAN_LINES = 8
_THOUGHT_LINES = 3
TEXT_LINES = 12
"""The most lines that are shown of a text that is being written."""
_CALLS = 6
_SILENT = 10.0
"""Seconds without a word of the model after which that is said."""


def draw_live(talk: Chat, renderer: Renderer, rows: int) -> list[str]:
    """Return the lines of the live region, at most so many: the last ones count."""
    transcript = talk.transcript
    lines: list[str] = []
    if tail := transcript.thinking.tail.strip():
        lines += renderer.block(Block("thought", tail))[-_THOUGHT_LINES:]
    if piece := transcript.open_piece(max(min(rows, TEXT_LINES), 1)):
        lines += [*renderer.piece(piece), ""]
    # What waits for the person does not run, and the question shows the call that it is about.
    asked = talk.question.call_id if talk.question else None
    mark = renderer.look.dot if talk.question else spin(renderer.look)
    below = [*_calls(transcript, renderer, mark, asked), *_tree(transcript, renderer, mark)]
    below += _background(talk, renderer, mark)
    below += _own(talk, renderer)
    if talk.working and transcript.plan:
        below += renderer.plan(transcript.plan, _PLAN_LINES)
    below += [renderer.line(f"queued: {text}", "dim") for text in talk.queued[-3:]]
    if talk.working or talk.is_stopping or (talk.ready is None and not talk.questions):
        below.append(_spinner_line(talk, renderer, mark))
    lines = [*lines[-max(rows - len(below), 1) :], *below] if below else lines[:-1]
    return lines[-max(rows, 1) :]


def _spinner_line(talk: Chat, renderer: Renderer, mark: str) -> str:
    if talk.ready is None:
        return renderer.line(f"{mark} starting", "dim")
    dot = renderer.look.dot
    if talk.is_stopping:
        return renderer.line(f"{mark} stopping {dot} {talk.stop_key} {talk.stops_again}", "dim")
    doing = "waiting for you" if talk.questions else describe_work(talk.clock.turn, talk.silence, dot)
    return renderer.line(f"{mark} {doing} {dot} {talk.stop_key} stops", "dim")


def describe_work(seconds: float, silence: float, dot: str) -> str:
    """Say for how long the agent works, and that nothing has come from its model for long."""
    parts = ["working", short_time(seconds) if seconds >= 1 else ""]
    parts.append(f"nothing from the model for {short_time(silence)}" if silence >= _SILENT else "")
    return f" {dot} ".join(filter(None, parts))


def spin(look: Look) -> str:
    """Return the character that shows, by changing, that something goes on."""
    return look.spinner[int(time.monotonic() * 10) % len(look.spinner)]


def _calls(transcript: Transcript, renderer: Renderer, mark: str, asked: object) -> Iterator[str]:
    running = [call for number, call in transcript.calls.items() if call.agent is None and number != asked]
    for call in running[-_CALLS:]:
        yield from _call(call, transcript, renderer, mark)


def _call(call: Call, transcript: Transcript, renderer: Renderer, mark: str) -> Iterator[str]:
    seconds = transcript.clock() - call.since
    took = f" ({short_time(seconds)})" if seconds >= 1 else ""
    yield renderer.line(f"{mark} {call.line}{took}")
    for line in call.lines()[-_OUTPUT_LINES:]:
        yield renderer.output(line)


def _own(talk: Chat, renderer: Renderer) -> Iterator[str]:
    if own := talk.transcript.own:
        seconds = talk.transcript.clock() - own.since
        stops = f"{talk.stop_key} stops it"
        # First, since a command may be long.
        parts = [own.label, short_time(seconds) if seconds >= 1 else "", stops, own.line]
        facts = f" {renderer.look.dot} ".join(filter(None, parts))
        yield renderer.line(f"{spin(renderer.look)} {facts}")
        for line in own.lines()[-_OUTPUT_LINES:]:
            yield renderer.output(line)


def _background(talk: Chat, renderer: Renderer, mark: str) -> Iterator[str]:
    for call in talk.transcript.background.values():
        if talk.working:
            yield from _call(call, talk.transcript, renderer, mark)
        else:
            # What it prints, and its end, come with the next turn.
            yield renderer.line(
                f"{renderer.look.dot} {call.line} {renderer.look.dot} in the background", "dim"
            )


def _tree(
    transcript: Transcript, renderer: Renderer, mark: str, parent: str | None = None, indent: str = ""
) -> Iterator[str]:
    if len(indent) > 8:
        return
    now = transcript.clock()
    for label, each in transcript.subagents.items():
        if each.parent != parent:
            continue
        took = short_time(now - each.since)
        calls = f"{each.calls} call{'s' * (each.calls > 1)}, " if each.calls else ""
        yield renderer.line(f"{mark} {label} ({calls}{took}): {each.task}", "magenta", indent)
        if each.last.strip():
            yield renderer.line(each.last.strip().split("\n")[-1], "dim", f"{indent}    ")
        yield from _tree(transcript, renderer, mark, label, f"{indent}  ")
