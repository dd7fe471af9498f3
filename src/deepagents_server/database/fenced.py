"""Refuse, in PostgreSQL, what a worker writes that has lost its thread, and connections that are closed."""

from __future__ import annotations

import select
from collections.abc import Sequence
from typing import Any

import psycopg
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg.errors import LockNotAvailable
from psycopg_pool import AsyncConnectionPool
from sqlalchemy.exc import DisconnectionError

from deepagents.checkpoints import OrderedCheckpoints
from deepagents_server.database.leased import LeasedCheckpoints


class FencedPostgresSaver(LeasedCheckpoints, OrderedCheckpoints, AsyncPostgresSaver):
    """Checks the lease before it keeps what a task has done.

    Checkpoints carry the lease in their metadata, so a trigger checks them. The writes of a task carry none.
    """

    def __init__(self, pool: AsyncConnectionPool[Any]) -> None:
        super().__init__(pool)
        self._pool = pool

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Write what a task has done.

        Raises:
            LockNotAvailable: if another worker has the thread now.
        """
        lease = config.get("metadata", {}).get("lease")
        if lease is None:
            await super().aput_writes(config, writes, task_id, task_path)
            return
        thread_id = config.get("configurable", {}).get("thread_id")
        async with self._pool.connection() as connection, connection.transaction():
            # Locked until the writes are there: a worker that takes the thread over waits for them.
            held = await connection.execute(
                "SELECT token FROM leases WHERE thread_id = %s FOR SHARE", [thread_id]
            )
            row = await held.fetchone()
            if row and lease < row["token"]:
                raise LockNotAvailable("lease lost")
            inside = AsyncPostgresSaver(connection, serde=self.serde)
            await inside.aput_writes(config, writes, task_id, task_path)


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
