"""What was worked out about a list of messages, taken up again where the next list begins with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_
from typing import Generic, TypeVar

from langchain_core.messages import AnyMessage

V = TypeVar("V")
_MOST = 8


class Beginnings(Generic[V]):
    """Remembers the last few lists, each with its result; a result may be forgotten at any time.

    A conversation grows at its end, so that only what is new needs a look. Whether a list begins with another
    one is told by the identity of each message: results may hold the messages themselves.
    """

    def __init__(self) -> None:
        self._known: list[tuple[tuple[object, ...], Sequence[AnyMessage], V]] = []

    def of(
        self,
        messages: Sequence[AnyMessage],
        begin: Callable[[], V],
        go_on: Callable[[V, Sequence[AnyMessage]], V],
        about: tuple[object, ...] = (),
    ) -> V:
        """Return `go_on(result of the beginning, the rest)`; without a known beginning all is the rest.

        Results hold for the objects that they are `about`; `go_on` leaves what it is given as it is.
        """
        known = self._known
        for at, (subject, before, result) in enumerate(known):
            if before and len(before) <= len(messages) and _same(subject, about) and _same(before, messages):
                rest = messages[len(before) :]
                result = go_on(result, rest) if rest else result
                self._known = [(about, messages, result), *known[:at], *known[at + 1 :]]
                return result
        result = go_on(begin(), messages)
        self._known = [(about, messages, result), *known[: _MOST - 1]]
        return result


def _same(some: Sequence[object], others: Sequence[object]) -> bool:
    """Tell whether the objects of both are the same ones, as far as both go."""
    return all(map(is_, some, others))
