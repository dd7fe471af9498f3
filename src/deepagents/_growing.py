"""Channels that are saved as what is new at each step, and whole ever more rarely as they grow.

LangGraph's delta channel saves a whole copy every so many writes. At a fixed distance the whole copies alone
would grow with the square of the number of steps. `tests/agents/test_growing.py` fails when an upgrade
changes what is relied on here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import groupby
from typing import Any, Final, NamedTuple, Self, cast

from langchain_core.messages import BaseMessage, RemoveMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.graph import message as langgraph_message
from langgraph.graph.message import REMOVE_ALL_MESSAGES

SNAPSHOT_AFTER: Final = 50
"""The least number of writes between two whole copies."""
_SHARE: Final = 2
_LATER: Final = sys.maxsize
_MOST_PARTS: Final = 10_000
_OF_A_PART: Final = 4
_OF_A_MESSAGE: Final = 200


def weight(value: Any, most_parts: int = sys.maxsize) -> int:
    """Estimate the bytes that a value takes when saved, looking at so many of its parts at most."""
    total, waiting = 0, [value]
    while waiting and most_parts > 0:
        each = waiting.pop()
        most_parts -= 1
        total += _OF_A_PART
        if isinstance(each, str | bytes):
            total += len(each)
        elif isinstance(each, dict):
            inside = cast("dict[Any, Any]", each)
            waiting += inside.keys()
            waiting += inside.values()
        elif isinstance(each, list | tuple | set | frozenset):
            waiting += cast("list[Any]", each)
        elif isinstance(each, BaseMessage):
            total += _OF_A_MESSAGE
            waiting += vars(each).values()
    return total


class GrowingChannel(DeltaChannel[Any]):
    """A delta channel that is saved whole when what was written since reaches half of what it holds.

    `snapshot_frequency` is the least number of writes between two whole copies. A running graph reads it only
    to ask, when it saves, whether a whole copy is due. It may ask more than once, and would lose writes if
    the answers differed, so the answer changes with the next write only.
    """

    _least: int
    _writes: int = 0
    _fresh: int = 0
    _whole: int | None = None
    _due: bool = False
    _asked: bool = False

    def __init__(
        self,
        reducer: Callable[[Any, Sequence[Any]], Any],
        typ: type[Any] | None = None,
        *,
        snapshot_frequency: int = SNAPSHOT_AFTER,
    ) -> None:
        super().__init__(reducer, typ, snapshot_frequency=snapshot_frequency)

    def _distance(self) -> int:
        if not self.is_available():
            return self._least
        self._asked = self._due
        return 1 if self._due else _LATER

    def _set_distance(self, least: int) -> None:
        self._least = least

    snapshot_frequency = cast(int, property(_distance, _set_distance))

    def copy(self) -> Self:
        """Return an independent channel; its reducer makes new values, so both may hold this one."""
        twin = type(self).__new__(type(self))
        for slot in ("key", "typ", "reducer", "value"):
            setattr(twin, slot, getattr(self, slot))
        vars(twin).update(vars(self))
        return twin

    def update(self, values: Sequence[Any]) -> bool:
        """Fold the writes of one step; tell whether there were any."""
        changed = super().update(values)
        if values:
            self.count(values)
        return changed

    def replay_writes(self, writes: Sequence[Any]) -> None:
        """Fold the writes saved since the last whole copy, oldest first."""
        super().replay_writes(writes)
        self.recount([value for _, _, value in writes])

    def recount(self, values: Sequence[Any]) -> None:
        """Note what was saved since the last whole copy."""
        self._writes += len(values)
        self._fresh += sum(weight(value, _MOST_PARTS) for value in values)

    def count(self, values: Sequence[Any]) -> None:
        """Note what a step wrote, and whether that makes a whole copy due."""
        if self._asked:
            self._writes, self._fresh, self._whole, self._due, self._asked = 0, 0, None, False, False
        self._writes += 1
        self._fresh += weight(values, _MOST_PARTS)
        if self._writes < self._least:
            return
        if self._whole is None:
            self._whole = weight(self.value)
        self._due = self._fresh * _SHARE >= self._whole


class MessagesChannel(GrowingChannel):
    """A delta channel of messages that also understands `RemoveMessage(REMOVE_ALL_MESSAGES)`.

    LangGraph gives ids to strings, tuples and dicts only where the channel's reducer is its own function
    object, so that object stays the reducer. It looks at the whole history for each write; messages that are
    new or stand in for older ones, which is nearly all there ever is, are put in place here without that. An
    empty id is none.
    """

    _places: dict[str, int] | None = None
    """Where the message of each id stands. Copies share it: entries never change, and are checked."""
    _placed: int = 0
    """How many messages `_places` speaks of."""

    def update(self, values: Sequence[Any]) -> bool:
        """Fold the writes of one step; tell whether there were any."""
        if not values:
            return False
        if written := self._messages_in(values):
            self._put(written)
            self.count(values)
            return True
        self._places = None
        reset, rest = _after_last_reset(values)
        if reset:
            self.value, self._whole = [], None
        return super().update(rest) or reset

    def replay_writes(self, writes: Sequence[Any]) -> None:
        """Fold the writes saved since the last whole copy, oldest first."""
        self._places = None
        reset, rest = _after_last_reset([value for _, _, value in writes])
        if reset:
            self.value = []
        for all_messages, some in groupby(rest, lambda value: bool(self._messages_in([value]))):
            if all_messages:
                self._put(self._messages_in(list(some)))
                continue
            self._places = None
            DeltaChannel[Any].replay_writes(self, [("", self.key, value) for value in some])
        self.recount(rest)

    def _messages_in(self, values: Sequence[Any]) -> list[BaseMessage]:
        """Return what is written when all of it is messages, else nothing."""
        written: list[Any] = []
        for value in values:
            written += cast("list[Any]", value) if isinstance(value, list) else [value]
        return written if self.is_available() and all(map(_is_message, written)) else []

    def _put(self, written: Sequence[BaseMessage]) -> None:
        standing: list[BaseMessage] = [*self.value]
        places = self._places
        if places is None or self._placed != len(standing):
            places = _places_of(standing)
        for each in written:
            end = len(standing)
            at = places.setdefault(each.id, end) if each.id else end
            if at != end and (at > end or standing[at].id != each.id):
                places = _places_of(standing)
                at = places.setdefault(str(each.id), end)
            standing[at : at + 1] = [each]
        self.value, self._places, self._placed = standing, places, len(standing)


class Handed(NamedTuple):
    """What a caller hands to a graph that it runs: the value, and the name that it goes by in checkpoints."""

    name: str
    value: Mapping[str, Any]


_HANDED: ContextVar[Handed | None] = ContextVar("deepagents_handed", default=None)
_MARK: Final = "__handed_down__"


@contextmanager
def handing_down(handed: Handed) -> Generator[None]:
    """Let channels of graphs that run meanwhile begin with this value where they were given its mark."""
    token = _HANDED.set(handed)
    try:
        yield
    finally:
        _HANDED.reset(token)


def mark_of(handed: Handed) -> dict[str, Any]:
    """Return the write that stands for a value in the input and the checkpoints of a graph."""
    return {_MARK: handed.name}


class HandedDownChannel(GrowingChannel):
    """A channel of a mapping that may begin with what the caller of its graph holds, and does not save that.

    Whoever reads it where that value is not at hand sees what was written since, and below the mark the
    writes as they came, so that nothing is lost when it is taken up again.
    """

    def from_checkpoint(self, checkpoint: Any) -> Self:
        """Return a channel with what was saved, on top of what the caller holds where that was left open."""
        channel = super().from_checkpoint(checkpoint)
        waiting = channel.value.get(_MARK)
        if waiting is not None:
            channel.begin(waiting[0], waiting[1:])
        return channel

    def update(self, values: Sequence[Any]) -> bool:
        """Fold the writes of one step; tell whether there were any."""
        return super().update(self._begun(values)) or bool(values)

    def replay_writes(self, writes: Sequence[Any]) -> None:
        """Fold the writes saved since the last whole copy, oldest first."""
        rest = self._begun([value for _, _, value in writes])
        super().replay_writes([("", self.key, value) for value in rest])

    def begin(self, name: str, writes: Sequence[Any]) -> None:
        """Begin with what the caller holds under this name, and fold writes on top of it."""
        handed = _HANDED.get()
        known = handed is not None and handed.name == name
        base = dict(handed.value) if handed is not None and known else {}
        self.value = self.reducer(base, list(writes))
        if not known:
            self.value = {**self.value, _MARK: [name, *writes]}

    def _begun(self, values: Sequence[Any]) -> list[Any]:
        """Begin with the last mark among these writes, and return the writes that follow it."""
        rest = list(values)
        for at in range(len(rest) - 1, -1, -1):
            if isinstance(rest[at], dict) and _MARK in rest[at]:
                self.begin(rest[at][_MARK], [])
                rest = rest[at + 1 :]
                break
        if self.is_available() and rest and _MARK in self.value:
            self.begin(self.value[_MARK][0], [*self.value[_MARK][1:], *rest])
            return []
        return rest


def messages_channel() -> MessagesChannel:
    """Make the channel that holds an agent's messages."""
    reducer: Callable[..., Any] = vars(langgraph_message)["_messages_delta_reducer"]
    return MessagesChannel(reducer)


def _places_of(messages: Sequence[BaseMessage]) -> dict[str, int]:
    return {each.id: at for at, each in enumerate(messages) if each.id}


def _after_last_reset(values: Sequence[Any]) -> tuple[bool, list[Any]]:
    for at in range(len(values) - 1, -1, -1):
        write: list[Any] = values[at] if isinstance(values[at], list) else [values[at]]
        for place in range(len(write) - 1, -1, -1):
            if _is_reset(write[place]):
                return True, [write[place + 1 :], *values[at + 1 :]]
    return False, list(values)


def _is_message(item: Any) -> bool:
    return isinstance(item, BaseMessage) and not isinstance(item, RemoveMessage)


def _is_reset(item: Any) -> bool:
    return isinstance(item, RemoveMessage) and item.id == REMOVE_ALL_MESSAGES
