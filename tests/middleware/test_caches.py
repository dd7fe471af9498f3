"""What was worked out about an object is remembered while it lives, and never told of another."""

from __future__ import annotations

import gc
import weakref
from typing import Any

from langchain_core.messages import HumanMessage

from deepagents.middleware.summarization.caches import IdentityCache


def test_a_value_is_made_once() -> None:
    made: list[str] = []
    lengths: IdentityCache[int] = IdentityCache()

    def length(message: HumanMessage) -> int:
        made.append(message.text)
        return len(message.text)

    message = HumanMessage("hello")
    assert [lengths.of(message, length), lengths.of(message, length)] == [5, 5]
    assert lengths.of(HumanMessage("hello"), length) == 5
    assert made == ["hello", "hello"]


def test_an_identity_that_is_used_again_does_not_answer_for_what_is_gone() -> None:
    lengths: IdentityCache[int] = IdentityCache()
    seen: set[int] = set()
    again = False
    for size in range(1, 200):
        message = HumanMessage("x" * size)
        again = again or id(message) in seen
        seen.add(id(message))
        assert lengths.of(message, lambda each: len(each.text)) == size

    assert again


class Length:
    """A value whose end can be seen."""


def test_what_is_gone_is_forgotten() -> None:
    lengths: IdentityCache[Length] = IdentityCache()
    messages = [HumanMessage("x") for _ in range(100)]
    values = [weakref.ref(lengths.put(message, Length())) for message in messages]
    assert all(value() is not None for value in values)

    messages.clear()
    gc.collect()
    assert all(value() is None for value in values)


def test_what_cannot_be_watched_is_held_up_to_a_number() -> None:
    lengths: IdentityCache[Length] = IdentityCache()
    tools: list[dict[str, Any]] = [{"name": str(number)} for number in range(2500)]
    values: list[weakref.ref[Length]] = []
    for tool in tools:
        value = lengths.put(tool, Length())
        assert lengths.get(tool) is value
        values.append(weakref.ref(value))

    assert 0 < sum(each() is not None for each in values) <= 1000

    assert lengths.get(dict(tools[-1])) is None
