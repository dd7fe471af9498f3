"""The connection of LangGraph's store for SQLite: when its transactions begin."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import aiosqlite


class _Connection(sqlite3.Connection):
    """Begins a transaction with its first statement, and as a writer.

    One that has read before cannot wait until others have written: it fails. And before the first statement
    the store may embed texts, for which no writer should wait.
    """

    begins = False

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        """Run a statement."""
        if sql == "BEGIN" or (sql == "COMMIT" and self.begins):
            self.begins = sql == "BEGIN"
            return self.cursor()
        return super().execute(sql, *parameters)

    def cursor(self, factory: Any = None) -> Any:
        """Make a cursor, whose first statement may begin a transaction."""
        return super().cursor(_Cursor)


class _Cursor(sqlite3.Cursor):
    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        connection = cast(_Connection, self.connection)
        if connection.begins:
            super().execute("BEGIN IMMEDIATE")
            connection.begins = False
        return super().execute(sql, *parameters)


@asynccontextmanager
async def connect(path: Path) -> AsyncGenerator[aiosqlite.Connection]:
    """Open the connection of a store."""
    options: dict[str, Any] = {"timeout": 30, "isolation_level": None, "factory": _Connection}
    async with aiosqlite.connect(path, **options) as connection:
        await connection.execute("PRAGMA journal_mode=WAL")
        await connection.execute("PRAGMA synchronous=NORMAL")
        yield connection
