"""What is too much for a summarizer is made to fit: the longest texts lose their middle, then messages go."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar, cast

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

SHORTEST: Final = 240
_TRIES: Final = 6
_SPARE: Final = 0.95
_PER_MESSAGE: Final = 60
_HEAD: Final = 0.6
T = TypeVar("T")


def fitted(
    messages: Sequence[AnyMessage], room: int, size: Callable[[Sequence[AnyMessage]], int]
) -> list[AnyMessage]:
    """Return messages of at most `room` tokens as `size` counts them, if there is any way."""
    shown = list(messages)
    characters = sum(len(text) for each in messages for text in _texts(each))
    for _ in range(_TRIES):
        tokens = size(shown)
        if tokens <= room:
            break
        characters = int(characters * room / tokens * _SPARE)
        shown = _within(messages, characters)
    return shown


def shortened(text: str, most: int) -> str:
    """Return the beginning and the end of a text, and say how much is left out between them."""
    if len(text) <= most:
        return text
    note = f" ... [{len(text) - most} characters left out] ... "
    kept = max(most - len(note), 0)
    head = int(kept * _HEAD)
    return f"{text[:head]}{note}{text[len(text) - (kept - head) :]}"


def _within(messages: Sequence[AnyMessage], characters: int) -> list[AnyMessage]:
    lengths = [len(text) for each in messages for text in _texts(each)]
    most = _longest(lengths, characters)
    if most < SHORTEST:
        messages = _ends(messages, max(characters // (SHORTEST + _PER_MESSAGE), 2))
        most = max(_longest([len(text) for each in messages for text in _texts(each)], characters), 1)
    return [_cut(each, most) for each in messages]


def _longest(lengths: Sequence[int], room: int) -> int:
    """Return how long each text may be so that all together have room."""
    left = room
    for at, length in enumerate(sorted(lengths)):
        share = left // (len(lengths) - at)
        if length > share:
            return share
        left -= length
    return max(lengths, default=0)


def _ends(messages: Sequence[AnyMessage], many: int) -> list[AnyMessage]:
    """Keep so many messages: the first, and more of the last."""
    if many >= len(messages):
        return list(messages)
    head = max(many // 4, 1)
    note = HumanMessage(f"[{len(messages) - many} messages left out here]")
    return [*messages[:head], note, *messages[len(messages) - (many - head) :]]


def _texts(message: AnyMessage) -> Iterator[str]:
    yield from _strings(message.content)
    if isinstance(message, AIMessage):
        yield from _strings([call["args"] for call in message.tool_calls])


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in cast("list[Any]", value):
            yield from _strings(each)
    elif isinstance(value, dict):
        yield from _strings(list(cast("dict[Any, Any]", value).values()))


def _cut(message: AnyMessage, most: int) -> AnyMessage:
    changed: dict[str, Any] = {"content": _cut_in(message.content, most)}
    if isinstance(message, AIMessage):
        changed["tool_calls"] = _cut_in(message.tool_calls, most)
    return message.model_copy(update=changed)


def _cut_in(value: T, most: int) -> T:
    if isinstance(value, str):
        return cast(T, shortened(value, most))
    if isinstance(value, list):
        return cast(T, [_cut_in(each, most) for each in cast("list[Any]", value)])
    if isinstance(value, dict):
        given = cast("dict[Any, Any]", value)
        return cast(T, {key: _cut_in(each, most) for key, each in given.items()})
    return value
