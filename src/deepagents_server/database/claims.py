"""Which of the runs that wait begin next."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from deepagents_server.database.engine import Database, Row
from deepagents_server.database.runs import Taken, take
from deepagents_server.database.tables import PENDING, leases, runs
from deepagents_server.serialize import now

_OWNERS_LOCK: Final = 0x6465_6572
_FIRST: Final = runs.alias()

Find = Callable[[sa.Select[Any]], Awaitable[list[Row]]]


@dataclass(frozen=True)
class Claim:
    """What a worker may take."""

    worker: str
    graphs: Sequence[str]
    version: str
    limit: int
    owner_limit: int | None = None
    """How many runs of one owner may work at once, everywhere."""


async def first_due(database: Database, after: str = "") -> str | None:
    """Return when the first of the runs that wait is due, of those that are due after a time."""
    query = sa.select(sa.func.min(runs.c.due_at).label("due")).where(
        runs.c.status == "pending", runs.c.due_at > after
    )
    row = await database.row(query)
    return row["due"] if row else None


async def claim(database: Database, wanted: Claim) -> list[Taken]:
    """Take runs that may start: due, first on their thread, and the thread free; the urgent ones first."""
    # Among thousands that wait for their threads this takes long, so not while the event loop waits.
    found = [] if database.is_shared else await _choose(database, database.rows, wanted)
    async with database.write() as connection:

        async def lock(query: sa.Select[Any]) -> list[Row]:
            locked = query.with_for_update(of=leases, skip_locked=True)
            return [dict(row) for row in (await connection.execute(locked)).mappings()]

        if database.is_shared:
            if wanted.owner_limit is not None:
                # Two workers that count at once would both find room.
                await connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_OWNERS_LOCK)))
            found = await _choose(database, lock, wanted)
        chosen = {row["thread_id"]: row["run_id"] for row in found}
        taken = [await take(connection, run_id, wanted.worker, "pending") for run_id in chosen.values()]
    return [each for each in taken if each]


def _waiting(wanted: Claim) -> sa.Select[Any]:
    earlier = sa.exists().where(
        _FIRST.c.thread_id == runs.c.thread_id,
        _FIRST.c.status == PENDING,
        _FIRST.c.created_at < runs.c.created_at,
        _FIRST.c.due_at <= now(),
    )
    columns: list[sa.Column[Any]] = [runs.c.thread_id, runs.c.run_id, runs.c.owner]
    return (
        sa.select(*columns)
        .join(leases, leases.c.thread_id == runs.c.thread_id)
        .where(
            runs.c.status == PENDING,
            # In an expression, or SQLite would read by date all that wait, and sort them.
            runs.c.due_at.concat("") <= now(),
            runs.c.graph_id.in_(wanted.graphs),
            runs.c.version == wanted.version,
            leases.c.run_id.is_(None),
            ~earlier,
        )
        .order_by(runs.c.priority.desc(), runs.c.created_at)
    )


async def _choose(database: Database, find: Find, wanted: Claim) -> list[Row]:
    """Find the most urgent runs, without those by which an owner would have more at work than its limit."""
    limit, at_work = math.inf, Counter[str]()
    if wanted.owner_limit is not None:
        limit, at_work = wanted.owner_limit, await _count_at_work(database)
    chosen: list[Row] = []
    while room := wanted.limit - len(chosen):
        full = [owner for owner, number in at_work.items() if number >= limit]
        further = _waiting(wanted).where(
            runs.c.owner.not_in(full), runs.c.run_id.not_in([row["run_id"] for row in chosen])
        )
        found = await find(further.limit(room))
        for row in found:
            if at_work[row["owner"]] < limit:
                at_work[row["owner"]] += 1
                chosen.append(row)
        if len(found) < room:
            break
    return chosen


async def _count_at_work(database: Database) -> Counter[str]:
    """Count by owner the runs that work, everywhere."""
    columns: list[Any] = [runs.c.owner, sa.func.count().label("number")]
    counted: Any = sa.select(*columns).where(runs.c.status == "running").group_by(runs.c.owner)
    return Counter({row["owner"]: row["number"] for row in await database.rows(counted)})
