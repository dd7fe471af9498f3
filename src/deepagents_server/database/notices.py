"""Words between the processes that share a PostgreSQL: what happened, and to which run."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any, Final, Literal

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from deepagents_server.background import in_background
from deepagents_server.database.engine import Database
from deepagents_server.errors import show_cause

Kind = Literal["runs", "stop", "steer", "events", "end", "watch", "begin"]
"""There are runs to start; a run is to stop or to give way; it has events, or an end; somebody reads it; a
thread has got a run."""
Notice = tuple[Kind, str]
"""A kind, and the id of the run or thread, if it is about one."""
RUNS: Final[Notice] = ("runs", "")
"""There are runs to start."""
_CHANNEL: Final = "deepagents"
_log: Final = logging.getLogger("deepagents.server")


class Notices:
    """Sends to all processes, and hears what they send; with SQLite there is only one."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._handlers: dict[str, Callable[[str], None]] = {}
        self.on_return: Callable[[], None] | None = None
        """Called when the connection is there again, since something may have been missed."""

    def on(self, kind: Kind, handler: Callable[[str], None]) -> None:
        """Call a function with the id of the run, or thread, for each notice of a kind."""
        self._handlers[kind] = handler

    async def send(self, *notices: Notice) -> None:
        """Tell all processes, this one among them."""
        if self._database.is_shared:
            await self._database.execute(*(_notify(each) for each in notices))
        else:
            for kind, key in notices:
                self._handle(f"{kind}:{key}")

    @asynccontextmanager
    async def write(self, database: Database) -> AsyncGenerator[tuple[AsyncConnection, list[Notice]]]:
        """Change a few rows in one transaction; its end also sends what is put on the list."""
        notices: list[Notice] = []
        async with database.write() as connection:
            yield connection, notices
            if self._database.is_shared:
                await self.send_with(connection, *notices)
        if not self._database.is_shared:
            await self.send(*notices)

    async def send_with(self, connection: AsyncConnection, *notices: Notice) -> None:
        """Tell all processes that share the database, when the transaction ends."""
        for notice in notices:
            await connection.execute(_notify(notice))

    def listening(self) -> AbstractAsyncContextManager[None]:
        """Hear the other processes until the block ends."""
        return in_background(self._listen()) if self._database.is_shared else nullcontext()

    async def _listen(self) -> None:
        while True:
            try:
                await self._listen_once()
            except (DBAPIError, OSError, *self._database.driver_errors) as error:
                _log.warning("The database does not answer: %s", show_cause(error))
            await asyncio.sleep(1)

    async def _listen_once(self) -> None:
        async with self._database.engine.connect() as connection:
            raw: Any = (await connection.get_raw_connection()).driver_connection
            await raw.set_autocommit(True)
            await raw.execute(f"LISTEN {_CHANNEL}")
            if self.on_return:
                self.on_return()
            try:
                async for notice in raw.notifies():
                    self._handle(notice.payload)
            finally:
                # It listens, so it must not go back among the others.
                await connection.invalidate()

    def _handle(self, payload: str) -> None:
        kind, _, run_id = payload.partition(":")
        if handler := self._handlers.get(kind):
            handler(run_id)


def _notify(notice: Notice) -> sa.Select[Any]:
    return sa.select(sa.func.pg_notify(_CHANNEL, ":".join(notice)))
