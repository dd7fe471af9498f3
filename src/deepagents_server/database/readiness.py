"""Check that a database can be read and written now, with a connection that nobody else uses."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Final

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import create_async_engine

from deepagents_server.database.place import file_of

_PATIENCE: Final = 3.0
_HOLDS: Final = 1.0
"""Seconds for which an answer is good: however many ask, the database is asked once."""


class Readiness:
    """Asks a database with a small write."""

    def __init__(self, write: Callable[[], Awaitable[None]]) -> None:
        self._write = write
        self._asking = asyncio.Lock()
        self._asked_at = -_HOLDS
        self._is_ready = False

    async def ask(self) -> bool:
        """Tell whether the database can be used."""
        async with self._asking:
            if time.monotonic() - self._asked_at >= _HOLDS:
                self._is_ready = await self._try()
                self._asked_at = time.monotonic()
            return self._is_ready

    async def _try(self) -> bool:
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._write()
        except (TimeoutError, OSError, SQLAlchemyError, sqlite3.Error):
            return False
        return True


@asynccontextmanager
async def watching(url: str) -> AsyncGenerator[Readiness]:
    """Give what asks a database until the block ends."""
    if path := file_of(url):
        with ThreadPoolExecutor(1, "readiness") as thread:
            loop = asyncio.get_running_loop()
            yield Readiness(lambda: loop.run_in_executor(thread, _write_to_file, path))
        return
    engine = create_async_engine(sa.make_url(url).set(drivername="postgresql+psycopg"), pool_size=1)

    async def write() -> None:
        async with engine.begin() as connection:
            # A transaction with a number is written to the log, which a standby refuses. Who may only read
            # for other reasons gets one all the same.
            refused = sa.func.current_setting("transaction_read_only") == "on"
            query = sa.select(sa.func.txid_current(), refused.label("refused"))
            if (await connection.execute(query)).one().refused:
                raise ConnectionRefusedError

    try:
        yield Readiness(write)
    finally:
        await engine.dispose()


def _write_to_file(path: Path) -> None:
    try:
        # Whoever took the file away is not to find an empty one there.
        there = f"{path.as_uri()}?mode=rw"
        with closing(sqlite3.connect(there, timeout=_PATIENCE / 2, uri=True)) as connection:
            # Nobody reads it, and it is written also where it stays the same.
            connection.execute("PRAGMA user_version = 0")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
            raise
