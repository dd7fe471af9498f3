"""Hold a run that works in this process."""

from __future__ import annotations

import asyncio

from deepagents_server.database.runs import STEER
from deepagents_server.runs.execute import Attempt


class Active:
    """Holds the present attempt at a run, and ends it early."""

    def __init__(self, attempt: Attempt) -> None:
        self.driver: asyncio.Task[None] | None = None
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
            self.work.cancel()
