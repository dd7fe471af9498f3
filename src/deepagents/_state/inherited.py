"""Let a subagent's channels begin with its parent's values without saving these a second time.

Input and checkpoints of the subagent hold a placeholder instead, which is resolved while the parent runs.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, NamedTuple, Self, cast

from deepagents._state.delta_channels import GrowingChannel, MessagesChannel


class ParentState(NamedTuple):
    """The files and messages of a parent, and the name that placeholders have for them."""

    name: str
    value: Mapping[str, Any]
    messages: Sequence[Any] = ()


_PARENT: ContextVar[ParentState | None] = ContextVar("deepagents_parent_state", default=None)
# Checkpoints hold this key, so it never changes.
_MARK: Final = "__handed_down__"


@contextmanager
def inherit_from(parent: ParentState) -> Generator[None]:
    """Resolve placeholders of graphs that run inside this context with the state of this parent."""
    token = _PARENT.set(parent)
    try:
        yield
    finally:
        _PARENT.reset(token)


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
