"""End many runs early."""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa

from deepagents_server.database.runs import ACTIVE, lock_leases, mark_cancelled
from deepagents_server.database.tables import runs
from deepagents_server.runs.engine import Action
from deepagents_server.server import Server

_STEP: Final = 100


async def cancel_runs(server: Server, action: Action, *chosen: sa.ColumnElement[bool]) -> int:
    """End the chosen runs early that are not over, a few in each transaction; return how many."""
    columns: list[sa.Column[Any]] = [runs.c.run_id, runs.c.thread_id]
    query = sa.select(*columns).where(*chosen, runs.c.status.in_(ACTIVE))
    # The newest first: those who wait behind others are not to begin meanwhile.
    found = await server.database.rows(query.order_by(runs.c.number.desc()))
    engine = server.engine
    for first in range(0, len(found), _STEP):
        some = found[first : first + _STEP]
        async with engine.notices.write(engine.database) as (connection, notices):
            await lock_leases(connection, {row["thread_id"] for row in some})
            named = runs.c.run_id.in_([row["run_id"] for row in some])
            notices += await mark_cancelled(connection, engine.database.queue, named, action)
    return len(found)
