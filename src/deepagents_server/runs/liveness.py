"""Find which workers live, and what the others have left: heartbeats, and a reaper that is one at a time."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import sqlalchemy as sa
from dbos import DBOS, WorkflowStatus
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError

from deepagents_server.database import Database
from deepagents_server.database.runs import hand_back
from deepagents_server.database.tables import leases, runs, workers
from deepagents_server.errors import show_cause

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
            _log.warning("The database does not answer: %s", show_cause(error))
        engine.dispose()


def _beat_until(engine: sa.Engine, worker: str, over: threading.Event) -> None:
    while not over.wait(BEAT):
        try:
            _beat(engine, worker)
        except DBAPIError as error:
            _log.warning("The database does not answer: %s", show_cause(error))


def _beat(engine: sa.Engine, worker: str) -> None:
    row = {"worker_id": worker, "seen_at": _CLOCK, "host": socket.gethostname()}
    seen = (
        insert(workers)
        .values(row)
        .on_conflict_do_update(index_elements=["worker_id"], set_={"seen_at": _CLOCK})
    )
    with engine.begin() as connection:
        connection.execute(seen)


async def look_around(database: Database, worker: str) -> tuple[bool, set[str]]:
    """Tell whether a worker was lost, and which runs this one has.

    In one query, since each worker asks every second.
    """
    silent = sa.exists().where(workers.c.seen_at < _CLOCK - DEAD)
    mine = sa.select(sa.func.array_agg(leases.c.run_id)).where(leases.c.worker == worker)
    query: Any = sa.select(
        sa.or_(silent, _left_over().exists()).label("is_lost"), mine.scalar_subquery().label("held")
    )
    (found,) = await database.rows(query)
    return found["is_lost"], {*(found["held"] or ())}


def _left_over() -> sa.Select[Any]:
    """Select the workers that have runs and no row any more."""
    alive = sa.exists().where(workers.c.worker_id == leases.c.worker)
    return sa.select(leases.c.worker).where(leases.c.worker.is_not(None), ~alive)


async def reap(database: Database, queue: str) -> int:
    """Let the runs of lost workers go on; return how many. Only one process does so at a time."""
    async with database.engine.begin() as leading:
        if not (await leading.execute(sa.select(sa.func.pg_try_advisory_xact_lock(_REAPER)))).scalar():
            return 0
        # Whoever has no row any more is lost; committed first, since only then may others take its runs over.
        await database.execute(workers.delete().where(workers.c.seen_at < _CLOCK - DEAD))
        lost = await database.rows(_left_over().distinct())
        return sum([await _move_runs(database, row["worker"], queue) for row in lost])


async def _move_runs(database: Database, worker: str, queue: str) -> int:
    held = await _runs_of(database, worker)
    left = await DBOS.list_workflows_async(status="PENDING", executor_id=worker, load_input=False)
    for workflow in left:
        if _can_resume(workflow, held):
            # With the name of a queue, or it would escape the limits of workers.
            await DBOS.resume_workflow_async(workflow.workflow_id, queue_name=queue)
        else:
            await DBOS.cancel_workflow_async(workflow.workflow_id)
    waiting = await DBOS.list_workflows_async(status="ENQUEUED", queue_name=queue, load_input=False)
    known = {_run_of(each) for each in (*left, *waiting) if _can_resume(each, held)}
    for run_id in held.keys() - known:
        await hand_back(database, run_id, worker)
    if moved := len(held):
        _log.warning("Worker %s was lost; %d of its runs go on", worker, moved)
    return moved


def _run_of(workflow: WorkflowStatus) -> str:
    return workflow.workflow_id.rsplit(":", 1)[0]


def _can_resume(workflow: WorkflowStatus, held: Mapping[str, str]) -> bool:
    """Tell whether DBOS can begin a run again: one that is moved has another version of the code now."""
    return held.get(_run_of(workflow)) == workflow.app_version


async def _runs_of(database: Database, worker: str) -> dict[str, str]:
    """Return the runs that a worker has, and the versions of the code that are to run them."""
    columns: list[sa.Column[Any]] = [runs.c.run_id, runs.c.version]
    held = sa.select(*columns).join(leases, leases.c.run_id == runs.c.run_id)
    found = await database.rows(held.where(leases.c.worker == worker))
    return {row["run_id"]: row["version"] for row in found}


async def hand_back_idle(database: Database, worker: str, idle: set[str], before: set[str]) -> int:
    """Give back what a worker was given without hearing of it, as when a connection broke in a commit.

    Twice idle in a row, since a run may just have been taken.
    """
    for run_id in idle & before:
        _log.warning("Run %s was taken and did not begin; it is given back", run_id)
        await hand_back(database, run_id, worker)
    return len(idle & before)
