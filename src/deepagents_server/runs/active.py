"""Hold a run that works in this process."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from deepagents_server.database.runs import STEER
from deepagents_server.runs.execute import Attempt

_PATIENCE: Final = 5.0
"""Seconds after which an attempt that was cancelled, and goes on, is cancelled again."""


class Active:
    """Holds the present attempt at a run, and ends it early."""

    def __init__(self, attempt: Attempt) -> None:
        self.driver: asyncio.Task[None] | None = None
        self._again: asyncio.TimerHandle | None = None
        self.begin(attempt)

    def begin(self, attempt: Attempt) -> None:
        """Let an attempt work."""
        self.attempt = attempt
        self.work = asyncio.create_task(attempt.work())

    def end_early(self, why: str | None) -> None:
        """End the attempt at its next step, or at once, as was asked for."""
        if why == STEER:
            self.attempt.steered = True
        elif why:
            self._cancel(self.work)

    def _cancel(self, work: asyncio.Task[Any]) -> None:
        """Cancel work until it ends: a node may swallow this, and LangGraph waits for it only once."""
        if self._again:
            # Whoever asks once more begins no second chain.
            self._again.cancel()
        if not work.done():
            work.cancel()
            self._again = asyncio.get_running_loop().call_later(_PATIENCE, self._cancel, work)
