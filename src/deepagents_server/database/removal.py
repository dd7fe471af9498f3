"""Remove what is old: in transactions of a few rows each, so that no run ever waits for them.

This blocks, and belongs into a thread of its own: the event loop has requests to answer.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing, contextmanager
from typing import Any, Final

import sqlalchemy as sa

from deepagents._values import valueclass
from deepagents_server.config import Ages, Strategy
from deepagents_server.database.apart import open_apart, rest_since, step
from deepagents_server.database.engine import Row
from deepagents_server.database.leftovers import leftovers, tables_of_savers, tombstone
from deepagents_server.database.queue import RunQueue
from deepagents_server.database.runs import ACTIVE
from deepagents_server.database.store import label_of
from deepagents_server.database.tables import (
    commands,
    crons,
    leases,
    quotas,
    run_events,
    runs,
    server_time,
    threads,
)
from deepagents_server.serialize import now

_STEP: Final = 100
_DONE: Final = ("SUCCESS", "ERROR", "CANCELLED")


_OF_ALL: Final = (
    'SELECT sum(SIZE("values") + SIZE(metadata)) FROM threads WHERE owner = :owner',
    "SELECT sum(SIZE(kwargs)) FROM runs WHERE owner = :owner",
    "SELECT sum(SIZE(events)) FROM run_events e JOIN runs r ON r.run_id = e.run_id WHERE r.owner = :owner",
    "SELECT sum(SIZE(c.checkpoint) + SIZE(c.metadata)) FROM checkpoints c JOIN threads t"
    " ON t.thread_id = c.thread_id WHERE t.owner = :owner",
    "SELECT sum(SIZE(value)) FROM store WHERE prefix LIKE :label",
)
_OF_SAVERS: Final = {
    "sqlite": (("writes", "value"),),
    "postgresql": (("checkpoint_writes", "blob"), ("checkpoint_blobs", "blob")),
}
_SIZE: Final = {"sqlite": "length", "postgresql": "pg_column_size"}
"""What tells the size of a value without reading it."""


def measure(engine: sa.Engine) -> None:
    """Write down how many bytes each owner keeps who may keep so many only."""
    limited = sa.select(quotas.c.owner).where(quotas.c.megabytes.is_not(None))
    with engine.connect() as connection:
        owners = [*connection.execute(limited).scalars()]
    for owner in owners:
        with engine.connect() as connection:
            kept = sum(_read_sizes(connection, owner))
        with engine.begin() as connection:
            connection.execute(quotas.update().where(quotas.c.owner == owner).values(kept_bytes=kept))


def _read_sizes(connection: sa.Connection, owner: str) -> list[int]:
    kind = connection.dialect.name
    of_savers = (
        f"SELECT sum(SIZE(w.{column})) FROM {table} w JOIN threads t"
        " ON t.thread_id = w.thread_id WHERE t.owner = :owner"
        for table, column in _OF_SAVERS[kind]
    )
    given = {"owner": owner, "label": f"{label_of(owner)}%"}
    texts = (sa.text(each.replace("SIZE", _SIZE[kind])) for each in (*_OF_ALL, *of_savers))
    return [int(connection.execute(text, given).scalar() or 0) for text in texts]


@valueclass
class Removed:
    """How much has gone."""

    threads: int = 0
    runs: int = 0
    events: int = 0


class Remover:
    """Removes rows of one database."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._is_file = engine.dialect.name == "sqlite"

    def sweep(self, ages: Ages) -> Removed:
        """Remove what is older than it may be, and what nothing leads to any more."""
        threads_gone = self.remove_threads(self._where_expired(ages, "delete"))
        runs_gone = 0 if ages.runs is None else self._remove_runs(ages.runs)
        events_gone = 0 if ages.events is None else self._remove_events(ages.events)
        self._remove_leases(ages.traces)
        self._remove_workflows(ages.traces)
        measure(self._engine)
        return Removed(threads_gone, runs_gone, events_gone)

    def remove_thread(self, thread_id: str) -> None:
        """Remove a thread, whatever it does."""
        with step(self._engine) as connection:
            # The lease first, as a run that ends does: in another order two would wait for each other.
            connection.execute(tombstone([thread_id]))
            connection.execute(threads.delete().where(threads.c.thread_id == thread_id))
        self._clear([thread_id])

    def remove_threads(self, chosen: sa.ColumnElement[bool]) -> int:
        """Remove threads that rest, with all that belongs to them."""
        some = sa.select(threads.c.thread_id).join(leases, leases.c.thread_id == threads.c.thread_id)
        # What somebody changes at this moment does not rest.
        some = some.where(chosen, resting()).limit(_STEP).with_for_update(of=leases, skip_locked=True)
        gone = threads.delete().where(threads.c.thread_id.in_(some), resting()).returning(threads.c.thread_id)
        removed = 0
        while True:
            with step(self._engine) as connection:
                ids = [*connection.execute(gone).scalars()]
                connection.execute(tombstone(ids))
            if not ids:
                return removed
            self._clear(ids)
            removed += len(ids)

    def find_expired(self, ages: Ages) -> list[Row]:
        """Return threads of which only the present state is to stay."""
        changed = sa.or_(threads.c.thinned_at.is_(None), threads.c.thinned_at < threads.c.updated_at)
        query = (
            sa.select(threads)
            .where(self._where_expired(ages, "keep_latest"), resting(), changed)
            .limit(_STEP)
        )
        with self._engine.connect() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def thin(self, thread_id: str, kept: Sequence[str]) -> bool:
        """Remove all states of a thread but those that are named; `False` if none can be removed."""
        marked = (
            threads.update()
            .where(threads.c.thread_id == thread_id, resting())
            .values(thinned_at=server_time())
        )
        with step(self._engine) as connection:
            if not connection.execute(marked).rowcount or not kept:
                return False
        for table in tables_of_savers(is_file=self._is_file):
            if "checkpoint_id" in table.c:
                old = sa.and_(table.c.checkpoint_ns == "", table.c.checkpoint_id.not_in(kept))
                # The namespace of a subgraph that has ended with its task.
                ended = table.c.checkpoint_ns.contains(":")
                self._erase(table, table.c.thread_id == thread_id, sa.or_(old, ended))
        if not self._is_file:
            self._erase_blobs(thread_id)
        return True

    def _erase_blobs(self, thread_id: str) -> None:
        unused = sa.text(
            "DELETE FROM checkpoint_blobs AS blob WHERE thread_id = :thread_id AND NOT EXISTS ("
            "SELECT 1 FROM checkpoints AS kept WHERE kept.thread_id = blob.thread_id "
            "AND kept.checkpoint_ns = blob.checkpoint_ns "
            "AND kept.checkpoint -> 'channel_versions' ->> blob.channel = blob.version)"
        )
        with step(self._engine) as connection:
            connection.execute(unused, {"thread_id": thread_id})

    def _where_expired(self, ages: Ages, strategy: Strategy) -> sa.ColumnElement[bool]:
        own = sa.and_(
            threads.c.ttl_seconds.is_not(None),
            threads.c.ttl_strategy == strategy,
            self._seconds_of(threads.c.updated_at) + threads.c.ttl_seconds < self._seconds_of(server_time()),
        )
        if ages.threads is None or ages.strategy != strategy:
            return own
        return sa.or_(
            own, sa.and_(threads.c.ttl_seconds.is_(None), threads.c.updated_at < server_time(-ages.threads))
        )

    def _seconds_of(self, stamp: sa.ColumnElement[str]) -> sa.ColumnElement[Any]:
        if self._is_file:
            return sa.func.julianday(stamp, type_=sa.Float()) * 86400
        return sa.func.extract("epoch", sa.cast(stamp, sa.TIMESTAMP(timezone=True)))

    def _remove_runs(self, age: float) -> int:
        """Remove runs that are over; the last of a thread says how it ended, and stays."""
        later = runs.alias()
        followed = sa.exists().where(later.c.thread_id == runs.c.thread_id, later.c.number > runs.c.number)
        old = sa.select(runs.c.run_id).where(
            runs.c.updated_at < server_time(-age), runs.c.status.not_in(ACTIVE), followed
        )
        removed = 0
        while True:
            with self._engine.connect() as connection:
                ids = [*connection.execute(old.limit(_STEP)).scalars()]
            if not ids:
                return removed
            for table in (run_events, commands):
                self._erase(table, table.c.run_id.in_(ids))
            removed += self._erase(runs, runs.c.run_id.in_(ids))

    def _remove_events(self, age: float) -> int:
        at_work = sa.exists().where(runs.c.run_id == run_events.c.run_id, runs.c.status.in_(ACTIVE))
        return self._erase(run_events, run_events.c.created_at < server_time(-age), ~at_work)

    def _remove_leases(self, age: float) -> None:
        """Remove the leases of threads that went long ago, and what a crash then left of these threads.

        Until then a lease refuses writers that were only asleep.
        """
        old = sa.select(leases.c.thread_id).where(leases.c.removed_at < server_time(-age)).limit(_STEP)
        while True:
            with self._engine.connect() as connection:
                ids = [*connection.execute(old).scalars()]
            if not ids:
                return
            self._clear(ids)
            self._erase(leases, leases.c.thread_id.in_(ids), leases.c.removed_at.is_not(None))

    def _remove_workflows(self, age: float) -> None:
        """Remove what DBOS has written about attempts that are over and will not be asked for again."""
        schema = None if self._is_file else "dbos"
        if not sa.inspect(self._engine).has_table("workflow_status", schema):
            return
        with closing(RunQueue(self._engine.url)) as queue:
            while found := queue.find(status=[*_DONE], end_time=now(-age), limit=_STEP):
                began = time.monotonic()
                queue.client.delete_workflows([*found])
                rest_since(began)

    def _clear(self, thread_ids: Iterable[str]) -> None:
        for table, chosen in leftovers(thread_ids, is_file=self._is_file):
            self._erase(table, chosen)

    def _erase(self, table: sa.TableClause, *chosen: sa.ColumnElement[bool]) -> int:
        """Delete rows in steps."""
        row: sa.ColumnElement[Any] = sa.literal_column("rowid" if self._is_file else "ctid")
        some = sa.select(row).select_from(table).where(*chosen).limit(_STEP)
        # PostgreSQL goes straight to rows that it gets as an array.
        found = row.in_(some) if self._is_file else row == sa.any_(sa.func.array(some.scalar_subquery()))
        erased = 0
        while True:
            with step(self._engine) as connection:
                touched = connection.execute(sa.delete(table).where(found)).rowcount
            erased += touched
            if touched < _STEP:
                return erased


def resting() -> sa.ColumnElement[bool]:
    """Tell whether no run, no person and no schedule needs a thread.

    Where a run stopped before a task, somebody may look at that; not where the run was cancelled.
    """
    of_thread = runs.c.thread_id == threads.c.thread_id
    last = sa.select(runs.c.status).where(of_thread).order_by(runs.c.number.desc()).limit(1)
    cancelled = sa.and_(
        threads.c.status == "interrupted", last.correlate(threads).scalar_subquery() == "interrupted"
    )
    at_work = sa.exists().where(of_thread, runs.c.status.in_(ACTIVE))
    scheduled = sa.exists().where(crons.c.thread_id == threads.c.thread_id, crons.c.enabled == 1)
    return sa.and_(
        threads.c.interrupts == "{}",
        sa.or_(threads.c.status.in_(("idle", "error")), cancelled),
        ~at_work.correlate(threads),
        ~scheduled.correlate(threads),
    )


@contextmanager
def open_remover(url: str) -> Generator[Remover]:
    """Open connections of one's own to a database that may be at work."""
    with open_apart(url) as engine:
        yield Remover(engine)
