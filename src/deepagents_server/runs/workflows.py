"""Start DBOS on the database of the server, with the one workflow that there is."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import sqlalchemy as sa
from dbos import DBOS, DBOSConfig, DBOSPortableJSONSerializer
from sqlalchemy import event

from deepagents_server.database import Database
from deepagents_server.database.engine import set_pragmas

RECOVERY_QUEUE: Final = "deepagents_recovered"
_WORKFLOW: Final = "deepagents_run"
_log: Final = logging.getLogger("dbos")
_SILENT: Final = logging.NullHandler()
"""Without any, DBOS adds one that keeps the stderr of the moment; so its lines go where all others go."""


@asynccontextmanager
async def launch(
    database: Database, worker: str, version: str, run: Callable[[str], Coroutine[Any, Any, None]]
) -> AsyncGenerator[Any]:
    """Let DBOS work until the block ends; yield the workflow that calls `run` with the id of a run."""
    engine, url = _make_engine(database)
    _log.addHandler(_SILENT)
    DBOS(
        config=DBOSConfig(
            name="deepagents",
            system_database_url=url,
            system_database_engine=engine,
            # It records what lasts longer than a second, and nobody waits for that.
            sys_db_pool_size=5,
            # To ask each connection first is half of what an idle worker does; DBOS tries again by itself.
            db_engine_kwargs={"pool_pre_ping": False},
            # The one process of a file takes up what the one before it has left.
            executor_id=worker if database.is_shared else "server",
            application_version=version,
            serializer=DBOSPortableJSONSerializer(),
            log_level="ERROR",
        )
    )
    workflow = DBOS.workflow(name=_WORKFLOW, max_recovery_attempts=1000)(run)
    try:
        DBOS.launch()
        yield workflow
    finally:
        # Not in the event loop's own threads: DBOS puts its own in their place, which may have ended.
        with ThreadPoolExecutor(1) as thread:
            end = partial(DBOS.destroy, destroy_registry=True)
            await asyncio.get_running_loop().run_in_executor(thread, end)
        # DBOS closes no connections of an engine that it was given.
        if engine:
            engine.dispose()


def _make_engine(database: Database) -> tuple[sa.Engine | None, str]:
    url = sa.make_url(database.url)
    if database.is_shared:
        return None, url.set(drivername="postgresql+psycopg").render_as_string(hide_password=False)
    engine = sa.create_engine(f"sqlite:///{url.database}")
    event.listen(engine, "connect", _prepare_sqlite)
    return engine, f"sqlite:///{url.database}"


def _prepare_sqlite(connection: Any, record: Any) -> None:
    set_pragmas(connection, record)
    # As DBOS prepares its own connections: its transactions begin as writers.
    connection.isolation_level = "IMMEDIATE"
    # On Python 3.12 and newer DBOS asks for `unixepoch('subsec')`, new in SQLite 3.42; Debian 12 has 3.40.
    if sqlite3.sqlite_version_info < (3, 42):
        connection.create_function("unixepoch", 1, _seconds_now)


def _seconds_now(_unit: str) -> float:
    return time.time()
