"""Turn messages that come in chunks into blocks that begin, grow and end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import orjson
from langchain_core.messages import AIMessage, AIMessageChunk
from pydantic import ValidationError

from deepagents._values import field, recordclass

_GROWS: Final = {"text": "text", "reasoning": "reasoning", "tool_call_chunk": "args"}
"""The field of a block that comes in pieces."""
_HEAVY: Final = ("args", "data", "base64", "value", "output")
"""Fields that are shown once, at the end of a block."""


@recordclass
class _Block:
    """A block of a message, as far as it is known."""

    index: int
    known: dict[str, Any]
    pieces: list[str] = field(default_factory=list[str])

    def whole(self) -> dict[str, Any]:
        """Return the block at its end."""
        kind = self.known["type"]
        if kind not in _GROWS:
            return self.known
        text = "".join(self.pieces)
        if kind != "tool_call_chunk":
            return {**self.known, _GROWS[kind]: text}
        call = {"id": self.known.get("id"), "name": self.known.get("name")}
        try:
            return {"type": "tool_call", **call, "args": orjson.loads(text or "{}")}
        except orjson.JSONDecodeError as error:
            return {"type": "invalid_tool_call", **call, "args": text, "error": error.msg}


@recordclass
class _Open:
    """A message that has begun."""

    blocks: dict[Any, _Block] = field(default_factory=dict[Any, _Block])
    usage: dict[str, int] = field(default_factory=dict[str, int])


class Messages:
    """The messages of one graph that come in now; those of tools and people are part of the values only."""

    def __init__(self) -> None:
        self._open: dict[str, _Open] = {}
        self._done: set[str] = set()

    def take(self, given: Mapping[str, Any], metadata: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Tell a message, or a chunk of one."""
        message = _read(given)
        key = str(given.get("id"))
        if message is None or key in self._done:
            return
        opened = self._open.get(key)
        if opened is None:
            opened = self._open[key] = _Open()
            node = {"langgraph_node": metadata["langgraph_node"]} if "langgraph_node" in metadata else {}
            yield {"event": "message-start", "role": "ai", "id": key, "metadata": node}
        for place, block in enumerate(message.content_blocks):
            yield from _with_message(key, _grow(opened, place, cast(dict[str, Any], block)))
        for name, count in (message.usage_metadata or {}).items():
            if isinstance(count, int):
                opened.usage[name] = opened.usage.get(name, 0) + count
        if not isinstance(message, AIMessageChunk) or message.chunk_position == "last":
            yield from self._finish(key)

    def finish_all(self) -> Iterator[dict[str, Any]]:
        """Tell the end of messages whose last chunk did not say that it is the last."""
        for key in [*self._open]:
            yield from self._finish(key)

    def _finish(self, key: str) -> Iterator[dict[str, Any]]:
        opened = self._open.pop(key)
        self._done.add(key)
        ends = (
            {"event": "content-block-finish", "index": block.index, "content": block.whole()}
            for block in opened.blocks.values()
        )
        yield from _with_message(key, ends)
        usage = {"usage": opened.usage} if opened.usage else {}
        yield from _with_message(key, [{"event": "message-finish", **usage}])


def _with_message(key: str, events: Any) -> Iterator[dict[str, Any]]:
    # With its message, for two models may speak at once.
    yield from ({**event, "message_id": key} for event in events)


def _read(given: Mapping[str, Any]) -> AIMessage | None:
    kinds = {"AIMessageChunk": AIMessageChunk, "ai": AIMessage}
    try:
        made = kinds.get(str(given.get("type")))
        return made.model_validate(given) if made else None
    except ValidationError:
        # A message of another making, such as one with a type of its own.
        return None


def _grow(message: _Open, place: int, block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    kind = str(block.get("type"))
    index = block.pop("index", None)
    # A provider that numbers its blocks may number each kind anew.
    key = (kind, place if index is None else index)
    known = message.blocks.get(key)
    grows = _GROWS.get(kind)
    piece = str(block.get(grows) or "") if grows else ""
    if known is None:
        known = message.blocks[key] = _Block(len(message.blocks), block)
        begins = {name: value for name, value in block.items() if name not in _HEAVY}
        empty: dict[str, Any] = {grows: ""} if grows else {}
        if kind in ("tool_call", "server_tool_call"):
            empty = {"args": {}}
        yield {"event": "content-block-start", "index": known.index, "content": {**begins, **empty}}
    else:
        known.known |= {name: value for name, value in block.items() if value is not None}
    if piece:
        known.pieces.append(piece)
        name = {"text": "text", "reasoning": "reasoning"}.get(kind)
        delta = {"type": f"{name}-delta", name: piece} if name else {"type": "tool-call-delta", "args": piece}
        yield {"event": "content-block-delta", "index": known.index, "delta": delta}
