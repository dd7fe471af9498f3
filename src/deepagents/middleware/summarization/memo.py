"""What a process remembers between attempts, so that a retry does not pay for the same thing again."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar

from langgraph.config import get_config

V = TypeVar("V")
_MOST: int = 64


class Memo(Generic[V]):
    """A bounded memory: the oldest goes first. What it holds may be forgotten at any time."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._known: dict[Hashable, V] = {}
        self._lock = Lock()

    def get(self, key: Hashable) -> V | None:
        """Return what is remembered under a key."""
        return self._known.get(key)

    def put(self, key: Hashable, value: V) -> None:
        """Remember a value under a key."""
        with self._lock:
            self._known.pop(key, None)
            self._known[key] = value
            while len(self._known) > self._most:
                del self._known[next(iter(self._known))]

    def drop(self, key: Hashable) -> None:
        """Forget a key."""
        with self._lock:
            self._known.pop(key, None)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a conversation is held: its thread, or else a session of its own, and the node's namespace."""

    thread: str | None
    namespace: str
    session: str = ""

    @property
    def agent(self) -> tuple[str, str]:
        """The agent in the conversation, the same for each of its nodes."""
        return self.thread or self.session, self.namespace.rpartition("|")[0]


def this_place(session: str = "") -> Place:
    """Say in which thread, and in which node of it, this code runs; `session` names the conversation."""
    try:
        configurable = get_config().get("configurable", {})
    except RuntimeError:
        return Place(None, "", session)
    thread = configurable.get("thread_id")
    namespace = str(configurable.get("checkpoint_ns") or "")
    return Place(None if thread is None else str(thread), namespace, session)
