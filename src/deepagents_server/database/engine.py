"""Open a database: its engine, LangGraph's saver and store, and the filter by owner."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, closing, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

import sqlalchemy as sa
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore
from langgraph.store.sqlite.aio import AsyncSqliteStore
from sqlalchemy import event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DataError, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.util import await_only

from deepagents._values import field, replace, valueclass
from deepagents_server.database.failures import is_of_server
from deepagents_server.database.migrations import check_version, connect_plainly, migrate, version_of
from deepagents_server.database.owners import Scope, bind, guard
from deepagents_server.database.place import (
    explain_errors,
    file_of,
    keep_for_this_process,
    prepare_file,
)
from deepagents_server.database.pragmas import set_pragmas
from deepagents_server.database.queue import RunQueue
from deepagents_server.database.saver import OrderedSqliteSaver, connect
from deepagents_server.database.tables import server_time
from deepagents_server.database.turns import LONGEST, Turns, bounded
from deepagents_server.errors import ServeError, show_cause

P = ParamSpec("P")
T = TypeVar("T")
Row = Mapping[str, Any]
_MIGRATING: Final = 0x6465_6570
_READERS: Final = 8
_POOL: Final = 10
_OWN: Final = 4
"""Connections, of which so many are for short statements, and for what the server itself looks up."""
_COPIES: Final = 2
_UNUSABLE: Final = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
)
_log: Final = logging.getLogger("deepagents.server")
_BUSY_PAUSE: Final = 0.002
_BUSY_TRIES: Final = 15_000


@valueclass
class Database:
    """The tables of the server, and LangGraph's saver and store in the same place."""

    url: str
    engine: AsyncEngine
    saver: BaseCheckpointSaver[Any]
    store: BaseStore
    driver_errors: tuple[type[Exception], ...]
    """What the driver raises by itself, where SQLAlchemy is not between."""
    value_errors: tuple[type[Exception], ...]
    """What is raised for a value that cannot be kept, such as text with a NUL in PostgreSQL."""
    # Not the event loop's own threads, which tools that block may fill.
    _threads: ThreadPoolExecutor
    # SQLite has one writer. To wait here, as its saver does, is cheaper than in its busy handler,
    # which sleeps.
    _writing: asyncio.Lock
    _turns: Turns
    queue: RunQueue
    """The runs that wait for a worker."""
    _copies: Turns = field(default_factory=lambda: Turns(_COPIES, 1))
    owner: str = ""
    """Whose rows are added; `of` says whose are seen."""
    _is_of_caller: bool = False

    @property
    def is_shared(self) -> bool:
        """Tell whether other processes may work on this database."""
        return self.engine.dialect.name == "postgresql"

    def is_away(self, error: BaseException) -> bool:
        """Tell whether an error means that the database did not answer, though it may again."""
        cause = getattr(error, "orig", error)
        lost = isinstance(cause, (NoConnection, *self.driver_errors))
        return self.is_shared and lost and is_of_server(error)

    def is_unusable(self, error: BaseException) -> bool:
        """Tell whether an error comes from the database, and not from what was asked: it is away, or full."""
        code = getattr(getattr(error, "orig", error), "sqlite_errorcode", 0)
        return self.is_away(error) or (code & 0xFF) in _UNUSABLE

    def log_failure(self, what: str, error: BaseException) -> None:
        """Write to the log what failed: in a line if it is the database, else with a trace."""
        if self.is_unusable(error):
            _log.warning("%s, since the database cannot be used: %s", what, show_cause(error))
        else:
            _log.error("%s", what, exc_info=error)

    def of(self, scope: Scope) -> Database:
        """Return the same database, as far as an owner may see and change it."""
        return replace(self, engine=bind(self.engine, scope), owner=scope.owner, _is_of_caller=True)

    @asynccontextmanager
    async def read(self) -> AsyncGenerator[AsyncConnection]:
        """Look at rows by their keys, each statement for itself; `rows` is for whatever may take long."""
        # Without a transaction around it, a statement is all that is sent.
        at_once = {"isolation_level": "AUTOCOMMIT"} if self.is_shared else {}
        async with self._connect(self.engine.execution_options(reads=True, **at_once)) as connection:
            yield connection

    @asynccontextmanager
    async def write(self) -> AsyncGenerator[AsyncConnection]:
        """Change a few rows in one transaction."""
        alone = nullcontext() if self.is_shared else self._writing
        async with alone, self._connect(self.engine) as connection, connection.begin():
            yield connection

    @property
    def _connect(self) -> type[AsyncConnection]:
        return AsyncConnection if self.is_shared else _FileConnection

    async def rows(self, query: sa.Select[Any]) -> list[Row]:
        """Return what a query finds, as mappings; it may look at many rows.

        Raises:
            ApiError: if it takes a caller too long.
        """
        async with self._turns.wait(self.owner) if self._is_of_caller else nullcontext():
            if self.is_shared:
                async with self.read() as connection:
                    return [dict(row) for row in (await connection.execute(query)).mappings()]
            return await self.in_thread(self._rows_of_file, query)

    def _rows_of_file(self, query: sa.Select[Any]) -> list[Row]:
        with (
            self.engine.sync_engine.execution_options(reads=True).connect() as connection,
            bounded(connection.connection.dbapi_connection) if self._is_of_caller else nullcontext(),
        ):
            return [dict(row) for row in connection.execute(query).mappings()]

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Wait for a turn of the caller, to search elsewhere than in these tables."""
        return self._turns.wait(self.owner)

    def turn_to_copy(self) -> AbstractAsyncContextManager[None]:
        """Wait for a turn of the caller, to copy much."""
        return self._copies.wait(self.owner)

    async def in_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Let a thread do what blocks."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, partial(work, *args, **kwargs))

    async def row(self, query: sa.Select[Any]) -> Row | None:
        """Return the first row that a query finds, which an index leads to."""
        async with self.read() as connection:
            found = (await connection.execute(query)).mappings().first()
            return None if found is None else dict(found)

    async def now(self) -> str:
        """Return the time of the database, as the tables have it."""
        found = await self.row(sa.select(server_time().label("now")))
        assert found
        return found["now"]

    async def count(self, query: sa.Select[Any]) -> int:
        """Count the rows of a query."""
        # Without the columns: what threads hold is not read for it.
        found = query.order_by(None).with_only_columns(sa.literal(1), maintain_column_froms=True).subquery()
        counted = sa.select(sa.func.count().label("count")).select_from(found)
        return int((await self.rows(counted))[0]["count"])

    async def execute(self, *statements: sa.Executable) -> int:
        """Run statements in one transaction; return how many rows the last of them touched."""
        touched = 0
        async with self.write() as connection:
            for statement in statements:
                touched = (await connection.execute(statement)).rowcount
        return touched


class _FileConnection(AsyncConnection):
    """Runs statements where they are written, in the event loop's thread.

    A row of a file is there after 0.1 ms. To ask another thread takes four times that for each statement.
    """

    async def execute(
        self, statement: Any, parameters: Any = None, *, execution_options: Any = None
    ) -> sa.CursorResult[Any]:
        """Run a statement."""
        assert self.sync_connection
        return self.sync_connection.execute(statement, parameters, execution_options=execution_options)


@asynccontextmanager
async def open_database(
    url: str, store: Mapping[str, Any] | None = None, *, alongside: bool = False
) -> AsyncGenerator[Database]:
    """Open `sqlite:///FILE` or `postgresql://...` and bring it to the present shape.

    `alongside` servers, a command may look at their tables and change a few rows. It brings no older tables
    up to date, since a server of that release may be at work.

    Raises:
        ServeError: if it is no such address, the file belongs to a server that runs, or, with `alongside`,
            another release has made the tables.
    """
    async with AsyncExitStack() as stack:
        with explain_errors(url):
            database = await _open(url, stack, store or {}, alongside=alongside)
            if not alongside:
                await database.in_thread(database.queue.migrate)
        yield database


async def _open(url: str, stack: AsyncExitStack, memory: Mapping[str, Any], *, alongside: bool) -> Database:
    path = file_of(url)
    if path:
        prepare_file(path)
    if alongside:
        with connect_plainly(url) as connection:
            if version := version_of(connection):
                check_version(version)
    elif path:
        keep_for_this_process(path, stack)
    if path:
        return await _open_sqlite(url, path, stack, memory)
    return await _open_postgres(url, stack, memory)


async def _open_sqlite(url: str, path: Path, stack: AsyncExitStack, memory: Mapping[str, Any]) -> Database:
    with closing(sqlite3.connect(path, timeout=30)) as first:
        # A file that has it can shrink while it is used. Once there is a table, it changes nothing.
        first.execute("PRAGMA auto_vacuum=INCREMENTAL")
        set_pragmas(first, None)
    engine = _sqlite_engine(path)
    guard(engine)
    stack.push_async_callback(engine.dispose)
    if memory.get("index") and not hasattr(sqlite3.Connection, "enable_load_extension"):
        raise ServeError(
            "store.index: the sqlite3 of this Python loads no extensions, which the search by meaning needs; "
            "take another build of Python, or --database postgresql://..."
        )
    # Of its own: a store waits for its batches, and must not hold up checkpoints.
    store_connection = await stack.enter_async_context(connect(path))
    saver = stack.enter_context(OrderedSqliteSaver.open(path, set_pragmas))
    store = AsyncSqliteStore(store_connection, **_options(memory))
    await store.setup()
    await store_connection.commit()
    await stack.enter_async_context(store)
    stack.push_async_callback(store.stop_ttl_sweeper)
    await store.start_ttl_sweeper()
    async with engine.begin() as opened:
        await opened.run_sync(migrate)
    queue = stack.enter_context(closing(RunQueue(make_url(url))))
    threads = stack.enter_context(ThreadPoolExecutor(_READERS + _OWN + _COPIES, "reads"))
    # To search a file is work for a core of this machine.
    turns = Turns(_READERS, max(1, (os.cpu_count() or 1) // 2), LONGEST)
    return Database(url, engine, saver, store, (), (DataError,), threads, saver.writing, turns, queue)


def _sqlite_engine(path: Path) -> AsyncEngine:
    engine = sa.create_engine(f"sqlite:///{path}", max_overflow=-1, connect_args={"check_same_thread": False})
    event.listen(engine, "connect", _prepare_to_run_at_once)
    event.listen(engine, "begin", _begin_at_once)
    # `AsyncEngine` takes no other. Its own calls, such as `begin`, then run in SQLAlchemy's greenlet, where
    # `_begin_at_once` may wait; `_FileConnection.execute` needs none, for the driver never waits.
    engine.dialect.is_async = True
    return AsyncEngine(engine)


async def _open_postgres(url: str, stack: AsyncExitStack, memory: Mapping[str, Any]) -> Database:
    import psycopg
    from langgraph.store.postgres.aio import AsyncPostgresStore
    from psycopg.rows import dict_row
    from psycopg_pool import AsyncConnectionPool

    from deepagents_server.database.fenced import FencedPostgresSaver, check, refuse_closed

    plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    address = make_url(url).set(drivername="postgresql+psycopg")
    engine = create_async_engine(address, pool_size=_POOL, max_overflow=0)
    event.listen(engine.sync_engine, "checkout", refuse_closed)
    guard(engine)
    stack.push_async_callback(engine.dispose)
    options: dict[str, Any] = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}

    async def open_pool(size: int) -> Any:
        pool: Any = AsyncConnectionPool(
            plain, min_size=1, max_size=size, open=False, kwargs=options, check=check
        )
        return await stack.enter_async_context(pool)

    # The saver uses one at a time, apart from the writes of tasks. The store keeps one while it embeds texts,
    # and checkpoints do not wait for that.
    saver = FencedPostgresSaver(await open_pool(3))
    store = AsyncPostgresStore(await open_pool(4), **_options(memory))
    async with _one_at_a_time(engine):
        await saver.setup()
        await store.setup()
        async with engine.begin() as opened:
            await opened.run_sync(migrate)
    stack.push_async_callback(store.stop_ttl_sweeper)
    await store.start_ttl_sweeper()
    # Read-only it is after a failover, as long as it is a standby.
    lost = (psycopg.OperationalError, psycopg.InterfaceError, psycopg.errors.ReadOnlySqlTransaction)
    unfit = (DataError, psycopg.DataError)
    queue = stack.enter_context(closing(RunQueue(make_url(url))))
    threads = stack.enter_context(ThreadPoolExecutor(_READERS, "reads"))
    turns = Turns(_POOL - _OWN, 2, LONGEST)
    return Database(url, engine, saver, store, lost, unfit, threads, asyncio.Lock(), turns, queue)


@asynccontextmanager
async def _one_at_a_time(engine: AsyncEngine) -> AsyncGenerator[None]:
    """Let processes that start at once prepare the tables one after the other.

    They ask again and again: LangGraph builds indexes concurrently, and that waits for every statement that
    is under way, so also for one that waits for the lock.
    """
    locked, unlocked = sa.func.pg_try_advisory_lock(_MIGRATING), sa.func.pg_advisory_unlock(_MIGRATING)
    async with engine.connect() as opened:
        connection = await opened.execution_options(isolation_level="AUTOCOMMIT")
        while not (await connection.execute(sa.select(locked))).scalar():
            await asyncio.sleep(0.1)
        try:
            yield
        finally:
            await connection.execute(sa.select(unlocked))


def _options(memory: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a langgraph.json says about the store."""
    # Without an interval, nobody would look for the items that clients give a time of their own. To read
    # renews, unless the file says otherwise: LangGraph's stores do not agree on that.
    ages = {"refresh_on_read": True, **(memory.get("ttl") or {"sweep_interval_minutes": 5})}
    return {"ttl": ages, **({"index": memory["index"]} if memory.get("index") else {})}


def _prepare_to_run_at_once(connection: Any, record: Any) -> None:
    set_pragmas(connection, record)
    # The event loop neither sleeps for another's transaction nor copies the log into the file.
    for pragma in ("busy_timeout=0", "wal_autocheckpoint=0"):
        connection.execute(f"PRAGMA {pragma}").close()


def _begin_at_once(connection: sa.Connection) -> None:
    if connection.get_execution_options().get("reads"):
        return
    # A transaction that begins as a reader cannot always become a writer.
    for _ in range(_BUSY_TRIES):
        try:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            return
        except OperationalError as error:
            if getattr(error.orig, "sqlite_errorcode", 0) != sqlite3.SQLITE_BUSY:
                raise
        await_only(asyncio.sleep(_BUSY_PAUSE))
    connection.exec_driver_sql("BEGIN IMMEDIATE")
