"""Channels that are saved as what is new at each step, and whole ever more rarely as they grow.

LangGraph's delta channel saves a whole copy every so many writes. At a fixed distance the whole copies alone
would grow with the square of the number of steps. `tests/agents/test_growing.py` fails when an upgrade
changes what is relied on here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Final, Self, cast

from langchain_core.messages import BaseMessage, RemoveMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from deepagents._state.runtime import MESSAGES_REDUCER, running_channel

SNAPSHOT_AFTER: Final = 50
"""The least number of writes between two whole copies."""
_TIMES: Final = 2
# LangGraph compares the number of writes with a distance, and never reaches this one.
_LATER: Final = sys.maxsize
# Bounds on the time that one estimate takes, whatever a caller writes into state.
_MOST_PARTS: Final = 10_000
_MOST_OF_ALL: Final = 1_000_000
_MOST_UNWEIGHED: Final = 64
"""Writes that are kept to be weighed. Where nobody asks for so long, nothing is saved: all counts as new."""
# Rough bytes that saving adds. The estimate decides only how often a whole copy is made.
_OF_A_PART: Final = 4
_OF_A_MESSAGE: Final = 200
_WITH_PARTS: Final = (dict, list, tuple, set, frozenset, BaseMessage)


def weight(value: Any, most_parts: int = sys.maxsize) -> int:
    """Estimate the bytes that a value takes when saved, looking at so many of its parts at most.

    What occurs several times is looked into once, and so is what refers to itself.
    """
    total, waiting, seen = 0, [value], set[int]()
    while waiting and most_parts > 0:
        each = waiting.pop()
        most_parts -= 1
        total += _OF_A_PART
        if isinstance(each, _WITH_PARTS):
            known = id(cast(object, each))
            if known in seen:
                continue
            seen.add(known)
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
    """A delta channel that is saved whole when what was written since reaches twice what it holds.

    `snapshot_frequency` is the least number of writes between two whole copies. A running graph reads it only
    to ask, when it saves, whether a whole copy is due. It may ask more than once, and would lose writes if
    the answers differed, so the answer changes with the next write only.
    """

    _least: int
    _writes: int = 0
    _fresh: int = 0
    _unweighed: tuple[Sequence[Any], ...] = ()
    _held: int | None = None
    _due: bool | None = False
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
        if self._due is None:
            self._due = self._is_due()
        self._asked = self._due
        return 1 if self._due else _LATER

    def _is_due(self) -> bool:
        """Return whether a whole copy is due; the whole is weighed here, where something is being saved."""
        if self._writes < self._least:
            return False
        if len(self._unweighed) > _MOST_UNWEIGHED:
            return True
        # Weighing costs as much as a write, and without a checkpointer nobody asks.
        self._fresh += sum(weight(values, _MOST_PARTS) for values in self._unweighed)
        self._unweighed = ()
        if self._held is None:
            self._held = self._estimate_held()
        return self._fresh >= self._held * _TIMES

    def _estimate_held(self) -> int:
        """Estimate what was held at the last whole copy, also where another process made that.

        What was written since came on top of it, or replaced some of it: at least a third is taken
        for older, so that files that are rewritten are not saved whole all the time.
        """
        whole = weight(self.value, _MOST_OF_ALL)
        return max(whole - self._fresh, whole // (_TIMES + 1))

    def _set_distance(self, least: int) -> None:
        self._least = least

    # A property: LangGraph reads this attribute, and has no hook to ask whether a whole copy is due.
    snapshot_frequency = cast(int, property(_distance, _set_distance))

    def copy(self) -> Self:
        """Return an independent channel; its reducer makes new values, so both may hold this one."""
        twin = type(self).__new__(type(self))
        for slot in ("key", "typ", "reducer", "value"):
            setattr(twin, slot, getattr(self, slot))
        vars(twin).update(vars(self))
        return twin

    def update(self, values: Sequence[Any]) -> bool:
        """Fold the writes of one step; return whether there were any."""
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
        """Note what a step wrote; whether that makes a whole copy due is found out when it is asked for."""
        # LangGraph does not say that it saved; a yes to its last question means that it did.
        if self._asked:
            self._writes, self._fresh, self._held, self._asked = 0, 0, None, False
            self._unweighed = ()
        self._writes += 1
        if len(self._unweighed) <= _MOST_UNWEIGHED:
            self._unweighed = (*self._unweighed, values)
        self._due = None


class MessagesChannel(GrowingChannel):
    """A delta channel of messages that also understands `RemoveMessage(REMOVE_ALL_MESSAGES)`.

    LangGraph gives ids to strings, tuples and dicts only where the channel's reducer is its own function
    object, so that object stays the reducer. It looks at the whole history for each write. Nearly all writes
    are messages that are new or replace older ones, and these are put in here without that. An empty id is
    none.
    """

    _places: dict[str, int] | None = None
    """Where the message of each id stands. Copies share it: entries never change, and are checked."""
    _placed: int = 0
    """How many messages `_places` speaks of."""

    def update(self, values: Sequence[Any]) -> bool:
        """Fold the writes of one step; return whether there were any."""
        if not values:
            return False
        if written := self._messages_in(values):
            self._put(written)
            self.count(values)
            return True
        self._places = None
        reset, rest = _after_last_reset(values)
        if reset:
            self.value, self._held = [], None
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
        # A new list: readers, and copies of this channel, hold the old one.
        standing: list[BaseMessage] = [*self.value]
        places = self._places
        if places is None or self._placed != len(standing):
            places = _index_by_id(standing)
        for each in written:
            end = len(standing)
            at = places.setdefault(each.id, end) if each.id else end
            # A copy of the channel may have added to the shared index what does not stand in this one.
            if at != end and (at > end or standing[at].id != each.id):
                places = _index_by_id(standing)
                at = places.setdefault(str(each.id), end)
            standing[at : at + 1] = [each]
        self.value, self._places, self._placed = standing, places, len(standing)


def messages_channel() -> MessagesChannel:
    """Make the channel that holds an agent's messages."""
    return MessagesChannel(MESSAGES_REDUCER)


def moves_what_is_removed(key: str) -> bool:
    """Return whether a message that one write removes and adds again goes to the end of a channel."""
    return isinstance(running_channel(key), MessagesChannel)


def _index_by_id(messages: Sequence[BaseMessage]) -> dict[str, int]:
    return {each.id: at for at, each in enumerate(messages) if each.id}


def _after_last_reset(values: Sequence[Any]) -> tuple[bool, list[Any]]:
    for at in range(len(values) - 1, -1, -1):
        write: list[Any] = values[at] if isinstance(values[at], list) else [values[at]]
        for index in range(len(write) - 1, -1, -1):
            if _is_reset(write[index]):
                return True, [write[index + 1 :], *values[at + 1 :]]
    return False, list(values)


def _is_message(item: Any) -> bool:
    return isinstance(item, BaseMessage) and not isinstance(item, RemoveMessage)


def _is_reset(item: Any) -> bool:
    return isinstance(item, RemoveMessage) and item.id == REMOVE_ALL_MESSAGES
