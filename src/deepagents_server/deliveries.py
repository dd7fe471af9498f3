"""Tell webhooks that a run is over: each at least once, also after a crash, and given up after some tries.

What is to be posted is written with the end of the run. Any process of the database may send it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import sqlalchemy as sa

from deepagents_server.background import in_background
from deepagents_server.database import Database
from deepagents_server.database.engine import Row
from deepagents_server.database.tables import server_time, webhooks
from deepagents_server.errors import ApiError
from deepagents_server.serialize import seconds_between
from deepagents_server.webhooks import Webhooks

_AT_ONCE: Final = 20
_HELD: Final = 15.0
"""Seconds for which who sends has something; longer than a try takes. Then another may send it."""
_PAUSES: Final[tuple[float, ...]] = (2.0, 10.0, 60.0, 600.0)
"""Seconds after each try that failed; there is one more try than pauses."""
_ATTEMPTS: Final = 20
"""How often a try may begin; those that neither fail nor succeed were lost with their process."""
_LOOK_AGAIN: Final = 30.0
_log: Final = logging.getLogger("deepagents.server")


class Deliveries:
    """Sends what is due, of all processes."""

    def __init__(self, database: Database, to: Webhooks) -> None:
        self._database = database
        self._webhooks = to
        self._news = asyncio.Event()
        self._sending: set[asyncio.Task[None]] = set()

    def wake(self) -> None:
        """Look for what is to be sent."""
        self._news.set()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Send until the block ends; what is under way then is sent again later."""
        if not self._database.is_shared:
            # The process before this one sends no more. What waits longer has failed, and goes on waiting.
            held = webhooks.c.due_at <= server_time(_HELD)
            await self._database.execute(webhooks.update().where(held).values(due_at=""))
        try:
            async with in_background(self._watch()):
                yield
        finally:
            for task in (sending := [*self._sending]):
                task.cancel()
            await asyncio.gather(*sending, return_exceptions=True)

    async def _watch(self) -> None:
        while True:
            self._news.clear()
            try:
                pause = await self._send_due()
            except Exception as error:  # noqa: BLE001
                # Whatever it was: without this loop nothing would be sent any more.
                self._database.log_failure("Webhooks cannot be looked for", error)
                pause = _LOOK_AGAIN
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._news.wait()

    async def _send_due(self) -> float:
        """Begin to send what is due; return the seconds to the next look."""
        due = sa.select(sa.func.min(webhooks.c.due_at)).scalar_subquery()
        query: Any = sa.select(due.label("due"), server_time().label("now"))
        first = await self._database.row(query)
        if first is None or first["due"] is None or len(self._sending) >= _AT_ONCE:
            return _LOOK_AGAIN
        if first["due"] and (wait := seconds_between(first["now"], first["due"])) > 0:
            return min(wait, _LOOK_AGAIN)
        for row in await self._take():
            task = asyncio.create_task(self._send(row))
            self._sending.add(task)
            task.add_done_callback(self._forget)
        # Another process may have taken what was due; who has sent something looks again.
        return 1.0

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._sending.discard(task)
        self._news.set()
        if not task.cancelled() and (error := task.exception()):
            # It is tried again when nobody has it any more.
            _log.warning("It is not known whether a webhook was called: %r", error)

    async def _take(self) -> list[Row]:
        due = (
            sa.select(webhooks.c.run_id)
            .where(webhooks.c.due_at <= server_time())
            .order_by(webhooks.c.due_at)
            .limit(_AT_ONCE - len(self._sending))
            .with_for_update(skip_locked=True)
        )
        held = {"due_at": server_time(_HELD), "attempt": webhooks.c.attempt + 1}
        async with self._database.write() as connection:
            chosen = [*(await connection.execute(due)).scalars()]
            taken = webhooks.update().where(webhooks.c.run_id.in_(chosen)).values(held).returning(webhooks)
            return [dict(row) for row in (await connection.execute(taken)).mappings()]

    async def _send(self, row: Row) -> None:
        pause = await self._try(row)
        # Not where another process has taken it meanwhile.
        mine = sa.and_(webhooks.c.run_id == row["run_id"], webhooks.c.attempt == row["attempt"])
        await self._database.execute(
            webhooks.delete().where(mine)
            if pause is None
            else webhooks.update().where(mine).values(due_at=server_time(pause), failed=webhooks.c.failed + 1)
        )

    async def _try(self, row: Row) -> float | None:
        """Post to a webhook; return the seconds to the next try, if there is to be one."""
        if row["attempt"] <= _ATTEMPTS:
            try:
                if await self._webhooks.post(row["address"], row["body"].encode()):
                    return None
            except ApiError as error:
                _log.warning("The webhook of run %s is not called: %s", row["run_id"], error.detail)
                return None
            if row["failed"] < len(_PAUSES):
                return _PAUSES[int(row["failed"])]
        _log.warning("The webhook of run %s is given up", row["run_id"])
        return None
