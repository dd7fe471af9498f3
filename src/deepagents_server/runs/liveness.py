"""Which workers live, and what the others have left: heartbeats, and a reaper that is one at a time."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Container, Generator
from contextlib import contextmanager
from typing import Final

import sqlalchemy as sa
from dbos import DBOS
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError

from deepagents_server.database import Database
from deepagents_server.database.runs import hand_back
from deepagents_server.database.tables import leases, workers

BEAT: Final = 1.0
DEAD: Final = 5.0
"""Seconds between two signs of life, and after how many without one a worker counts as lost."""
_REAPER: Final = 0x6465_6571
_CLOCK: Final = sa.func.extract("epoch", sa.func.clock_timestamp())
_log: Final = logging.getLogger("deepagents.server")


@contextmanager
def beating(url: sa.URL, worker: str) -> Generator[None]:
    """Say every second that a worker lives: in a thread, for code of the user may hold up the event loop."""
    engine = sa.create_engine(url.set(drivername="postgresql+psycopg"), pool_size=1)
    over = threading.Event()
    _beat(engine, worker)
    thread = threading.Thread(target=_beat_until, args=(engine, worker, over), daemon=True)
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
            _log.warning("The database does not answer: %s", error)
        engine.dispose()


def _beat_until(engine: sa.Engine, worker: str, over: threading.Event) -> None:
    while not over.wait(BEAT):
        try:
            _beat(engine, worker)
        except DBAPIError as error:
            _log.warning("The database does not answer: %s", error)


def _beat(engine: sa.Engine, worker: str) -> None:
    row = {"worker_id": worker, "seen_at": _CLOCK, "host": socket.gethostname()}
    seen = (
        insert(workers)
        .values(row)
        .on_conflict_do_update(index_elements=["worker_id"], set_={"seen_at": _CLOCK})
    )
    with engine.begin() as connection:
        connection.execute(seen)


async def reap(database: Database, queue: str) -> int:
    """Let the runs of lost workers go on; return how many. Only one process does so at a time."""
    async with database.engine.begin() as leading:
        if not (await leading.execute(sa.select(sa.func.pg_try_advisory_xact_lock(_REAPER)))).scalar():
            return 0
        # Whoever has no row any more is lost; committed first, since only then may others take its runs over.
        await database.execute(workers.delete().where(workers.c.seen_at < _CLOCK - DEAD))
        lost = sa.select(leases.c.worker).where(
            leases.c.run_id.is_not(None), leases.c.worker.not_in(sa.select(workers.c.worker_id))
        )
        return sum(
            [await _move_runs(database, row["worker"], queue) for row in await database.rows(lost.distinct())]
        )


async def _move_runs(database: Database, worker: str, queue: str) -> int:
    left = await DBOS.list_workflows_async(status="PENDING", executor_id=worker, load_input=False)
    for workflow in left:
        # With the name of a queue, or it would escape the limits of workers.
        await DBOS.resume_workflow_async(workflow.workflow_id, queue_name=queue)
    waiting = await DBOS.list_workflows_async(status="ENQUEUED", queue_name=queue, load_input=False)
    known = {workflow.workflow_id.rsplit(":", 1)[0] for workflow in (*left, *waiting)}
    unknown = await runs_of(database, worker) - known
    for run_id in unknown:
        await hand_back(database, run_id)
    if moved := len(left) + len(unknown):
        _log.warning("Worker %s was lost; %d of its runs go on", worker, moved)
    return moved


async def runs_of(database: Database, worker: str) -> set[str]:
    """Return the runs that a worker has."""
    held = sa.select(leases.c.run_id).where(leases.c.worker == worker, leases.c.run_id.is_not(None))
    return {row["run_id"] for row in await database.rows(held)}


async def hand_back_idle(
    database: Database, worker: str, active: Container[str], before: set[str]
) -> tuple[set[str], int]:
    """Give back what a worker was given without hearing of it, as when a connection broke in a commit.

    Twice idle in a row, since a run may just have been taken: return those that are so for the first time,
    and how many were given back.
    """
    idle = {run_id for run_id in await runs_of(database, worker) if run_id not in active}
    for run_id in idle & before:
        _log.warning("Run %s was taken and did not begin; it is given back", run_id)
        await hand_back(database, run_id)
    return idle - before, len(idle & before)
