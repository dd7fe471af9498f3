"""What one message, or one tool, is likely to cost in tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final, cast

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.tools import BaseTool

from deepagents.middleware.summarization.caches import BoundedCache

_MEDIA: Final = frozenset(
    {"file", "audio", "video", "document", "input_image", "input_audio", "input_file", "media"}
)
_CHARACTERS_PER_TOKEN: Final = 4
_MEDIA_CHARACTERS_PER_TOKEN: Final = 50
_LEAST_MEDIA: Final = 85
_MOST_MEDIA: Final = 30_000
_MOST_TOOLS: Final = 512
_PLAIN: Final = frozenset({"text", "refusal", "tool_use", "tool_call", "function_call"})
_REASONING: Final = ("reason", "think", "thought")


def tokens_of(message: BaseMessage, counter: Callable[..., int] = count_tokens_approximately) -> int:
    """Estimate a message, with media by their size and with calls that its content does not repeat."""
    content: list[Any] = message.content if isinstance(message.content, list) else []
    media = list(filter(_is_measured, content))
    rest = [block for block in content if not _is_measured(block)]
    tokens = counter([message.model_copy(update={"content": rest}) if media else message])
    return tokens + sum(map(_media_tokens, media)) + _hidden_calls(message)


def largest_medium(message: BaseMessage) -> int:
    """Estimate the largest of the media that count by their size."""
    content: list[Any] = message.content if isinstance(message.content, list) else []
    return max((_media_tokens(block) for block in content if _is_measured(block)), default=0)


def unsent_reasoning(message: BaseMessage) -> int:
    """Return the tokens of reasoning that an answer was reported with, but does not bear, so are not sent."""
    usage = message.usage_metadata if isinstance(message, AIMessage) else None
    tokens = usage.get("output_token_details", {}).get("reasoning") if usage else None
    return tokens if tokens and not _bears_reasoning(message) else 0


def _bears_reasoning(message: BaseMessage) -> bool:
    if any(mark in key.lower() for key in message.additional_kwargs for mark in _REASONING):
        return True
    content: list[Any] = message.content if isinstance(message.content, list) else []
    return not all(isinstance(block, str) or _is_plain(block) for block in content)


def _is_plain(block: Mapping[str, Any]) -> bool:
    return block_type(block) in _PLAIN and not {"extras", "signature"} & block.keys()


def _media_tokens(block: Any) -> int:
    characters = sum(map(len, _texts(block)))
    return min(max(_LEAST_MEDIA, characters // _MEDIA_CHARACTERS_PER_TOKEN), _MOST_MEDIA)


def _hidden_calls(message: BaseMessage) -> int:
    """Estimate the calls that the usual counter does not see: malformed ones, and those beside a list."""
    if not isinstance(message, AIMessage):
        return 0
    calls: list[Any] = list(message.invalid_tool_calls)
    shown: set[str | None] = set()
    if isinstance(message.content, list):
        calls += message.tool_calls
        shown = set(map(_call_id, message.content))
    hidden = [call for call in calls if call["id"] not in shown]
    return len(repr(hidden)) // _CHARACTERS_PER_TOKEN if hidden else 0


def tool_tokens(tool: Any) -> int:
    """Estimate the schema of a tool; those of many agents that are described alike are counted once."""
    alike = (tool.name, tool.description, tool.args_schema) if isinstance(tool, BaseTool) else None
    if alike is None or not isinstance(alike[-1], type):
        return count_tokens_approximately([], tools=[tool])
    known = _known_tools().get(alike)
    if known is None:
        known = count_tokens_approximately([], tools=[tool])
        _known_tools().put(alike, known)
    return known


@cache
def _known_tools() -> BoundedCache[int]:
    return BoundedCache(_MOST_TOOLS)


def _is_measured(block: Any) -> bool:
    """Tell whether a block counts by its size: media, and what the usual counter cannot bear."""
    return isinstance(block, dict) and (
        block_type(block) in _MEDIA or (block_type(block) is None and "type" in block)
    )


def block_type(block: Any) -> str | None:
    """Return the type that a block of content says it has."""
    kind = cast("dict[str, Any]", block).get("type") if isinstance(block, dict) else None
    return kind if isinstance(kind, str) else None


def _call_id(block: Any) -> str | None:
    if not isinstance(block, dict):
        return None
    named = cast("dict[str, Any]", block)
    call_id = named.get("call_id") or named.get("id")
    return call_id if isinstance(call_id, str) else None


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in cast("Mapping[Any, Any]", value).values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in cast("list[Any]", value):
            yield from _texts(each)
