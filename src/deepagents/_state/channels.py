"""Define the channels of an agent's state.

What grows is saved as what is new at each step, and whole ever more rarely: LangGraph's delta channel saves a
whole copy every so many writes, and at a fixed distance the whole copies alone would grow with the square of
the number of steps. A subagent's channels may begin with its parent's values without saving these a second
time: its input and its checkpoints hold a placeholder instead, which is resolved while the parent runs.
`tests/agents/test_growing.py` fails when an upgrade changes what is relied on here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from itertools import groupby
from typing import Any, Final, NamedTuple, Self, cast

from langchain_core.messages import BaseMessage, RemoveMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.channels.last_value import LastValue
from langgraph.channels.untracked_value import UntrackedValue
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from deepagents._async import setting
from deepagents._state.runtime import MESSAGES_REDUCER, Channel, running_channel

MOST_REMEMBERED: Final = 64 * 1024 * 1024
"""Characters that a run remembers at most."""
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

    typ: Any
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
        twin.key, twin.typ, twin.reducer, twin.value = self.key, self.typ, self.reducer, self.value
        vars(twin).update(self.__dict__)
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


class ParentState(NamedTuple):
    """The files and messages of a parent, and the name that placeholders have for them."""

    name: str
    value: Mapping[str, Any]
    messages: Sequence[Any] = ()


_PARENT: ContextVar[ParentState | None] = ContextVar("deepagents_parent_state", default=None)
# Checkpoints hold this key, so it never changes.
_MARK: Final = "__handed_down__"


def inherit_from(parent: ParentState) -> AbstractContextManager[ParentState]:
    """Resolve placeholders of graphs that run inside this context with the state of this parent."""
    return setting(_PARENT, parent)


def placeholder_for(parent: ParentState) -> dict[str, Any]:
    """Return the placeholder for a parent's files."""
    # The name is bytes, so that no file and no JSON input can be taken for a placeholder.
    return {_MARK: parent.name.encode()}


class InheritedChannel(GrowingChannel):
    """A channel of a mapping that may begin with its parent's value, which it does not save.

    Read without the parent, it shows what was written since, and keeps the writes as they came under the
    placeholder, so that nothing is lost when the parent runs again.
    """

    def from_checkpoint(self, checkpoint: Any) -> Self:
        """Return a channel with what was saved, on top of the parent's value where a placeholder stands."""
        channel = super().from_checkpoint(checkpoint)
        if left := _find_unresolved(channel.value):
            channel.begin(left[0], left[1:])
        return channel

    def update(self, values: Sequence[Any]) -> bool:
        """Fold the writes of one step; return whether there were any."""
        rest = self._begin_with_last(values, marked=_PARENT.get() is not None)
        # A placeholder alone leaves no writes to fold, and the channel has changed all the same.
        return super().update(rest) or bool(values)

    def replay_writes(self, writes: Sequence[Any]) -> None:
        """Fold the writes saved since the last whole copy, oldest first."""
        rest = self._begin_with_last([value for _, _, value in writes], marked=True)
        super().replay_writes([("", self.key, value) for value in rest])

    def begin(self, name: bytes, writes: Sequence[Any]) -> None:
        """Begin with the value of the parent of this name, and fold writes on top of it."""
        parent = _PARENT.get()
        known = parent is not None and parent.name.encode() == name
        base = dict(parent.value) if parent is not None and known else {}
        self.value = self.reducer(base, list(writes))
        if not known:
            self.value = {**self.value, _MARK: [name, *writes]}

    def _begin_with_last(self, values: Sequence[Any], *, marked: bool) -> list[Any]:
        """Begin with the last placeholder among these writes, and return the writes that follow it."""
        rest = list(values)
        found = (
            max((at for at, each in enumerate(rest) if _is_placeholder(each)), default=-1) if marked else -1
        )
        if found >= 0:
            self.begin(rest[found][_MARK], [])
            rest = rest[found + 1 :]
        left = _find_unresolved(self.value) if self.is_available() and rest else []
        if left:
            self.begin(left[0], [*left[1:], *rest])
            return []
        return rest


