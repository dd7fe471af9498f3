"""Keep rows of runs, and the lease that one run of a thread holds at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, Literal

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from deepagents._values import valueclass
from deepagents_server.database.engine import Database, Row
from deepagents_server.database.leftovers import leftovers
from deepagents_server.database.notices import Notice
from deepagents_server.database.queue import RunQueue
from deepagents_server.database.tables import (
    PENDING,
    commands,
    leases,
    run_events,
    runs,
    server_time,
    threads,
    webhooks,
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


@valueclass
class Here:
    """A process that can begin a run at once."""

    worker: str
    keep_place: Callable[[Row], bool]
    """Keeps a place for a run; `False` if there is none for it."""


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


async def add_run(connection: AsyncConnection, row: Row) -> Row:
    """Insert a run, and return it."""
    return dict((await connection.execute(runs.insert().values(dict(row)).returning(runs))).mappings().one())


async def pass_on(
    connection: AsyncConnection, queue: RunQueue, thread_id: str, here: Here | None = None
) -> Taken | None:
    """Give a thread that is free to the first run that waits there: it begins here, or as soon as it may.

    What adds the first run of a thread, or ends the one that it has, does this in the same transaction.
    """
    # In an expression, or SQLite would read by date all that wait.
    is_due = runs.c.due_at.concat("") <= server_time()
    in_line = sa.select(runs).where(runs.c.thread_id == thread_id, runs.c.status == PENDING, is_due)
    row = (await connection.execute(in_line.order_by(runs.c.number).limit(1))).mappings().first()
    if row is None:
        return None
    given = _lease(thread_id).where(leases.c.run_id.is_(None)).values(run_id=row["run_id"])
    if not (await connection.execute(given)).rowcount:
        return None
    if here and here.keep_place(dict(row)) and not await _others_wait(connection, dict(row)):
        return await take(connection, dict(row), here.worker)
    await queue.add(connection, row)
    return None


async def pass_on_overdue(database: Database, thread_ids: Iterable[str]) -> None:
    """Give threads to runs that are due though the queue keeps them: it goes by the clocks of workers."""
    async with database.write() as connection:
        await lock_leases(connection, thread_ids)
        for thread_id in thread_ids:
            await pass_on(connection, database.queue, thread_id)


async def _others_wait(connection: AsyncConnection, run: Row) -> bool:
    """Tell whether runs of other threads wait for a worker, which one that begins at once must not pass.

    In the transaction of a caller these are his own: others have the places that are kept for them.
    """
    waiting = sa.select(leases.c.run_id).where(
        leases.c.run_id.is_not(None),
        leases.c.worker.is_(None),
        leases.c.run_id != run["run_id"],
        sa.exists().where(runs.c.run_id == leases.c.run_id, runs.c.version == run["version"]),
    )
    return (await connection.execute(waiting.limit(1))).first() is not None


async def take(connection: AsyncConnection, run: Row, worker: str) -> Taken | None:
    """Begin an attempt: the lease gets a new number, and earlier owners can no longer write.

    `None` if the thread is at work on another run. The run is known not to be over, and cannot end meanwhile.
    """
    leased = (
        _lease(run["thread_id"])
        .where(sa.or_(leases.c.run_id == run["run_id"], leases.c.run_id.is_(None)))
        .values(run_id=run["run_id"], worker=worker, token=leases.c.token + 1)
        .returning(leases.c.token)
    )
    if (token := (await connection.execute(leased)).scalar()) is None:
        return None
    begun = {"status": "running", "attempt": runs.c.attempt + 1, "updated_at": server_time()}
    started = runs.update().where(runs.c.run_id == run["run_id"]).values(begun).returning(runs)
    return dict((await connection.execute(started)).mappings().one()), token


def _lease(thread_id: str) -> sa.Update:
    return leases.update().where(leases.c.thread_id == thread_id)


async def _free(connection: AsyncConnection, held: Mapping[str, str], **changes: None) -> None:
    """Take from runs what their threads' leases give them, by the index of threads: there is none of runs."""
    theirs = sa.and_(leases.c.thread_id.in_({*held.values()}), leases.c.run_id.in_([*held]))
    await connection.execute(leases.update().where(theirs).values(changes))


async def begin(
    database: Database, run_id: str, worker: str, version: str, graphs: Collection[str] | None
) -> Taken | None:
    """Begin a run that the queue gave to a worker; `None` if it is over, moved, or its thread at work.

    Without graphs, for which the worker has no place, it waits again; also if its graph is not among them, or
    the database says that it is early.
    """
    found = await database.row(sa.select(runs.c.thread_id).where(runs.c.run_id == run_id))
    if found is None:
        return None
    is_due = (runs.c.due_at <= server_time()).label("is_due")
    waits = sa.select(runs, is_due).where(runs.c.run_id == run_id, runs.c.status == PENDING)
    async with database.write() as connection:
        await lock_leases(connection, [found["thread_id"]])
        row = (await connection.execute(waits.where(runs.c.version == version))).mappings().first()
        if row and row["is_due"] and row["graph_id"] in (graphs or ()):
            return await take(connection, dict(row), worker)
        if row:
            await database.queue.add(connection, row, 0.0 if graphs is None else 1.0)
    return None


