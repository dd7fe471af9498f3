"""Find which workers live, and what the others have left: heartbeats, and a reaper that is one at a time."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError

from deepagents._values import valueclass
from deepagents_server.database import Database
from deepagents_server.database.runs import recover
from deepagents_server.database.tables import PENDING, leases, runs, server_time, workers
from deepagents_server.errors import show_cause

BEAT: Final = 1.0
DEAD: Final = 5.0
"""Seconds between two signs of life, and after how many without one a worker counts as lost."""
_LATE: Final = 2.0
"""Seconds after which a run that was to begin later is no longer left to the queue alone."""
_REAPER: Final = 0x6465_6571
_CLOCK: Final = sa.func.extract("epoch", sa.func.clock_timestamp())
_log: Final = logging.getLogger("deepagents.server")


@contextmanager
def beating(url: sa.URL, worker: str, slots: int) -> Generator[None]:
    """Say every second that a worker lives: in a thread, for code of the user may hold up the event loop."""
    engine = sa.create_engine(url.set(drivername="postgresql+psycopg"), pool_size=1)
    over = threading.Event()
    beat = partial(_beat, engine, {"worker_id": worker, "host": socket.gethostname(), "slots": slots})
    beat()
    thread = threading.Thread(target=_beat_until, args=(beat, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        try:
            with engine.begin() as connection:
                connection.execute(workers.delete().where(workers.c.worker_id == worker))
        except DBAPIError as error:
            _log.warning("The database does not answer: %s", show_cause(error))
        engine.dispose()


def _beat_until(beat: Callable[[], None], over: threading.Event) -> None:
    while not over.wait(BEAT):
        try:
            beat()
        except DBAPIError as error:
            _log.warning("The database does not answer: %s", show_cause(error))


def _beat(engine: sa.Engine, row: Mapping[str, Any]) -> None:
    seen = (
        insert(workers)
        .values({**row, "seen_at": _CLOCK})
        .on_conflict_do_update(index_elements=["worker_id"], set_={"seen_at": _CLOCK})
    )
    with engine.begin() as connection:
        connection.execute(seen)


async def find_most_slots(database: Database) -> int:
    """Return how many runs the largest of the workers works on at once."""
    (found,) = await database.rows(sa.select(sa.func.max(workers.c.slots).label("slots")))
    return found["slots"] or 0


@valueclass
class Seen:
    """What a worker finds when it looks around."""

    is_lost: bool
    """Whether a worker was lost."""
    held: set[str]
    """The runs that this worker has."""
    overdue: list[str]
    """Threads that are free, with a run that was to begin earlier."""


async def look_around(database: Database, worker: str) -> Seen:
    """Look for what workers do: in one query, since each of them asks every second."""
    mine = sa.select(sa.func.array_agg(leases.c.run_id)).where(leases.c.worker == worker)
    overdue = sa.select(sa.func.array_agg(runs.c.thread_id.distinct())).where(
        runs.c.status == PENDING,
        runs.c.due_at > "",
        runs.c.due_at <= server_time(-_LATE),
        leases.c.thread_id == runs.c.thread_id,
        leases.c.run_id.is_(None),
    )
    query: Any = sa.select(
        _lost().exists().label("is_lost"),
        mine.scalar_subquery().label("held"),
        overdue.scalar_subquery().label("overdue"),
    )
    (found,) = await database.rows(query)
    return Seen(found["is_lost"], {*(found["held"] or ())}, sorted(found["overdue"] or ()))


def _lost() -> sa.CompoundSelect[Any]:
    """Select the workers that are silent, and those that have runs and no row any more."""
    alive = sa.exists().where(workers.c.worker_id == leases.c.worker)
    return sa.union(
        sa.select(workers.c.worker_id).where(workers.c.seen_at < _CLOCK - DEAD),
        sa.select(leases.c.worker).where(leases.c.worker.is_not(None), ~alive),
    )


async def reap(database: Database) -> None:
    """Let the runs of lost workers go on. Only one process does so at a time."""
    async with database.engine.begin() as leading:
        if not (await leading.execute(sa.select(sa.func.pg_try_advisory_xact_lock(_REAPER)))).scalar():
            return
        for row in await database.rows(sa.select(_lost().subquery())):
            if moved := await recover(database, row["worker_id"]):
                _log.warning("Worker %s was lost; %d of its runs go on", row["worker_id"], moved)
            # At last, so that another process does it if this one ends before.
            await database.execute(workers.delete().where(workers.c.worker_id == row["worker_id"]))
