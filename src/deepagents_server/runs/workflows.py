"""Start DBOS on the database of the server, with the one workflow that there is."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
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


def launch(
    database: Database, worker: str, version: str, run: Callable[[str], Coroutine[Any, Any, None]]
) -> Any:
    """Start DBOS, and return the workflow that calls `run` with the id of a run."""
    engine, url = _make_engine(database)
    _log.addHandler(_SILENT)
    DBOS(
        config=DBOSConfig(
            name="deepagents",
            system_database_url=url,
            system_database_engine=engine,
            # The one process of a file takes up what the one before it has left.
            executor_id=worker if database.is_shared else "server",
            application_version=version,
            serializer=DBOSPortableJSONSerializer(),
            log_level="ERROR",
        )
    )
    workflow = DBOS.workflow(name=_WORKFLOW, max_recovery_attempts=1000)(run)
    DBOS.launch()
    return workflow


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
