"""Know what the status line shows: model, mode, how full the context is, tokens, and what they cost."""

from __future__ import annotations

from asyncio import TimerHandle, get_running_loop
from collections.abc import Callable, Sequence
from typing import Final

from langchain_core.messages import AIMessage, BaseMessage

from deepagents.events import Usage
from deepagents_cli.worker.record import Record, Used

_EVERY: Final = 0.25
"""Seconds between two messages."""


class Meter:
    """Counts what a thread uses, and says so when something has changed, a few times a second at most."""

    def __init__(self, record: Record, say: Callable[[], None]) -> None:
        self._record = record
        self._say = say
        self._timer: TimerHandle | None = None
        self.thread = ""
        self.in_context: int | None = None

    def open(self, thread: str, in_context: int | None) -> None:
        """Count for a thread, whose last model call had so many tokens."""
        self.thread, self.in_context = thread, in_context

    def count(self, model: str, event: Usage) -> None:
        """Count a model call."""
        self._record.add_usage(self.thread, model, event)
        if event.agent is None:
            self.in_context = event.input_tokens + event.output_tokens
        self.changed()

    def used(self) -> list[Used]:
        """Return what the thread has used, by agent and model."""
        return self._record.usage(self.thread)

    def changed(self) -> None:
        """Say so soon."""
        if self._timer is None:
            self._timer = get_running_loop().call_later(_EVERY, self.flush)

    def flush(self) -> None:
        """Say now what has changed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._say()


def last_context(messages: Sequence[BaseMessage]) -> int | None:
    """Return how many tokens the last model call of a history had."""
    usages = (each.usage_metadata for each in reversed(messages) if isinstance(each, AIMessage))
    found = next(filter(None, usages), None)
    return found["total_tokens"] if found else None
