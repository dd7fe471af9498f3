"""Bring a database to the present shape: numbered steps that only go forward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import sqlalchemy as sa

from deepagents_server.database.tables import METADATA
from deepagents_server.errors import ServeError

_VERSIONS: Final = sa.Table(
    "server_migrations",
    sa.MetaData(),
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
)

# LangGraph's savers write `lease` into a checkpoint's metadata because the run's configuration has it there.
_FENCE_SQLITE: Final = """
CREATE TRIGGER IF NOT EXISTS checkpoints_are_fenced BEFORE INSERT ON checkpoints
WHEN json_extract(CAST(NEW.metadata AS TEXT), '$.lease') <
     (SELECT token FROM leases WHERE thread_id = NEW.thread_id)
BEGIN SELECT RAISE(ABORT, 'lease lost'); END
"""
_FENCE_FUNCTION: Final = """
CREATE OR REPLACE FUNCTION refuse_lost_lease() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.metadata ->> 'lease')::bigint <
     (SELECT token FROM leases WHERE thread_id = NEW.thread_id FOR SHARE) THEN
    RAISE EXCEPTION 'lease lost' USING ERRCODE = 'lock_not_available';
  END IF;
  RETURN NEW;
END $$
"""
_FENCE_POSTGRES: Final = """
CREATE OR REPLACE TRIGGER checkpoints_are_fenced BEFORE INSERT OR UPDATE ON checkpoints
FOR EACH ROW EXECUTE FUNCTION refuse_lost_lease()
"""


def _create_tables(connection: sa.Connection) -> None:
    METADATA.create_all(connection)


def _fence_checkpoints(connection: sa.Connection) -> None:
    if connection.dialect.name == "sqlite":
        connection.execute(sa.text(_FENCE_SQLITE))
        return
    connection.execute(sa.text(_FENCE_FUNCTION))
    connection.execute(sa.text(_FENCE_POSTGRES))


STEPS: Final[tuple[Callable[[sa.Connection], None], ...]] = (_create_tables, _fence_checkpoints)
"""Each step once, in order; a released step never changes."""


def migrate(connection: sa.Connection) -> None:
    """Apply the steps that the database has not seen; LangGraph's own tables must be there.

    Raises:
        ServeError: if a newer release has written to the database.
    """
    _VERSIONS.create(connection, checkfirst=True)
    seen = version_of(connection)
    if seen > len(STEPS):
        raise ServeError(
            f"The database has version {seen}, and this release knows {len(STEPS)}; use the newer release."
        )
    for version, step in enumerate(STEPS[seen:], seen + 1):
        step(connection)
        connection.execute(_VERSIONS.insert().values(version=version))


def version_of(connection: sa.Connection) -> int:
    """Return the number of the last step that a database has seen; 0 if it is no database of a server."""
    if not sa.inspect(connection).has_table(_VERSIONS.name):
        return 0
    return connection.execute(sa.select(sa.func.max(_VERSIONS.c.version))).scalar() or 0
