"""Keep rows of runs, and the lease that one run of a thread holds at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from deepagents_server.database.engine import Database, Row
from deepagents_server.database.leftovers import leftovers
from deepagents_server.database.notices import RUNS, Notice
from deepagents_server.database.tables import (
    commands,
    leases,
    run_events,
    runs,
    server_time,
    threads,
    webhooks,
    workers,
)
from deepagents_server.serialize import dump_text, load

Ending = Literal["success", "error", "interrupted", "timeout"]
Taken = tuple[Row, int]
"""A run that a worker has begun, and the number of its lease."""
AUTH: Final = "langgraph_auth_"
"""How the keys of a configuration begin that tell who asked."""
CHECKPOINT: Final = ("checkpoint_id", "checkpoint_ns", "checkpoint_map")
"""What names a checkpoint; its thread is said elsewhere."""
ACTIVE: Final = ("pending", "running")
STEER: Final = "steer"
"""Why a run is to end at its next step: another is to take over there."""


async def add(connection: AsyncConnection, table: sa.Table, row: Row) -> Row | None:
    """Insert a row and return it; `None` if there is one with its key."""
    inserts = postgresql if connection.dialect.name == "postgresql" else sqlite
    added = inserts.insert(table).values(dict(row)).on_conflict_do_nothing().returning(table)
    found = (await connection.execute(added)).mappings().first()
    return None if found is None else dict(found)


async def add_events(connection: AsyncConnection, row: Row, attempt: int) -> bool:
    """Insert a batch of events of an attempt at a run; `False` if a later attempt has begun."""
    inserts = postgresql if connection.dialect.name == "postgresql" else sqlite
    # Whoever begins a further attempt waits until the events are there.
    mine = sa.and_(runs.c.run_id == row["run_id"], runs.c.attempt == attempt)
    values: Any = sa.select(*(sa.literal(each) for each in row.values()), server_time()).select_from(runs)
    added = inserts.insert(run_events).from_select(
        [*row, "created_at"], values.where(mine).with_for_update(read=True)
    )
    if (await connection.execute(added.on_conflict_do_nothing().returning(run_events.c.seq))).first():
        return True
    # They may be there, if the database went away before it could answer.
    of_batch = (run_events.c.run_id == row["run_id"], run_events.c.seq == row["seq"])
    return (await connection.execute(sa.select(run_events.c.seq).where(*of_batch))).first() is not None


async def count_active(connection: AsyncConnection, thread_id: str) -> int:
    """Count the runs of a thread that wait or work."""
    chosen = sa.select(sa.func.count()).where(runs.c.thread_id == thread_id, runs.c.status.in_(ACTIVE))
    return (await connection.execute(chosen)).scalar_one()


async def lock_leases(connection: AsyncConnection, thread_ids: Iterable[str]) -> None:
    """Keep others from beginning, ending or adding runs of these threads until the transaction ends.

    Who changes runs does this first, and in this order: in another, two would wait for each other.
    """
    if connection.dialect.name == "postgresql":
        chosen = sa.select(leases.c.token).where(leases.c.thread_id.in_([*thread_ids]))
        await connection.execute(chosen.order_by(leases.c.thread_id).with_for_update())


async def make_lease(connection: AsyncConnection, thread_id: str) -> None:
    """Give a thread the row by which its runs exclude each other; what one removed has left, goes first."""
    if await add(connection, leases, {"thread_id": thread_id}):
        return
    for table, chosen in leftovers([thread_id], is_file=connection.dialect.name == "sqlite"):
        await connection.execute(sa.delete(table).where(chosen))
    await connection.execute(_lease(thread_id).values(removed_at=None))


async def take(connection: AsyncConnection, run_id: str, worker: str, *statuses: str) -> Taken | None:
    """Begin an attempt: the lease gets a new number, and earlier owners can no longer write.

    `None` if the run is over or has none of the statuses, or the thread is at work on another.
    """
    started = (
        runs.update()
        .where(runs.c.run_id == run_id, runs.c.status.in_(statuses or ACTIVE))
        .values(status="running", attempt=runs.c.attempt + 1, updated_at=server_time())
        .returning(runs)
    )
    row = (await connection.execute(started)).mappings().first()
    if row is None:
        return None
    token = await _take_lease(connection, row["thread_id"], run_id, worker)
    if token is None:
        put_back = runs.update().where(runs.c.run_id == run_id)
        await connection.execute(put_back.values(status="pending", attempt=runs.c.attempt - 1))
        return None
    return dict(row), token


async def add_run(connection: AsyncConnection, row: Row, worker: str | None) -> tuple[Row, int | None]:
    """Insert a run, and return it; with a worker, let it begin there if its thread is free."""
    taken = worker and await _take_lease(connection, row["thread_id"], row["run_id"], worker)
    begun = {**row, "status": "running", "attempt": 1} if taken else row
    added = await connection.execute(runs.insert().values(dict(begun)).returning(runs))
    return dict(added.mappings().one()), taken or None


async def _take_lease(connection: AsyncConnection, thread_id: str, run_id: str, worker: str) -> int | None:
    leased = (
        _lease(thread_id)
        .where(sa.or_(leases.c.run_id == run_id, leases.c.run_id.is_(None)))
        .values(run_id=run_id, worker=worker, token=leases.c.token + 1)
        .returning(leases.c.token)
    )
    return (await connection.execute(leased)).scalar()


def _lease(thread_id: str) -> sa.Update:
    return leases.update().where(leases.c.thread_id == thread_id)


async def move_runs(database: Database, version: str, former: str | None = None) -> int:
    """Let this version of the code have the runs of a former one, or of all; return how many."""
    chosen = runs.c.version != version if former is None else runs.c.version == former
    lost = sa.select(leases.c.run_id).where(
        leases.c.worker.is_not(None), leases.c.worker.not_in(sa.select(workers.c.worker_id))
    )
    moved = runs.update().where(runs.c.status.in_(ACTIVE), chosen)
    async with database.write() as connection:
        if former is not None:
            # Their worker is gone, and another of its version might never come.
            freed = lost.join(runs, runs.c.run_id == leases.c.run_id).where(chosen)
            for (run_id,) in (await connection.execute(freed)).all():
                await _free(connection, run_id)
        return (await connection.execute(moved.values(version=version))).rowcount


async def take_again(database: Database, run: Row, token: int, worker: str) -> Taken | None:
    """Begin a further attempt at a run that this worker still has."""
    held = sa.select(leases.c.token).where(
        leases.c.thread_id == run["thread_id"], leases.c.run_id == run["run_id"], leases.c.token == token
    )
    async with database.write() as connection:
        if (await connection.execute(held.with_for_update())).first() is None:
            return None
        return await take(connection, run["run_id"], worker)


async def take_over(database: Database, run_id: str, worker: str) -> Taken | None:
    """Begin a further attempt at a run whose worker was lost; `None` if it is over, or another has it."""
    held = sa.select(_is_elsewhere(worker)).where(_has(run_id)).with_for_update(of=leases)
    async with database.write() as connection:
        if (await connection.execute(held)).scalar():
            return None
        taken = await take(connection, run_id, worker)
        if taken is None:
            freed = leases.update().where(_has(run_id), leases.c.worker == worker)
            await connection.execute(freed.values(run_id=None, worker=None))
    return taken


def _has(run_id: str) -> sa.ColumnElement[bool]:
    """Say which lease a run has, by the index of threads: there is none of runs."""
    thread = sa.select(runs.c.thread_id).where(runs.c.run_id == run_id).scalar_subquery()
    return sa.and_(leases.c.thread_id == thread, leases.c.run_id == run_id)


def _is_elsewhere(worker: str) -> sa.ColumnElement[bool]:
    """Tell of a lease whether another worker has it that lives."""
    return sa.exists().where(workers.c.worker_id == leases.c.worker, workers.c.worker_id != worker)


async def finish(
    database: Database,
    run: Row,
    token: int,
    changes: Mapping[str, Any],
    thread: Mapping[str, Any],
    *,
    webhook: Row | None = None,
    rolled_back: bool = False,
) -> bool:
    """Write how a run ended and free its thread; `False` if another worker has taken the run over.

    `webhook` has the columns of what is to be posted about it.
    """
    async with database.write() as connection:
        freed = (
            _lease(run["thread_id"])
            .where(leases.c.run_id == run["run_id"], leases.c.token == token)
            .values(run_id=None, worker=None)
        )
        if not (await connection.execute(freed)).rowcount:
            return False
        await connection.execute(
            runs.update().where(runs.c.run_id == run["run_id"]).values(**changes, updated_at=server_time())
        )
        if rolled_back:
            await delete_runs(connection, [run["run_id"]])
        elif webhook:
            await add(connection, webhooks, webhook)
        waits = sa.exists().where(runs.c.thread_id == run["thread_id"], runs.c.status.in_(ACTIVE))
        await connection.execute(
            threads.update()
            .where(threads.c.thread_id == run["thread_id"])
            .values(
                {
                    **thread,
                    "status": sa.case((waits, "busy"), else_=thread["status"]),
                    "updated_at": server_time(),
                }
            )
        )
    return True


async def mark_cancelled(
    connection: AsyncConnection, chosen: sa.ColumnElement[bool], action: str
) -> list[Notice]:
    """Note that runs are to end, and end those that have not begun; return what is to be sent about them."""
    ended = (
        runs.update()
        .where(chosen, runs.c.status == "pending")
        .values(status="interrupted", cancelled=action, updated_at=server_time())
        .returning(runs.c.run_id, runs.c.thread_id)
    )
    over: dict[str, str] = {row[0]: row[1] for row in await connection.execute(ended)}
    noted = runs.update().where(chosen, runs.c.status.in_(ACTIVE)).values(cancelled=action)
    working = [*(await connection.execute(noted.returning(runs.c.run_id))).scalars()]
    if over and action == "rollback":
        await delete_runs(connection, over)
    if over:
        await _set_idle(connection, {*over.values()})
    stops: list[Notice] = [("stop", run_id) for run_id in working]
    ends: list[Notice] = [("end", run_id) for run_id in over]
    return [*stops, *ends, *([RUNS] if over else [])]


async def mark_steered(connection: AsyncConnection, chosen: sa.ColumnElement[bool]) -> list[Notice]:
    """Note that runs are to end at their next step, unless they are to end at once."""
    noted = runs.update().where(chosen, runs.c.status.in_(ACTIVE), runs.c.cancelled.is_(None))
    marked = await connection.execute(noted.values(cancelled=STEER).returning(runs.c.run_id))
    return [("steer", run_id) for run_id in marked.scalars()]


async def _set_idle(connection: AsyncConnection, thread_ids: Iterable[str]) -> None:
    """Show threads as free again after runs that never began."""
    waits = sa.exists().where(runs.c.thread_id == threads.c.thread_id, runs.c.status.in_(ACTIVE))
    status = sa.case((threads.c.interrupts == "{}", "idle"), else_="interrupted")
    await connection.execute(
        threads.update()
        .where(threads.c.thread_id.in_([*thread_ids]), threads.c.status == "busy", ~waits)
        .values(status=status, updated_at=server_time())
    )


async def hand_back(database: Database, run_id: str, worker: str) -> None:
    """Let a run start again wherever there is room, unless another worker that lives has it by now."""
    async with database.write() as connection:
        await _free(connection, run_id, ~_is_elsewhere(worker))


async def _free(connection: AsyncConnection, run_id: str, *wanted: sa.ColumnElement[bool]) -> None:
    free = leases.update().where(_has(run_id), *wanted).values(run_id=None, worker=None)
    if (await connection.execute(free)).rowcount:
        waiting = runs.update().where(runs.c.run_id == run_id, runs.c.status.in_(ACTIVE))
        await connection.execute(waiting.values(status="pending", updated_at=server_time()))


async def delete_runs(connection: AsyncConnection, run_ids: Iterable[str]) -> None:
    """Remove runs, their events and what is known of their commands."""
    listed = list(run_ids)
    await connection.execute(commands.delete().where(commands.c.run_id.in_(listed)))
    await connection.execute(run_events.delete().where(run_events.c.run_id.in_(listed)))
    await connection.execute(runs.delete().where(runs.c.run_id.in_(listed)))


def show_run(row: Row) -> dict[str, Any]:
    """Show a run as clients read it."""
    names = ("run_id", "thread_id", "assistant_id", "metadata", "status", "multitask_strategy")
    shown = {name: row[name] for name in (*names, "created_at", "updated_at")}
    kwargs: dict[str, Any] = load(row["kwargs"]) or {}
    configured: dict[str, Any] = kwargs.get("config", {}).get("configurable", {})
    for name in [name for name in configured if name.startswith(AUTH)]:
        # A user object may hold secrets, and others may be allowed to see the run.
        del configured[name]
    error = {"error": load(row["error"])} if row["error"] else {}
    return {**shown, "kwargs": kwargs, **error}


def new_run(values: Mapping[str, Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Fill the row of a run that is about to be inserted."""
    stamp = server_time()
    return {
        "status": "pending",
        "attempt": 0,
        "cancelled": None,
        "error": None,
        "due_at": "",
        "created_at": stamp,
        "updated_at": stamp,
        **values,
        "kwargs": dump_text(kwargs),
    }
