"""Let an operator see who has which runs, end them, and let those that failed go on."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import sqlalchemy as sa

from deepagents_server.database.engine import Database, Row
from deepagents_server.database.notices import Notices
from deepagents_server.database.runs import ACTIVE, lock_leases, mark_cancelled, pass_on
from deepagents_server.database.tables import PENDING, leases, run_events, runs, server_time, threads
from deepagents_server.errors import ServeError
from deepagents_server.serialize import seconds_between

_AGAIN: Final = ("error", "interrupted", "timeout")
_LATER: Final = runs.alias()


async def list_runs(
    database: Database, *, limit: int, statuses: Collection[str] = (), **columns: str
) -> list[Row]:
    """Return runs of all owners with the workers that have them, the newest first.

    `columns` say what `owner` or `thread_id` they have.
    """
    query = _with_workers().where(*(runs.c[name] == value for name, value in columns.items()))
    if statuses:
        query = query.where(runs.c.status.in_(statuses))
    return await database.rows(query.order_by(runs.c.number.desc()).limit(limit))


async def find_run(database: Database, run_id: str) -> Row:
    """Return a run.

    Raises:
        ServeError: if there is none.
    """
    row = await database.row(_with_workers().where(runs.c.run_id == run_id))
    if row is None:
        raise ServeError(f"There is no run {run_id!r}; `deepagents runs list --status all` names them.")
    return row


def _with_workers() -> sa.Select[Any]:
    held = sa.and_(leases.c.thread_id == runs.c.thread_id, leases.c.run_id == runs.c.run_id)
    columns: list[sa.Column[Any]] = [*runs.c, leases.c.worker]
    return sa.select(*columns).outerjoin(leases, held)


async def end_run(database: Database, notices: Notices, run: Row, action: str) -> None:
    """End a run early; `rollback` also takes back what it did to its thread."""
    async with notices.write(database) as (connection, sent):
        await lock_leases(connection, [run["thread_id"]])
        sent += await mark_cancelled(connection, database.queue, runs.c.run_id == run["run_id"], action)


async def find_marked(database: Database, run_ids: Collection[str]) -> list[Row]:
    """Return those of some runs that are to end early, and why."""
    columns: list[sa.Column[Any]] = [runs.c.run_id, runs.c.cancelled]
    marked = sa.select(*columns).where(runs.c.run_id.in_(run_ids), runs.c.cancelled.is_not(None))
    return await database.rows(marked) if run_ids else []


async def retry_run(database: Database, notices: Notices, run: Row) -> None:
    """Let a run that did not end well go on from its last checkpoint, as after a crash.

    Raises:
        ServeError: if it ended well, has not ended, or its thread has gone on.
    """
    later = sa.exists().where(_LATER.c.thread_id == runs.c.thread_id, _LATER.c.number > runs.c.number)
    again = (
        runs.update()
        .where(runs.c.run_id == run["run_id"], runs.c.status.in_(_AGAIN), ~later)
        .values(status="pending", error=None, cancelled=None, due_at="", updated_at=server_time())
    )
    of_thread = threads.update().where(threads.c.thread_id == run["thread_id"])
    async with notices.write(database) as (connection, sent):
        await lock_leases(connection, [run["thread_id"]])
        if not (await connection.execute(again)).rowcount:
            raise ServeError(_explain(run))
        # They end with the end that it had, and no reader would look behind that.
        await connection.execute(run_events.delete().where(run_events.c.run_id == run["run_id"]))
        await connection.execute(of_thread.values(status="busy", error=None, updated_at=server_time()))
        await pass_on(connection, database.queue, run["thread_id"])
        sent += [("begin", run["thread_id"])]


async def queue_age(database: Database) -> float:
    """Return for how many seconds the first of the runs that may begin has waited."""
    since = sa.case((runs.c.due_at > runs.c.updated_at, runs.c.due_at), else_=runs.c.updated_at)
    waits = sa.select(sa.func.min(since)).where(runs.c.status == PENDING, runs.c.due_at <= server_time())
    query: Any = sa.select(waits.scalar_subquery().label("since"), server_time().label("now"))
    (row,) = await database.rows(query)
    return max(0.0, seconds_between(row["since"] or row["now"], row["now"]))


def _explain(run: Row) -> str:
    name = f"Run {run['run_id']}"
    if run["status"] in ACTIVE:
        return f"{name} is {run['status']}; there is nothing to retry."
    if run["status"] not in _AGAIN:
        return f"{name} ended well; start another one on its thread."
    return f"{name} is not the last of its thread, which has gone on; start another one there."
