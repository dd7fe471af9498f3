"""Prepare connections to SQLite."""

from __future__ import annotations

import sqlite3
import time
from typing import Any, Final

from deepagents_server.serialize import now

_PRAGMAS: Final = ("journal_mode=WAL", "synchronous=NORMAL", "busy_timeout=30000", "foreign_keys=ON")
"""None of them writes to a file that is there: the event loop may not wait for a writer who waits for it."""


def set_pragmas(connection: Any, _record: Any) -> None:
    """Prepare a connection to SQLite: readers do not wait for the writer, and a commit not for the disk.

    A process that is killed loses nothing. After a loss of power the last commits may be missing.
    """
    # Transactions begin where this package says so, not where the driver thinks.
    connection.isolation_level = None
    for pragma in _PRAGMAS:
        connection.execute(f"PRAGMA {pragma}").close()
    connection.create_function("server_time", 1, now, deterministic=True)
    # On Python 3.12 and newer DBOS asks for `unixepoch('subsec')`, new in SQLite 3.42; Debian 12 has 3.40.
    if sqlite3.sqlite_version_info < (3, 42):
        connection.create_function("unixepoch", 1, _seconds_now)


def _seconds_now(_unit: str) -> float:
    return time.time()
