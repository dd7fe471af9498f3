"""Keep the runs that wait in a queue of DBOS, which gives them to workers."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncConnection

from deepagents_server.database.pragmas import set_pragmas
from deepagents_server.database.tables import server_time
from deepagents_server.serialize import seconds_between

if TYPE_CHECKING:
    from dbos import DBOSClient, EnqueueOptions

APPLICATION: Final = "deepagents"
QUEUE: Final = "deepagents"
WORKFLOW: Final = "deepagents_run"
_MOST_URGENT: Final = 10
_BAND: Final = 100_000_000
"""Runs of one priority; twice ten of them are what a number of DBOS's holds."""


class RunQueue:
    """Writes to the queue, and reads who has taken what from it; `runs.workflows` works it off."""

    def __init__(self, url: sa.URL) -> None:
        self.engine = _open_file(url) if url.get_backend_name() == "sqlite" else None
        self.url = url.set(drivername="sqlite" if self.engine else "postgresql+psycopg")

    @property
    def address(self) -> str:
        """The database, as DBOS wants it named."""
        return self.url.render_as_string(hide_password=False)

    @cached_property
    def client(self) -> DBOSClient:
        """What DBOS gives those who run nothing."""
        from dbos import DBOSClient, DBOSPortableJSONSerializer

        return DBOSClient(
            system_database_url=self.address,
            system_database_engine=self.engine,
            system_database_pool_size=1,
            serializer=DBOSPortableJSONSerializer(),
            application_name=APPLICATION,
            lazy=True,
            retry_connection_errors=False,
        )

    def migrate(self) -> None:
        """Bring DBOS's own tables to the present shape."""
        from dbos import DBOS

        DBOS.migrate(self.address)

    async def add(
        self, connection: AsyncConnection, run: Mapping[str, Any] | sa.RowMapping, least: float = 0.0
    ) -> None:
        """Let a run wait for a worker if the transaction ends well: until it is due, and so long at least."""
        # What came first follows from the numbers of runs, and not from the clocks of those who add.
        rank = (_MOST_URGENT - run["priority"]) * _BAND + run["number"] % _BAND + 1
        options: EnqueueOptions = {
            "workflow_name": WORKFLOW,
            "queue_name": QUEUE,
            "workflow_id": f"{run['run_id']}:{uuid4().hex[:8]}",
            "app_version": run["version"],
            "priority": rank,
            "queue_partition_key": f"owner:{run['owner']}",
        }
        delay = least
        if run["due_at"]:
            # DBOS adds it to the time of this machine, but it is the database that says when a run is due.
            moment = (await connection.execute(sa.select(server_time()))).scalar_one()
            delay = max(least, seconds_between(moment, run["due_at"]))
        if delay > 0:
            options["delay_seconds"] = delay
        given = (run["run_id"], run["owner"], rank)
        await connection.run_sync(self.client.enqueue_in_transaction, options, *given)

    def find(self, **which: Any) -> dict[str, str]:
        """Return the runs of workflows, by the names of these; it blocks."""
        found = self.client.list_workflows(load_input=False, load_output=False, **which)
        return {each.workflow_id: each.workflow_id.rpartition(":")[0] for each in found}

    def drop(self, workflows: Collection[str]) -> None:
        """Forget workflows whose runs wait anew; it blocks."""
        if workflows:
            self.client.cancel_workflows([*workflows])

    def close(self) -> None:
        """Close the connections."""
        if "client" in self.__dict__:
            self.client.destroy()
        if self.engine:
            self.engine.dispose()


def _open_file(url: sa.URL) -> sa.Engine:
    # DBOS connects again and again, and whoever took the file away is not to find an empty one there.
    address = f"{Path(url.database or '').resolve().as_uri()}?mode=rw"
    connect = partial(sqlite3.connect, address, uri=True, check_same_thread=False)
    engine = sa.create_engine("sqlite://", creator=connect, poolclass=sa.QueuePool)
    event.listen(engine, "connect", _prepare)
    return engine


def _prepare(connection: Any, record: Any) -> None:
    set_pragmas(connection, record)
    # As DBOS prepares its own connections: its transactions begin as writers.
    connection.isolation_level = "IMMEDIATE"
