"""What a process remembers and may forget: by the identity of an object, or the last so many by a key."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, Final, Generic, TypeVar

Value = TypeVar("Value")

_MOST: Final = 64
_MOST_HELD: Final = 1000


class IdentityCache(Generic[Value]):
    """Values by the identity of an object, for objects that nobody changes.

    An object that cannot be watched, such as a dict, is held itself, up to a number of them: an identity
    that is used again never answers for another object.
    """

    def __init__(self) -> None:
        self._watched: dict[int, tuple[weakref.ref[Any], Value]] = {}
        self._held: dict[int, tuple[Any, Value]] = {}

    def get(self, thing: Any) -> Value | None:
        """Return the value of an object, if there is one."""
        watched = self._watched.get(id(thing))
        if watched is not None and watched[0]() is thing:
            return watched[1]
        held = self._held.get(id(thing))
        return held[1] if held is not None and held[0] is thing else None

    def put(self, thing: Any, value: Value) -> Value:
        """Remember, and return, the value of an object."""
        key = id(thing)
        try:
            self._watched[key] = weakref.ref(thing, lambda _: self._watched.pop(key, None)), value
        except TypeError:
            if len(self._held) >= _MOST_HELD:
                self._held.clear()
            self._held[key] = thing, value
        return value

    def of(self, thing: Any, make: Callable[[Any], Value]) -> Value:
        """Return the value of an object, made of it the first time it is asked for."""
        known = self.get(thing)
        return self.put(thing, make(thing)) if known is None else known


class BoundedCache(Generic[Value]):
    """A bounded memory: the oldest goes first. What it holds may be forgotten at any time."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._known: dict[Hashable, Value] = {}
        self._lock = Lock()

    def get(self, key: Hashable) -> Value | None:
        """Return what is remembered under a key."""
        return self._known.get(key)

    def put(self, key: Hashable, value: Value) -> None:
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
