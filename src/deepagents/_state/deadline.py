"""Pass the time that is left for the work in progress to calls that can be given less."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic

# A moment of `monotonic()`: the wall clock may be set back while work is under way.
_DEADLINE: ContextVar[float | None] = ContextVar("deepagents_deadline", default=None)


@contextmanager
def due_in(seconds: float | None) -> Generator[None]:
    """Let what runs meanwhile know how long it may take; `None` says nothing new."""
    token = _DEADLINE.set(_DEADLINE.get() if seconds is None else monotonic() + seconds)
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def seconds_left() -> float | None:
    """Return how long the work in progress may still take; `None` without a bound."""
    deadline = _DEADLINE.get()
    return None if deadline is None else max(deadline - monotonic(), 0.0)
