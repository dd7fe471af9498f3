"""A channel that begins with what the caller of its graph holds, instead of saving that once more."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, NamedTuple, Self, cast

from deepagents._state.delta_channels import GrowingChannel, MessagesChannel


class Handed(NamedTuple):
    """What a caller hands to a graph that it runs, and the name that it goes by in checkpoints."""

    name: str
    value: Mapping[str, Any]
    messages: Sequence[Any] = ()


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
    """Return the write that stands for a value in the input and the checkpoints of a graph.

    The name is there as bytes, which no file can be and no JSON can hold.
    """
    return {_MARK: handed.name.encode()}


class HandedDownChannel(GrowingChannel):
    """A channel of a mapping that may begin with what the caller of its graph holds, and does not save that.

    Whoever reads it where that value is not at hand sees what was written since, and below the mark the
    writes as they came, so that nothing is lost when it is taken up again.
    """

    def from_checkpoint(self, checkpoint: Any) -> Self:
        """Return a channel with what was saved, on top of what the caller holds where that was left open."""
        channel = super().from_checkpoint(checkpoint)
        if left := _left_open(channel.value):
            channel.begin(left[0], left[1:])
        return channel

    def update(self, values: Sequence[Any]) -> bool:
        """Fold the writes of one step; tell whether there were any."""
        rest = self._begun(values, marked=_HANDED.get() is not None)
        return super().update(rest) or bool(values)

    def replay_writes(self, writes: Sequence[Any]) -> None:
        """Fold the writes saved since the last whole copy, oldest first."""
        rest = self._begun([value for _, _, value in writes], marked=True)
        super().replay_writes([("", self.key, value) for value in rest])

    def begin(self, name: bytes, writes: Sequence[Any]) -> None:
        """Begin with what the caller holds under this name, and fold writes on top of it."""
        handed = _HANDED.get()
        known = handed is not None and handed.name.encode() == name
        base = dict(handed.value) if handed is not None and known else {}
        self.value = self.reducer(base, list(writes))
        if not known:
            self.value = {**self.value, _MARK: [name, *writes]}

    def _begun(self, values: Sequence[Any], *, marked: bool) -> list[Any]:
        """Begin with the last mark among these writes, and return the writes that follow it."""
        rest = list(values)
        found = max((at for at, each in enumerate(rest) if _is_mark(each)), default=-1) if marked else -1
        if found >= 0:
            self.begin(rest[found][_MARK], [])
            rest = rest[found + 1 :]
        left = _left_open(self.value) if self.is_available() and rest else []
        if left:
            self.begin(left[0], [*left[1:], *rest])
            return []
        return rest


class HandedMessagesChannel(MessagesChannel):
    """A channel of messages that may begin with what the caller of its graph holds, and does not save these.

    A message that is marked stands for them, also for who reads it where they are not at hand.
    """

    def from_checkpoint(self, checkpoint: Any) -> Self:
        """Return a channel with what was saved."""
        return super().from_checkpoint(_with_handed(checkpoint))

    def update(self, values: Sequence[Any]) -> bool:
        """Fold the writes of one step; tell whether there were any."""
        return super().update([_with_handed(value) for value in values])

    def replay_writes(self, writes: Sequence[Any]) -> None:
        """Fold the writes saved since the last whole copy, oldest first."""
        super().replay_writes([(task, key, _with_handed(value)) for task, key, value in writes])


def message_mark(handed: Handed) -> dict[str, Any]:
    """Return what marks the message that stands for those of a caller."""
    return {_MARK: handed.name}


def _with_handed(messages: Any) -> Any:
    """Put the caller's messages in the place of the one that stands for them, where they are at hand."""
    handed = _HANDED.get()
    if handed is None or not isinstance(messages, list):
        return messages
    given = cast("list[Any]", messages)
    at = next((at for at, each in enumerate(given) if _stands_for(each, handed)), None)
    return given if at is None else [*given[:at], *handed.messages, *given[at + 1 :]]


def _stands_for(message: Any, handed: Handed) -> bool:
    marks: object = getattr(message, "additional_kwargs", None)
    return isinstance(marks, dict) and cast("dict[str, Any]", marks).get(_MARK) == handed.name


def _is_mark(write: Any) -> bool:
    return isinstance(write, dict) and isinstance(cast("dict[str, Any]", write).get(_MARK), bytes)


def _left_open(value: Mapping[str, Any]) -> list[Any]:
    """Return the mark that a value was left with and the writes below it, or nothing."""
    found: object = value.get(_MARK)
    left = cast("list[Any]", found) if isinstance(found, list) else []
    return left if left and isinstance(left[0], bytes) else []
