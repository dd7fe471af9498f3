"""Say what a provider is sent of a request, in order, and where a request parts from the one before."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final, Literal, TypeAlias, cast

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from deepagents._values import valueclass
from deepagents.middleware.prompt_caching.marks import MARK, remove_mark

Region: TypeAlias = Literal["tools", "system", "messages"]
"""A part of a request, in the order in which providers cache them."""
# `json.dumps` would make an encoder for each message.
_write: Final = json.JSONEncoder(ensure_ascii=False, default=str).encode
Part: TypeAlias = "BaseMessage | Mapping[str, Any]"


def serialise(part: Part) -> str:
    """Write a part of a request as a provider is sent it: without marks of a cache, ids and notes."""
    shown = _as_sent(part) if isinstance(part, BaseMessage) else remove_mark(part)
    try:
        return _write(shown)
    except TypeError:
        return _write(_with_text_keys(shown))


def _with_text_keys(value: Any) -> Any:
    """Return a value whose keys are text: what a tool returns may have others, such as tuples."""
    if isinstance(value, Mapping):
        given = cast("Mapping[Any, Any]", value)
        return {str(key): _with_text_keys(each) for key, each in given.items()}
    if isinstance(value, list | tuple):
        return [_with_text_keys(each) for each in cast("Sequence[Any]", value)]
    return value


def blocks_sent(message: BaseMessage | None) -> list[dict[str, Any]]:
    """Return the blocks of a message without marks, text as a block too."""
    given: Any = message.content if message else []
    content: list[Any] = [given] if isinstance(given, str) else given
    made = [{"type": "text", "text": each} if isinstance(each, str) else each for each in content]
    return [remove_mark(block) if MARK in block else block for block in made]


@valueclass
class Sent:
    """A request as later ones are compared with it: of a message a hash and how long it is."""

    tools: Sequence[Any]
    blocks: Sequence[dict[str, Any]]
    hashes: Sequence[int]
    lengths: Sequence[int]

    def find_break(self, after: Sent) -> tuple[Region, int] | None:
        """Return the first part that a later request does not begin with, and its index in its region."""
        if (at := _first_other(self.tools, after.tools)) is not None:
            return "tools", at
        if (at := _first_other(self.blocks, after.blocks)) is not None:
            return "system", at
        size = len(self.hashes)
        if self.hashes == after.hashes[:size]:
            return None
        pairs = enumerate(zip(self.hashes, after.hashes, strict=False))
        return "messages", next((at for at, (one, other) in pairs if one != other), len(after.hashes))

    def count_from(self, region: Region, index: int) -> int:
        """Return how many characters stand from a part on, all that is behind it included."""
        tools = self.tools[index:] if region == "tools" else ()
        blocks = self.blocks[index if region == "system" else 0 :] if region != "messages" else ()
        lengths = self.lengths[index if region == "messages" else 0 :]
        described = (convert_to_openai_tool(each) if isinstance(each, BaseTool) else each for each in tools)
        return sum(lengths) + sum(len(serialise(each)) for each in (*described, *blocks))


def _first_other(before: Sequence[Any], after: Sequence[Any]) -> int | None:
    """Return where two lists of tools or blocks part; a part that is added parts them too."""
    # Compared in C where nothing has changed, which is nearly always.
    if before == after:
        return None
    pairs = enumerate(zip_longest(map(_look_of, before), map(_look_of, after)))
    return next((at for at, (one, other) in pairs if one != other), None)


def _look_of(part: Any) -> Any:
    """Return what of a tool or block a provider is sent; caching middleware copies tools to mark them."""
    if isinstance(part, BaseTool):
        return part.name, part.description, part.args_schema
    return remove_mark(part)


def _as_sent(message: BaseMessage) -> dict[str, Any]:
    shown: dict[str, Any] = {"role": message.type, "content": blocks_sent(message), "name": message.name}
    match message:
        case AIMessage():
            shown["calls"] = [(call["id"], call["name"], call["args"]) for call in message.tool_calls]
        case ToolMessage():
            shown |= {"call": message.tool_call_id, "status": message.status}
        case _:
            pass
    return shown
