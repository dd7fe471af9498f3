"""Refuse, in LangGraph's saver for PostgreSQL, what a worker writes that has lost its thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg.errors import LockNotAvailable
from psycopg_pool import AsyncConnectionPool

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
