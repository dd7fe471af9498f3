"""Let a run use what is left of its owner's quota, which other runs use at the same time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from deepagents.middleware.limits import Budget, counting
from deepagents_server.background import in_background
from deepagents_server.database import Database
from deepagents_server.database.quotas import add_used, find_rest
from deepagents_server.errors import OUTAGES, show_cause

_EVERY: Final = 1.0
"""Seconds after which others see what a long step has spent."""
_log: Final = logging.getLogger("deepagents.server")


class Spending:
    """What a run spends, counted for its owner while it works."""

    def __init__(self, database: Database, owner: str) -> None:
        self._database = database
        self._owner = owner
        self._budget: Budget | None = None
        self._noted: dict[str, float] = {}
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def count(self) -> AsyncGenerator[None]:
        """Count what is called in the block, and end it where the quota does.

        Raises:
            ApiError: 429, if nothing is left.
        """
        rest = await find_rest(self._database, self._owner)
        if rest is None:
            yield
            return
        self._budget = Budget(limits=rest)
        # What an agent restores of an earlier attempt was counted while it was used.
        async with in_background(self._watch(self._budget)):
            with counting(self._budget.for_background()):
                yield

    async def note(self) -> None:
        """Count what was spent until now, so that a crash makes nothing free, and see what others left."""
        if self._budget:
            # Whole, also where the run is cancelled meanwhile: cut off, it might be counted once more.
            await asyncio.shield(self._note(self._budget))

    async def _note(self, budget: Budget) -> None:
        async with self._turn:
            counts = dict(budget.counts)
            spent = {kind: counts.get(kind, 0) - self._noted.get(kind, 0) for kind in ("tokens", "money")}
            limits = await add_used(self._database, self._owner, spent, counts)
            self._noted = counts
            budget.limits = limits or budget.limits

    async def _watch(self, budget: Budget) -> None:
        while True:
            await asyncio.sleep(_EVERY)
            if budget.counts == self._noted:
                continue
            try:
                await self.note()
            except OUTAGES as error:
                _log.warning("The database does not answer: %s", show_cause(error))