class InheritedMessagesChannel(MessagesChannel):
    """A channel of messages that may begin with those of its parent, which it does not save.

    One marked message stands for them where the parent does not run.
    """

    def from_checkpoint(self, checkpoint: Any) -> Self:
        """Return a channel with what was saved."""
        return super().from_checkpoint(_insert_inherited(checkpoint))

    def update(self, values: Sequence[Any]) -> bool:
        """Fold the writes of one step; return whether there were any."""
        return super().update([_insert_inherited(value) for value in values])

    def replay_writes(self, writes: Sequence[Any]) -> None:
        """Fold the writes saved since the last whole copy, oldest first."""
        super().replay_writes([(task, key, _insert_inherited(value)) for task, key, value in writes])


def message_marks(parent: ParentState) -> dict[str, Any]:
    """Return the marks of the message that stands for a parent's messages."""
    return {_MARK: parent.name}


def _insert_inherited(messages: Any) -> Any:
    """Replace the message that stands for a parent's messages by these, while the parent runs."""
    parent = _PARENT.get()
    if parent is None or not isinstance(messages, list):
        return messages
    given = cast("list[Any]", messages)
    at = next((at for at, each in enumerate(given) if _stands_for(each, parent)), None)
    return given if at is None else [*given[:at], *parent.messages, *given[at + 1 :]]


def _stands_for(message: Any, parent: ParentState) -> bool:
    marks: object = getattr(message, "additional_kwargs", None)
    return isinstance(marks, dict) and cast("dict[str, Any]", marks).get(_MARK) == parent.name


def _is_placeholder(write: Any) -> bool:
    return isinstance(write, dict) and isinstance(cast("dict[str, Any]", write).get(_MARK), bytes)


def _find_unresolved(value: Mapping[str, Any]) -> list[Any]:
    """Return the placeholder that a value still holds and the writes kept under it, or nothing."""
    found: object = value.get(_MARK)
    left = cast("list[Any]", found) if isinstance(found, list) else []
    return left if left and isinstance(left[0], bytes) else []


class LatestValue(LastValue[Any]):
    """Stores the last value that a step writes, in the order of its calls, where LangGraph ends the run."""

    def __init__(self, typ: Any, key: str = "") -> None:
        super().__init__(typ, key)
        self._announced: dict[str, Any] = {}

    @classmethod
    def instead_of(cls, channel: Channel) -> Channel:
        """Return one of this kind for a channel that takes one value a step, any other as it is."""
        # Not `isinstance`: a subclass may mean something else by several writes.
        return cls(channel.typ, channel.key) if type(channel) is LastValue else channel

    def announce(self, call_id: str, value: Any) -> Sequence[Any]:
        """Note what a call of the step under way is about to write; return what other calls write."""
        self._announced[call_id] = value
        # A list at once: parallel calls of the step announce theirs from other threads.
        return [other for by, other in list(self._announced.items()) if by != call_id]

    def update(self, values: Sequence[Any]) -> bool:
        """Take the last of what a step wrote; return whether it wrote any."""
        self._announced = {}
        return super().update(values[-1:])


class RunMemory(UntrackedValue[dict[str, str]]):
    """Texts by key for as long as a run lasts, never saved; the oldest go when all together are too long."""

    def update(self, values: Sequence[dict[str, str]]) -> bool:
        """Fold the writes of one step; return whether there were any."""
        if not values:
            return False
        kept: dict[str, str] = dict(self.value) if self.is_available() else {}
        for value in values:
            for key, text in value.items():
                # Out and in again, so that a key that is written once more counts as the newest.
                kept.pop(key, None)
                kept[key] = text
        size = sum(map(len, kept.values()))
        for key in list(kept):
            if size <= MOST_REMEMBERED:
                break
            size -= len(kept.pop(key))
        self.value = kept
        return True


def run_memory() -> RunMemory:
    """Make a channel for what a run may forget."""
    # The guard would end a run in which two calls of a step write.
    return RunMemory(dict[str, str], guard=False)
