"""Open the connection of LangGraph's store for SQLite: when its transactions begin."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiosqlite


class _Connection(sqlite3.Connection):
    """Begins a transaction with the first statement that writes, and as a writer.

    One that has read before cannot wait until others have written: it fails. And before it writes, the store
    may embed texts or search for long, for which no writer should wait.
    """

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        """Run a statement; the driver begins transactions, so `BEGIN` does nothing."""
        if sql == "BEGIN":
            return self.cursor()
        if sql == "COMMIT":
            self.commit()
            return self.cursor()
        return super().execute(sql, *parameters)


@asynccontextmanager
async def connect(path: Path) -> AsyncGenerator[aiosqlite.Connection]:
    """Open the connection of a store."""
    options: dict[str, Any] = {"timeout": 30, "isolation_level": "IMMEDIATE", "factory": _Connection}
    async with aiosqlite.connect(path, **options) as connection:
        await connection.execute("PRAGMA journal_mode=WAL")
        await connection.execute("PRAGMA synchronous=NORMAL")
        yield connection
