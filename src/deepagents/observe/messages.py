"""Make events of one message of a model: its text, its reasoning and its usage."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage
from pydantic import BaseModel

from deepagents.events import Event, Reasoning, Token, Usage
from deepagents.observe.roster import Author


def read_message(message: AIMessage, author: Author) -> Iterator[Event]:
    """Return the reasoning and the text of a message, or of a piece of one."""
    if not isinstance(message.content, str) or message.additional_kwargs:
        for block in message.content_blocks:
            thought = block.get("reasoning") if block["type"] == "reasoning" else None
            if thought:
                yield Reasoning(str(thought), **author)
    if message.text:
        yield Token(message.text, **author)


def read_usage(message: BaseMessage, author: Author) -> Iterator[Event]:
    """Return what a message took, where its provider tells."""
    usage = message.usage_metadata if isinstance(message, AIMessage) else None
    if not usage:
        return
    given = usage.get("input_token_details") or {}
    made = usage.get("output_token_details") or {}
    yield Usage(
        usage["input_tokens"],
        usage["output_tokens"],
        given.get("cache_read") or 0,
        _cache_written(given),
        made.get("reasoning") or 0,
        **author,
    )


def _cache_written(given: Mapping[str, Any]) -> int:
    """Add up what was written to a cache: where a provider tells by how long it lasts, it tells no sum."""
    lasting = (given.get(f"ephemeral_{time}_input_tokens") or 0 for time in ("5m", "1h"))
    return given.get("cache_creation") or sum(lasting)


def to_plain(answer: Any) -> Any:
    """Return a structured answer as plain values."""
    if isinstance(answer, BaseModel):
        return answer.model_dump(mode="json")
    if is_dataclass(answer) and not isinstance(answer, type):
        return asdict(answer)
    return dict(cast("Mapping[str, Any]", answer)) if isinstance(answer, Mapping) else answer


def in_words(structured: Any) -> str:
    """Write a structured answer down as JSON."""
    return json.dumps(structured, default=str, ensure_ascii=False)
