"""Know which calls are made by a program that a model wrote: such a call cannot wait for a person."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_CALL: ContextVar[str | None] = ContextVar("deepagents_call_of_program", default=None)


@contextmanager
def called_by_program(call_id: str) -> Generator[None]:
    """Let what runs meanwhile know that a program made this call."""
    token = _CALL.set(call_id)
    try:
        yield
    finally:
        _CALL.reset(token)


def is_call_of_program(call_id: str | None) -> bool:
    """Return whether a program made this very call; calls of an agent below it are its own."""
    return call_id is not None and _CALL.get() == call_id


def can_ask() -> bool:
    """Return whether what runs here may ask a person: a program does not run twice, so no answer comes."""
    return _CALL.get() is None
