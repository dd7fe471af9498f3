"""Take back what a run did to its thread."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import sqlalchemy as sa

from deepagents_server.database import Database
from deepagents_server.runs.execute import Attempt, Outcome

_OF_RUN: Final = {
    "sqlite": "json_extract(CAST(metadata AS TEXT), '$.run_id') = :run_id",
    "postgresql": "metadata ->> 'run_id' = :run_id",
}


async def undo(database: Database, attempt: Attempt) -> Outcome:
    """Delete the checkpoints of a run, and tell what the thread holds without them."""
    of_run = _OF_RUN[database.engine.dialect.name]
    tables = ("writes",) if not database.is_shared else ("checkpoint_writes",)
    names = {"thread_id": attempt.run["thread_id"], "run_id": attempt.run_id}
    chosen = f"SELECT checkpoint_id FROM checkpoints WHERE thread_id = :thread_id AND {of_run}"
    async with database.write() as connection:
        for table in tables:
            await connection.execute(
                sa.text(f"DELETE FROM {table} WHERE thread_id = :thread_id AND checkpoint_id IN ({chosen})"),
                names,
            )
        await connection.execute(
            sa.text(f"DELETE FROM checkpoints WHERE thread_id = :thread_id AND {of_run}"), names
        )
    return replace(await attempt.outcome("interrupted"), rolled_back=True)
