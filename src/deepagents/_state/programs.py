"""Know which calls are made by a program that a model wrote: such a call cannot wait for a person."""

from __future__ import annotations

from contextlib import AbstractContextManager
from contextvars import ContextVar

from deepagents._async import setting

_CALL: ContextVar[str | None] = ContextVar("deepagents_call_of_program", default=None)


def called_by_program(call_id: str) -> AbstractContextManager[str]:
    """Let what runs meanwhile know that a program made this call."""
    return setting(_CALL, call_id)


def is_call_of_program(call_id: str | None) -> bool:
    """Return whether a program made this very call; calls of an agent below it are its own."""
    return call_id is not None and _CALL.get() == call_id


def can_ask() -> bool:
    """Return whether what runs here may ask a person: a program does not run twice, so no answer comes."""
    return _CALL.get() is None
