"""What a finished task says: its answer as text and media, in the forms that a model reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from deepagents._text import truncate
from deepagents.middleware.async_subagents.state import AsyncTask
from deepagents.middleware.async_subagents.status import Standing
from deepagents.tools._tool import Content

MOST_CHARACTERS: Final = 80_000
NO_OUTPUT: Final = "The task completed with no output."
_MEDIA: Final = ("image", "image_url", "audio", "input_audio", "video", "file")
"""Compared, not hashed: what a server sends in the place of a type may be anything."""
_CUT: Final = "\n... [cut; check_async_task returns the whole answer]"
_NOTES: Final = {
    "pending": "It has not begun yet. Do not wait for it: its result will be announced.",
    "waiting": "It waits for a person. Tell the user what it asks, and do not answer it yourself.",
}
_ASKED: Final = ("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")

Block = dict[Any, Any]


@dataclass(frozen=True, slots=True)
class Said:
    """The answer of a task: its blocks of text and media, in order."""

    blocks: tuple[Block, ...]

    @property
    def text(self) -> str:
        """All text, joined."""
        return "\n".join(block["text"] for block in self.blocks if block["type"] == "text")

    @property
    def has_media(self) -> bool:
        """Whether there is more than text."""
        return any(block["type"] != "text" for block in self.blocks)


def said_in(values: Mapping[str, Any]) -> Said:
    """Find the answer in a thread's values: its last message, without reasoning and tool calls."""
    messages: Any = values.get("messages")
    last: Any = cast("list[Any]", messages)[-1] if isinstance(messages, list) and messages else None
    if not isinstance(last, Mapping):
        return Said(())
    return said_as(cast("Mapping[str, Any]", last).get("content"))


def said_as(content: object) -> Said:
    """Take the content of a message: a text, or blocks of which text and media are kept."""
    if isinstance(content, str):
        return Said(({"type": "text", "text": content},) if content.strip() else ())
    given = cast("list[object]", content) if isinstance(content, list) else []
    return Said(tuple(block for each in given if (block := _block(each))))


def _block(given: object) -> Block | None:
    if isinstance(given, str):
        return {"type": "text", "text": given} if given.strip() else None
    block = dict(cast("Mapping[Any, Any]", given)) if isinstance(given, Mapping) else {}
    if block.get("type") == "text":
        text = block.get("text")
        return {"type": "text", "text": text} if isinstance(text, str) and text.strip() else None
    return block if block.get("type") in _MEDIA else None


def report(task: AsyncTask, standing: Standing) -> Content:
    """Say how a task stands, as JSON; media follow it in their order."""
    told: dict[str, Any] = {"status": standing.status, "thread_id": task["thread_id"]}
    match standing.status:
        case "success":
            said = said_in(standing.values)
            if said.has_media:
                return [{"type": "text", "text": as_json(told)}, *said.blocks]
            told["result"] = said.text or NO_OUTPUT
        case "error":
            told["error"] = standing.error
        case "waiting":
            told |= {"interrupts": list(standing.interrupts), "note": _NOTES["waiting"]}
        case status:
            told |= {"note": _NOTES[status]} if status in _NOTES else {}
    return as_json(told)


def as_json(value: Any) -> str:
    """Write a value as one line."""
    return json.dumps(value, ensure_ascii=False, default=str)


def escaped(text: str, most: int | None = MOST_CHARACTERS) -> str:
    """Make text of others unable to pose as a tag, and no longer than it may be."""
    cut = text if most is None else truncate(text, most, _CUT)
    for character, instead in _ASKED:
        cut = cut.replace(character, instead)
    return cut
