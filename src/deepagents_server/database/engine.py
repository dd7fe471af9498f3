"""Open a database: its engine, LangGraph's saver and store, and the filter by owner."""

from __future__ import annotations

import asyncio
import fcntl
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import aiosqlite
import sqlalchemy as sa
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.base import BaseStore
from langgraph.store.sqlite.aio import AsyncSqliteStore
from sqlalchemy import event
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from deepagents_server.database.migrations import MIGRATION_LOCK, migrate
from deepagents_server.errors import ServeError

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Database:
    """The tables of the server, and LangGraph's saver and store in the same place."""

    url: str
    engine: AsyncEngine
    saver: BaseCheckpointSaver[Any]
    store: BaseStore
    driver_errors: tuple[type[Exception], ...]
    """What the driver raises by itself, where SQLAlchemy is not between."""
    # SQLite has one writer; to wait here is cheaper than in its busy handler, which sleeps.
    _writing: asyncio.Lock

    @property
    def is_shared(self) -> bool:
        """Tell whether other processes may work on this database."""
        return self.engine.dialect.name == "postgresql"

    @asynccontextmanager
    async def read(self) -> AsyncGenerator[AsyncConnection]:
        """Look at rows, each statement for itself."""
        async with self.engine.execution_options(reads=True).connect() as connection:
            yield connection

    @asynccontextmanager
    async def write(self) -> AsyncGenerator[AsyncConnection]:
        """Change rows in one transaction."""
        async with nullcontext() if self.is_shared else self._writing, self.engine.begin() as connection:
            yield connection

    async def rows(self, query: sa.Select[Any]) -> list[Row]:
        """Return what a query finds, as mappings."""
        async with self.read() as connection:
            return [dict(row) for row in (await connection.execute(query)).mappings()]

    async def row(self, query: sa.Select[Any]) -> Row | None:
        """Return the first row that a query finds."""
        return next(iter(await self.rows(query)), None)

    async def count(self, query: sa.Select[Any]) -> int:
        """Count the rows of a query."""
        counted = sa.select(sa.func.count().label("count")).select_from(query.order_by(None).subquery())
        return int((await self.rows(counted))[0]["count"])

    async def execute(self, *statements: sa.Executable) -> int:
        """Run statements in one transaction; return how many rows the last of them touched."""
        touched = 0
        async with self.write() as connection:
            for statement in statements:
                touched = (await connection.execute(statement)).rowcount
        return touched


@asynccontextmanager
async def open_database(url: str, index: Mapping[str, Any] | None = None) -> AsyncGenerator[Database]:
    """Open `sqlite:///FILE` or `postgresql://...` and bring it to the present shape.

    Raises:
        ServeError: if it is no such address, or the file belongs to a server that runs.
    """
    kind = url.split(":", 1)[0].split("+")[0]
    async with AsyncExitStack() as stack:
        if kind == "sqlite":
            yield await _open_sqlite(url, stack, index)
        elif kind in ("postgresql", "postgres"):
            yield await _open_postgres(url, stack, index)
        else:
            raise ServeError(f"{url!r} is no database; write a file's name, or postgresql://USER@HOST/NAME.")


async def _open_sqlite(url: str, stack: AsyncExitStack, index: Mapping[str, Any] | None) -> Database:
    path = Path(make_url(url).database or "")
    path.parent.mkdir(parents=True, exist_ok=True)
    _keep_for_this_process(path, stack)
    engine = create_async_engine(f"sqlite+aiosqlite:///{path}", connect_args={"timeout": 30})
    event.listen(engine.sync_engine, "connect", set_pragmas)
    event.listen(engine.sync_engine, "begin", _begin_at_once)
    stack.push_async_callback(engine.dispose)
    connection = await stack.enter_async_context(_connect(path))
    # Of its own: a store waits for its batches, and must not hold up checkpoints.
    store_connection = await stack.enter_async_context(_connect(path, autocommit=True))
    saver = AsyncSqliteSaver(connection)
    await saver.setup()
    store = AsyncSqliteStore(store_connection, index=cast(Any, index))
    await store.setup()
    await stack.enter_async_context(store)
    async with engine.begin() as opened:
        await opened.run_sync(migrate)
    return Database(url, engine, saver, store, (), asyncio.Lock())


@asynccontextmanager
async def _connect(path: Path, *, autocommit: bool = False) -> AsyncGenerator[aiosqlite.Connection]:
    options: dict[str, Any] = {"isolation_level": None} if autocommit else {}
    async with aiosqlite.connect(path, timeout=30, **options) as connection:
        await connection.execute("PRAGMA journal_mode=WAL")
        await connection.execute("PRAGMA synchronous=NORMAL")
        yield connection


async def _open_postgres(url: str, stack: AsyncExitStack, index: Mapping[str, Any] | None) -> Database:
    import psycopg
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from langgraph.store.postgres.aio import AsyncPostgresStore
    from psycopg.rows import dict_row
    from psycopg_pool import AsyncConnectionPool

    plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    engine = create_async_engine(make_url(url).set(drivername="postgresql+psycopg"), pool_size=10)
    stack.push_async_callback(engine.dispose)
    options: dict[str, Any] = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    pool: Any = AsyncConnectionPool(plain, min_size=2, max_size=20, open=False, kwargs=options)
    await stack.enter_async_context(pool)
    saver = AsyncPostgresSaver(pool)
    store = AsyncPostgresStore(pool, index=cast(Any, index))
    async with engine.begin() as opened:
        # Processes that start at once prepare the tables one after the other.
        await opened.execute(sa.text(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"))
        await saver.setup()
        await store.setup()
        await opened.run_sync(migrate)
    return Database(url, engine, saver, store, (psycopg.Error,), asyncio.Lock())


def set_pragmas(connection: Any, _record: Any) -> None:
    """Prepare a connection to SQLite: readers do not wait for the writer, and a commit not for the disk.

    A process that is killed loses nothing. After a loss of power the last commits may be missing.
    """
    # Transactions begin where this module says so, not where the driver thinks.
    connection.isolation_level = None
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "busy_timeout=30000", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}").close()


def _begin_at_once(connection: sa.Connection) -> None:
    # A transaction that begins as a reader cannot always become a writer.
    if not connection.get_execution_options().get("reads"):
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def _keep_for_this_process(path: Path, stack: AsyncExitStack) -> None:
    lock = stack.enter_context(path.with_name(f"{path.name}.lock").open("w"))
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise ServeError(
            f"{str(path)!r} belongs to a server that runs; stop it, or name another file with --database."
        ) from error
