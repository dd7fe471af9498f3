"""Let callers search and copy in turns, so that nobody stops what others do."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final
from weakref import WeakValueDictionary

from sqlalchemy.exc import OperationalError

from deepagents_server.errors import ApiError

LONGEST: Final = 10.0
"""Seconds that a caller's statement may take which looks at many rows."""
_PATIENCE: Final = 30.0
_STEPS: Final = 100_000
"""Instructions of SQLite after which it is asked whether to go on; they take some milliseconds."""


class Turns:
    """Lets so many of the same work at once, and few of each owner among them, each for `longest` seconds."""

    def __init__(self, number: int, of_owner: int, longest: float | None = None) -> None:
        self._of_all = asyncio.Semaphore(number)
        self._of_owner = of_owner
        self._longest = longest
        # Of each as long as somebody waits or works.
        self._owners = WeakValueDictionary[str, asyncio.Semaphore]()

    @asynccontextmanager
    async def wait(self, owner: str) -> AsyncGenerator[None]:
        """Wait for a turn of an owner, and keep it until the block ends.

        Raises:
            ApiError: if it does not come soon, or a statement in the block takes too long.
        """
        of_owner = self._owners.setdefault(owner, asyncio.Semaphore(self._of_owner))
        try:
            async with asyncio.timeout(_PATIENCE) as patience, of_owner, self._of_all:
                now = asyncio.get_running_loop().time()
                patience.reschedule(None if self._longest is None else now + self._longest + 1)
                yield
        except TimeoutError as error:
            raise ApiError(
                429,
                f"This took too long, with what else you ask for now: each search has {LONGEST:.0f} seconds. "
                "Ask for less, or one after the other.",
                {"retry-after": "5"},
            ) from error


@contextmanager
def bounded(connection: Any) -> Generator[None]:
    """Let statements on a connection to SQLite take so long and no longer.

    Raises:
        TimeoutError: if one takes longer.
    """
    ends = time.monotonic() + LONGEST
    connection.set_progress_handler(lambda: time.monotonic() > ends, _STEPS)
    try:
        yield
    except OperationalError as error:
        if getattr(error.orig, "sqlite_errorcode", 0) == sqlite3.SQLITE_INTERRUPT:
            raise TimeoutError from error
        raise
    finally:
        connection.set_progress_handler(None, 0)
