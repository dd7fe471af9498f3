"""Find what a removed thread leaves in other tables, LangGraph's among them."""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa

from deepagents_server.database.tables import commands, crons, leases, run_events, runs, server_time


def tombstone(thread_ids: Iterable[str]) -> sa.Update:
    """Keep the owners of a thread from writing to it; what it held may go from then on."""
    return (
        leases.update()
        .where(leases.c.thread_id.in_([*thread_ids]))
        .values(token=leases.c.token + 1, run_id=None, worker=None, removed_at=server_time())
    )


def leftovers(
    thread_ids: Iterable[str], *, is_file: bool
) -> list[tuple[sa.TableClause, sa.ColumnElement[bool]]]:
    """Say where rows of removed threads are; not those of one that was made again under its id."""
    gone = sa.select(leases.c.thread_id).where(
        leases.c.thread_id.in_([*thread_ids]), leases.c.removed_at.is_not(None)
    )
    of_run = sa.select(runs.c.run_id).where(runs.c.thread_id.in_(gone))
    return [
        *((table, table.c.run_id.in_(of_run)) for table in (run_events, commands)),
        *(
            (table, table.c.thread_id.in_(gone))
            for table in (runs, crons, *tables_of_savers(is_file=is_file))
        ),
    ]


def tables_of_savers(*, is_file: bool) -> list[sa.TableClause]:
    """Return the tables in which LangGraph keeps the states of threads."""
    place = ("thread_id", "checkpoint_ns")
    state = (*place, "checkpoint_id")
    if is_file:
        return [_table("checkpoints", state), _table("writes", state)]
    states = [_table("checkpoints", state), _table("checkpoint_writes", state)]
    return [*states, _table("checkpoint_blobs", place)]


def _table(name: str, columns: Iterable[str]) -> sa.TableClause:
    return sa.table(name, *(sa.column(each, sa.Text) for each in columns))
