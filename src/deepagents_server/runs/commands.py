"""Note which commands a run has begun and ended, so that an agent hears of those that a crash cut off."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar

import sqlalchemy as sa

from deepagents._values import field, valueclass
from deepagents_server.database import Database
from deepagents_server.database.engine import Row
from deepagents_server.database.runs import add
from deepagents_server.database.tables import commands
from deepagents_server.serialize import now

T = TypeVar("T")


@valueclass
class RunCommands:
    """The commands of one attempt at a run."""

    database: Database
    run_id: str
    attempt: int
    # An agent may be called from a thread with a loop of its own; the database belongs to this one.
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)

    async def begin(self, call_id: str) -> str | None:
        """Note that a command begins; if it had begun in a former attempt, tell what is known of it."""
        return await self._here(self._begin(call_id))

    async def end(self, call_id: str, exit_code: int | None) -> None:
        """Note that a command is over."""
        ended = self._of(call_id).values(ended_at=now(), exit_code=exit_code)
        await self._here(self.database.execute(ended))

    def _here(self, work: Coroutine[Any, Any, T]) -> Awaitable[T]:
        if asyncio.get_running_loop() is self.loop:
            return work
        return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.loop))

    async def _begin(self, call_id: str) -> str | None:
        row = {"run_id": self.run_id, "call_id": call_id, "attempt": self.attempt, "began_at": now()}
        async with self.database.write() as connection:
            if await add(connection, commands, row):
                return None
            found = sa.select(commands).where(commands.c.run_id == self.run_id, commands.c.call_id == call_id)
            earlier = (await connection.execute(found)).mappings().one()
            if earlier["attempt"] < self.attempt:
                return _tell(dict(earlier))
            await connection.execute(self._of(call_id).values(began_at=now(), ended_at=None, exit_code=None))
        return None

    def _of(self, call_id: str) -> sa.Update:
        return commands.update().where(commands.c.run_id == self.run_id, commands.c.call_id == call_id)


def _tell(row: Row) -> str:
    began = f"This command began at {row['began_at']}, before a crash cut off the run"
    if row["ended_at"] is None:
        return f"{began}; it may have run, in part or to its end."
    code = "" if row["exit_code"] is None else f" with exit code {row['exit_code']}"
    return f"{began}; it ended{code}, but its output is lost."
