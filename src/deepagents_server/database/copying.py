"""Copy a thread with its history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final
from uuid import uuid4

import sqlalchemy as sa

from deepagents_server.database.apart import open_apart, step
from deepagents_server.database.engine import Database, Row
from deepagents_server.database.leftovers import tables_of_savers
from deepagents_server.database.quotas import check_kept
from deepagents_server.database.tables import leases, server_time, threads
from deepagents_server.serialize import load

_STEP: Final = 20
"""Rows of a file at a time, each of which may hold megabytes."""
_SAME: Final = ("metadata", "values", "interrupts", "config", "state_updated_at")


async def copy_thread(database: Database, source: Row) -> Row:
    """Make a thread with the same history, which is there when it is whole, and not before.

    Raises:
        ApiError: if the owner may keep no more.
    """
    target = str(uuid4())
    stamps = {"created_at": server_time(), "updated_at": server_time()}
    status = "interrupted" if load(source["interrupts"]) else "idle"
    row = {**{name: source[name] for name in _SAME}, "thread_id": target, "status": status, **stamps}
    async with database.turn_to_copy():
        async with database.read() as connection:
            await check_kept(connection, database.owner)
        if not database.is_shared:
            # A lease of a thread that is none, so that what a crash leaves goes with those of removed ones.
            await database.in_thread(_copy_on_file, database.url, source["thread_id"], target)
        async with database.write() as connection:
            made = await connection.execute(threads.insert().values(row).returning(threads))
            if database.is_shared:
                await connection.execute(leases.insert().values(thread_id=target))
                await connection.run_sync(_copy_at_once, source["thread_id"], target)
            else:
                of_copy = leases.c.thread_id == target
                await connection.execute(leases.update().where(of_copy).values(removed_at=None))
            return dict(made.mappings().one())


def _copy_at_once(connection: sa.Connection, source: str, target: str) -> None:
    """Copy the states of a thread within a PostgreSQL, which does other things meanwhile."""
    for table in _tables_of(connection):
        kept = [column for column in table.c if column.name != "thread_id"]
        rows = sa.select(sa.literal(target), *kept).where(table.c.thread_id == source)
        names = ["thread_id", *(each.name for each in kept)]
        connection.execute(table.insert().from_select(names, rows))


def _copy_on_file(url: str, source: str, target: str) -> None:
    """Copy the states of a thread as they are at one moment; others write between the steps."""
    with open_apart(url) as engine:
        with step(engine) as connection:
            connection.execute(leases.insert().values(thread_id=target, removed_at=server_time()))
        for table, some in _read(engine, source):
            with step(engine) as connection:
                connection.execute(table.insert(), [{**each, "thread_id": target} for each in some])


def _read(engine: sa.Engine, source: str) -> Iterator[tuple[sa.TableClause, Sequence[Row]]]:
    with engine.connect() as opened:
        reading = opened.execution_options(reads=True, yield_per=_STEP)
        for table in _tables_of(reading):
            rows = reading.execute(sa.select(table).where(table.c.thread_id == source)).mappings()
            for some in rows.partitions():
                yield table, [dict(row) for row in some]


def _tables_of(connection: sa.Connection) -> list[sa.TableClause]:
    """Return the tables of states with all of their columns, which change nothing of what they hold."""
    looking, plain = sa.inspect(connection), sa.types.NullType()
    names = [table.name for table in tables_of_savers(is_file=connection.dialect.name == "sqlite")]
    return [
        sa.table(name, *(sa.column(each["name"], plain) for each in looking.get_columns(name)))
        for name in names
    ]
