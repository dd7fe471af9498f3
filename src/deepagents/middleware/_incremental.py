"""Remember what was worked out about a history, so that each model call looks only at what is new.

A conversation grows at its end. Whatever asks about all of it asks here: work for a model call must not grow
with the length of the history.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from operator import is_
from typing import Final, Generic, TypeVar

from langchain_core.messages import AnyMessage

V = TypeVar("V")
_MOST_HISTORIES: Final = 8
_MOST_KEYS: Final = 64


class IncrementalCache(Generic[V]):
    """Remembers the last few lists of messages, each with its result; any of them may be forgotten.

    Whether a list begins with another one is decided by the identity of each message, which is compared in C
    (15 µs for 1,000 messages). So messages must not be changed in place.
    """

    _known: Sequence[tuple[tuple[object, ...], Sequence[AnyMessage], V]] = ()

    def of(
        self,
        messages: Sequence[AnyMessage],
        begin: Callable[[], V],
        go_on: Callable[[V, Sequence[AnyMessage]], V],
        about: tuple[object, ...] = (),
    ) -> V:
        """Return `go_on(result of a known beginning, the rest)`; without one, all messages are the rest.

        Results hold for the objects that they are `about`; `go_on` must not change what it is given.
        """
        known = self._known
        for at, (subject, before, result) in enumerate(known):
            if before and len(before) <= len(messages) and _same(subject, about) and _same(before, messages):
                rest = messages[len(before) :]
                result = go_on(result, rest) if rest else result
                # A new list instead of changes in place: other threads may be reading the old one.
                self._known = [(about, messages, result), *known[:at], *known[at + 1 :]]
                return result
        result = go_on(begin(), messages)
        self._known = [(about, messages, result), *known[: _MOST_HISTORIES - 1]]
        return result


def _same(some: Sequence[object], others: Sequence[object]) -> bool:
    """Return whether both hold the same objects, as far as both go."""
    return all(map(is_, some, others))


class BoundedCache(OrderedDict[Hashable, V]):
    """Remembers the last values by key; the oldest go first, and any may be forgotten."""

    def __setitem__(self, key: Hashable, value: V) -> None:
        # Each of these is one operation in C, so threads need no lock.
        super().__setitem__(key, value)
        if len(self) > _MOST_KEYS:
            self.popitem(last=False)
