"""Check connections to PostgreSQL that lie in a pool: is the database still at their other end?"""

from __future__ import annotations

import select
from typing import Any

import psycopg
from sqlalchemy.exc import DisconnectionError


def is_closed(connection: Any) -> bool:
    """Tell whether the database has ended an idle connection, as it does before a restart.

    It says so before it goes, and says nothing else there. To ask it each time would double the transactions.
    """
    waiting = select.poll()
    waiting.register(connection.fileno(), select.POLLIN)
    return bool(waiting.poll(0))


def refuse_closed(connection: Any, _record: Any, _proxy: Any) -> None:
    """Let a pool of SQLAlchemy open another connection instead."""
    if is_closed(connection.driver_connection):
        raise DisconnectionError


async def check(connection: Any) -> None:
    """Let a pool of psycopg open another connection instead."""
    if is_closed(connection):
        # Or the pool, which looks at its state alone, would take it back and give it out again.
        await connection.close()
        raise psycopg.OperationalError("The database has closed the connection.")
