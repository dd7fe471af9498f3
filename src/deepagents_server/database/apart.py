"""Change a database beside its runs: with connections of one's own, in transactions of a few rows each.

This blocks, and belongs into a thread: the event loop has requests to answer.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import make_url

from deepagents_server.database.pragmas import set_pragmas


@contextmanager
def open_apart(url: str) -> Generator[sa.Engine]:
    """Open connections of one's own to a database that may be at work."""
    made = make_url(url)
    if made.get_backend_name() == "sqlite":
        engine = sa.create_engine(made.set(drivername="sqlite"), connect_args={"timeout": 30})
        event.listen(engine, "connect", set_pragmas)
        event.listen(engine, "begin", _begin)
    else:
        engine = sa.create_engine(made.set(drivername="postgresql+psycopg"), pool_size=1)
    try:
        yield engine
    finally:
        engine.dispose()


def _begin(connection: sa.Connection) -> None:
    # What begins as a reader cannot become a writer after another has written.
    reads = connection.get_execution_options().get("reads")
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


@contextmanager
def step(engine: sa.Engine) -> Generator[sa.Connection]:
    """Change a few rows, then leave the database to the runs for as long as that took."""
    began = time.monotonic()
    with engine.begin() as connection:
        yield connection
    rest_since(began)


def rest_since(began: float) -> None:
    """Wait as long as something took."""
    time.sleep(min(time.monotonic() - began, 1.0))