async def take_again(database: Database, run: Row, token: int, worker: str) -> Taken | None:
    """Begin a further attempt at a run that this worker still has."""
    held = sa.select(leases.c.token).where(
        leases.c.thread_id == run["thread_id"], leases.c.run_id == run["run_id"], leases.c.token == token
    )
    async with database.write() as connection:
        if (await connection.execute(held.with_for_update())).first() is None:
            return None
        return await take(connection, run, worker)


async def recover(database: Database, worker: str | None, known: Collection[str] = ()) -> int:
    """Let the runs of a worker, or of all, wait for another one, but those that are known to be at work.

    These are what it had begun, and what the queue had given to it.
    """
    of_worker = {"executor_id": worker} if worker else {}
    given = await database.in_thread(database.queue.find, status="PENDING", **of_worker)
    stale = {workflow: run_id for workflow, run_id in given.items() if run_id not in known}
    begun = leases.c.worker.is_not(None) if worker is None else leases.c.worker == worker
    left = (
        sa.select(runs)
        .join(leases, leases.c.thread_id == runs.c.thread_id)
        .where(
            runs.c.status.in_(ACTIVE),
            runs.c.run_id.not_in([*known]),
            sa.or_(
                sa.and_(begun, leases.c.run_id == runs.c.run_id),
                sa.and_(leases.c.worker.is_(None), runs.c.run_id.in_([*stale.values()])),
            ),
        )
        .order_by(leases.c.thread_id)
    )
    async with database.write() as connection:
        rows = (await connection.execute(left.with_for_update(of=leases))).mappings().all()
        ids = [row["run_id"] for row in rows]
        await _free(connection, {row["run_id"]: row["thread_id"] for row in rows}, worker=None)
        waiting = (
            runs.update().where(runs.c.run_id.in_(ids)).values(status="pending", updated_at=server_time())
        )
        await connection.execute(waiting)
        for row in rows:
            await database.queue.add(connection, row)
    await database.in_thread(database.queue.drop, stale)
    return len(ids)


async def move_runs(database: Database, version: str, former: str | None = None) -> int:
    """Let this version of the code have the runs of a former one, or of all; return how many."""
    chosen = runs.c.version != version if former is None else runs.c.version == former
    moving = sa.select(runs, leases.c.run_id.label("current")).join(
        leases, leases.c.thread_id == runs.c.thread_id
    )
    async with database.write() as connection:
        query = moving.where(runs.c.status.in_(ACTIVE), chosen).order_by(leases.c.thread_id)
        rows = (await connection.execute(query.with_for_update(of=leases))).mappings().all()
        ids = {row["run_id"] for row in rows}
        await connection.execute(runs.update().where(runs.c.run_id.in_(ids)).values(version=version))
        for row in rows:
            # Those at work go on where they are; others of their threads wait for the end of that run.
            if row["status"] == "pending" and (row["due_at"] or row["current"] in (None, row["run_id"])):
                await database.queue.add(connection, {**row, "version": version})
    if versions := {row["version"] for row in rows}:
        which = {"status": ["ENQUEUED", "DELAYED"], "app_version": [*versions]}
        left = await database.in_thread(database.queue.find, **which)
        await database.in_thread(database.queue.drop, [name for name, run in left.items() if run in ids])
    return len(ids)


async def finish(
    database: Database,
    run: Row,
    token: int,
    changes: Mapping[str, Any],
    thread: Mapping[str, Any],
    *,
    events: Row | None = None,
    webhook: Row | None = None,
    rolled_back: bool = False,
    here: Here | None = None,
) -> tuple[bool, Taken | None]:
    """Write how a run ended and pass its thread on; `False` if another worker has taken the run over.

    `events` are its last ones, and `webhook` is what is to be posted about it. Returned is also what begins
    here next.
    """
    async with database.write() as connection:
        freed = (
            _lease(run["thread_id"])
            .where(leases.c.run_id == run["run_id"], leases.c.token == token)
            .values(run_id=None, worker=None)
        )
        if not (await connection.execute(freed)).rowcount:
            return False, None
        if events:
            await add_events(connection, events, run["attempt"])
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
        return True, await pass_on(connection, database.queue, run["thread_id"], here)


async def mark_cancelled(
    connection: AsyncConnection, queue: RunQueue, chosen: sa.ColumnElement[bool], action: str
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
        await _free(connection, over, run_id=None)
        behind = sa.select(runs.c.thread_id).where(
            runs.c.thread_id.in_({*over.values()}), runs.c.status == PENDING
        )
        for thread_id in (await connection.execute(behind.distinct())).scalars().all():
            await pass_on(connection, queue, thread_id)
    return [*(("stop", run_id) for run_id in working), *(("end", run_id) for run_id in over)]


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
