"""What one message, or one tool, is likely to cost in tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.utils import count_tokens_approximately

_MEDIA: Final = frozenset(
    {"file", "audio", "video", "document", "input_image", "input_audio", "input_file", "media"}
)
_CHARACTERS_PER_TOKEN: Final = 4
_MEDIA_CHARACTERS_PER_TOKEN: Final = 50


def tokens_of(message: BaseMessage, counter: Callable[..., int] = count_tokens_approximately) -> int:
    """Estimate a message, with media by their size and with calls that its content does not repeat."""
    if isinstance(message.content, str):
        return counter([message])
    content: list[Any] = message.content
    media = [block for block in content if _kind(block) in _MEDIA]
    rest = [block for block in content if _kind(block) not in _MEDIA]
    tokens = counter([message.model_copy(update={"content": rest}) if media else message])
    tokens += sum(len(text) for block in media for text in _texts(block)) // _MEDIA_CHARACTERS_PER_TOKEN
    if isinstance(message, AIMessage):
        shown = {_call_id(block) for block in content}
        hidden = [call for call in message.tool_calls if call["id"] not in shown]
        tokens += len(repr(hidden)) // _CHARACTERS_PER_TOKEN if hidden else 0
    return tokens


def tool_tokens(tool: Any) -> int:
    """Estimate the schema of a tool."""
    return count_tokens_approximately([], tools=[tool])


def _kind(block: Any) -> str | None:
    kind = cast("dict[str, Any]", block).get("type") if isinstance(block, dict) else None
    return kind if isinstance(kind, str) else None


def _call_id(block: Any) -> object:
    if not isinstance(block, dict):
        return None
    named = cast("dict[str, Any]", block)
    return named.get("call_id") or named.get("id")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in cast("Mapping[Any, Any]", value).values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in cast("list[Any]", value):
            yield from _texts(each)
