"""The one place that touches LangGraph's unnamed ways to read and write a running graph's channels.

LangGraph has no public way for a tool to see its own pending writes, to write without returning, to take such
writes back, or to learn how a channel combines values. `tests/agents/test_channels.py` fails loudly when an
upgrade changes any of these.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Self, cast

from langchain_core.messages import BaseMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig
from langgraph.channels.base import BaseChannel
from langgraph.channels.binop import BinaryOperatorAggregate
from langgraph.channels.delta import DeltaChannel
from langgraph.channels.untracked_value import UntrackedValue
from langgraph.config import get_config
from langgraph.graph import message as langgraph_message
from langgraph.graph.message import REMOVE_ALL_MESSAGES

_READ = "__pregel_read"
_SEND = "__pregel_send"
SNAPSHOT_AFTER = 50
"""Writes after which a channel that holds little is saved whole."""
_SNAPSHOT_SHARE = 4
MOST_REMEMBERED = 64 * 1024 * 1024
"""Characters that a run remembers at most."""
_OUTSIDE = (
    "Files in state can only be reached inside a LangGraph graph execution. To start a run with files, "
    "pass them in: "
    'agent.invoke({"messages": [...], "files": {"/notes.md": {"content": "..."}}}).'
)


def read_channel(key: str) -> Any:
    """Return a channel's value as this task sees it, its own writes included; `None` without such a channel.

    Raises:
        RuntimeError: outside a graph run.
    """
    bound = _bound_read()
    scratchpad, channels, managed, task = bound.args
    if key not in channels:
        return None
    value: Any = bound.func(scratchpad, {key: channels[key]}, managed, task, [key], True)
    return cast(Mapping[str, Any], value).get(key)


def read_state() -> Mapping[str, Any]:
    """Return all that the state of the running graph holds.

    Raises:
        RuntimeError: outside a graph run.
    """
    bound = _bound_read()
    scratchpad, channels, managed, task = bound.args
    named = [key for key in channels if not key.startswith(("__", "branch:"))]
    return bound.func(scratchpad, channels, managed, task, named, False)


def write_channel(key: str, value: Any) -> None:
    """Queue a write to a channel, as if this task had returned it.

    Raises:
        RuntimeError: outside a graph run.
    """
    _required(_SEND)([(key, value)])


@contextmanager
def writes_undone_on_failure() -> Generator[None]:
    """Take back what this task wrote meanwhile if it fails: with writes of its own it would count as done."""
    written: deque[Any] = _required(_SEND).__self__ if in_graph() else deque[Any]()
    before = len(written)
    try:
        yield
    except BaseException:
        while len(written) > before:
            written.pop()
        raise


def in_graph() -> bool:
    """Tell whether this code runs inside a task of a graph."""
    try:
        return _READ in _configurable()
    except RuntimeError:
        return False


def has_channel(key: str) -> bool:
    """Tell whether the running graph has a channel of this name.

    Raises:
        RuntimeError: outside a graph run.
    """
    return key in _bound_read().args[1]


def channel_reducers() -> Mapping[str, Callable[..., Any]]:
    """Return the reducer of each channel of the running graph that has one; none outside a run."""
    return reducers_of(_bound_read().args[1]) if in_graph() else {}


def reducers_of(channels: Mapping[str, BaseChannel[Any, Any, Any]]) -> Mapping[str, Callable[..., Any]]:
    """Return the reducer of each of these channels that has one."""
    found: dict[str, Callable[..., Any]] = {}
    for key, channel in channels.items():
        match channel:
            case BinaryOperatorAggregate():
                found[key] = channel.operator
            case DeltaChannel():
                found[key] = channel.reducer
            case _:
                continue
    return found


class GrowingChannel(DeltaChannel[Any]):
    """A delta channel that is saved whole ever more rarely as it grows.

    At a fixed distance the whole copies alone would grow with the square of the number of steps.
    """

    def copy(self) -> Self:
        """Return an independent channel; its reducer makes new values, so both may hold this one."""
        twin = type(self)(self.reducer, self.ValueType, snapshot_frequency=self.snapshot_frequency)
        twin.key, twin.value = self.key, self.value
        return twin

    def update(self, values: Sequence[Any]) -> bool:
        """Fold the writes of one step; tell whether there were any."""
        changed = super().update(values)
        self.space_snapshots()
        return changed

    def space_snapshots(self) -> None:
        """Set the distance to the next whole copy by what the channel holds."""
        if self.is_available():
            self.snapshot_frequency = max(SNAPSHOT_AFTER, len(self.value) // _SNAPSHOT_SHARE)


class MessagesChannel(GrowingChannel):
    """A delta channel of messages that also understands `RemoveMessage(REMOVE_ALL_MESSAGES)`.

    LangGraph gives ids to strings, tuples and dicts only where the channel's reducer is its own function
    object, so that object stays the reducer. It looks at the whole history for each write; new messages,
    which is nearly all there ever is, are appended here without that.
    """

    known: set[str] | None = None
    """The ids of all messages, while they are known."""

    def copy(self) -> Self:
        """Return an independent channel with the same messages."""
        twin = super().copy()
        if twin.is_available():
            twin.value = list(twin.value)
        twin.known = None if self.known is None else self.known.copy()
        return twin

    def update(self, values: Sequence[Any]) -> bool:
        """Fold the writes of one step; tell whether there were any."""
        if not values:
            return False
        if new := self._new(values):
            self.value = [*self.value, *new]
            self.space_snapshots()
            return True
        self.known = None
        reset, rest = _after_last_reset(values)
        if reset:
            self.value = []
        return super().update(rest) or reset

    def replay_writes(self, writes: Sequence[Any]) -> None:
        """Fold the writes saved since the last snapshot, oldest first."""
        self.known = None
        reset, rest = _after_last_reset([value for _, _, value in writes])
        if reset:
            self.value = []
        super().replay_writes([("", self.key, value) for value in rest])

    def _new(self, values: Sequence[Any]) -> list[BaseMessage]:
        """Return what is written, noting its ids, when all of it is messages that were not there before."""
        written: list[Any] = []
        for value in values:
            written += cast("list[Any]", value) if isinstance(value, list) else [value]
        if not self.is_available() or not all(map(_is_message, written)):
            return []
        if self.known is None:
            self.known = {each.id for each in self.value if each.id}
        ids = [each.id for each in written if each.id]
        if len(set(ids)) < len(ids) or not self.known.isdisjoint(ids):
            return []
        self.known.update(ids)
        return written


class RunMemory(UntrackedValue[dict[str, str]]):
    """Texts by key for as long as a run lasts, never saved; the oldest go when all together are too long."""

    def update(self, values: Sequence[dict[str, str]]) -> bool:
        """Fold the writes of one step; tell whether there were any."""
        if not values:
            return False
        kept: dict[str, str] = dict(self.value) if self.is_available() else {}
        for value in values:
            for key, text in value.items():
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
    return RunMemory(dict[str, str], guard=False)


def messages_channel() -> MessagesChannel:
    """Make the channel that holds an agent's messages."""
    return MessagesChannel(
        vars(langgraph_message)["_messages_delta_reducer"], snapshot_frequency=SNAPSHOT_AFTER
    )


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


def _configurable() -> Mapping[str, Any]:
    config: RunnableConfig = get_config()
    return config.get("configurable", {})


def _required(key: str) -> Any:
    try:
        return _configurable()[key]
    except (RuntimeError, KeyError) as error:
        raise RuntimeError(_OUTSIDE) from error


def _bound_read() -> partial[Any]:
    return _required(_READ)
