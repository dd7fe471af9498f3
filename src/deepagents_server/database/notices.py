"""Send notices between the processes that share a PostgreSQL: what happened, and to which run."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, Literal

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from deepagents_server.background import in_background
from deepagents_server.database.engine import Database
from deepagents_server.errors import OUTAGES, show_cause

Kind = Literal["stop", "steer", "events", "end", "watch", "begin"]
"""A run is to stop or to give way; it has events, or an end; somebody reads it; a thread has got a run."""
Notice = tuple[Kind, str]
"""A kind, and the id of the run or thread."""
_CHANNEL: Final = "deepagents"
_MOST: Final = 150
"""Notices in one of PostgreSQL's, which takes 8,000 bytes."""
_PAUSE: Final = 0.005
_SHARE: Final = 4
"""Seconds between two times that a process sends, and how often the time that the last one took.

To notify locks the whole cluster while a transaction ends, and wakes all who listen. So no transaction of a
run does it: each process gathers what it has to say, and says it the seldomer, the more others have to say.
"""
_log: Final = logging.getLogger("deepagents.server")


class Notices:
    """Sends to all processes, and hears what they send; with SQLite there is only one."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._handlers: dict[str, Callable[[str], None]] = {}
        self._unsent: dict[str, None] = {}
        self._news = asyncio.Event()
        self.on_return: Callable[[], None] | None = None
        """Called when the connection is there again, since something may have been missed."""

    def on(self, kind: Kind, handler: Callable[[str], None]) -> None:
        """Call a function with the id of the run, or thread, for each notice of a kind."""
        self._handlers[kind] = handler

    def send(self, *notices: Notice) -> None:
        """Tell this process at once, and all others within milliseconds.

        A process that is killed meanwhile says no more. So all that wait also look by themselves, seldom.
        """
        for kind, key in notices:
            self._handle(f"{kind}:{key}")
            if self._database.is_shared:
                self._unsent[f"{kind}:{key}"] = None
                self._news.set()

    @asynccontextmanager
    async def write(self, database: Database) -> AsyncGenerator[tuple[AsyncConnection, list[Notice]]]:
        """Change a few rows in one transaction; its end also sends what is put on the list."""
        notices: list[Notice] = []
        async with database.write() as connection:
            yield connection, notices
        self.send(*notices)

    @asynccontextmanager
    async def exchanging(self) -> AsyncGenerator[None]:
        """Hear the other processes, and tell them, until the block ends."""
        if not self._database.is_shared:
            yield
            return
        async with in_background(self._listen()), in_background(self._tell()):
            yield
        with suppress(*OUTAGES):
            await self._send_all()

    async def _tell(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            began = time.monotonic()
            try:
                await self._send_all()
            except OUTAGES as error:
                _log.warning("The database does not answer: %s", show_cause(error))
                # How long nothing could be sent says nothing of what sending costs.
                await asyncio.sleep(1)
                self._news.set()
                continue
            await asyncio.sleep(max(_PAUSE, _SHARE * (time.monotonic() - began)))

    async def _send_all(self) -> None:
        texts = [*self._unsent]
        for first in range(0, len(texts), _MOST):
            some = texts[first : first + _MOST]
            await self._database.execute(sa.select(sa.func.pg_notify(_CHANNEL, "\n".join(some))))
            for text in some:
                self._unsent.pop(text, None)

    async def _listen(self) -> None:
        while True:
            try:
                await self._listen_once()
            except (*OUTAGES, OSError, *self._database.driver_errors) as error:
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
                    self._handle(*notice.payload.split("\n"))
            finally:
                # It listens, so it must not go back among the others.
                await connection.invalidate()

    def _handle(self, *texts: str) -> None:
        for text in texts:
            kind, _, run_id = text.partition(":")
            if handler := self._handlers.get(kind):
                handler(run_id)
