"""Bring a database to the present shape: numbered steps that only go forward."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import sqlalchemy as sa

from deepagents_server.database.place import file_of
from deepagents_server.errors import ServeError

_VERSIONS: Final = sa.Table(
    "server_migrations",
    sa.MetaData(),
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
)

_DIRECTORY: Final = Path(__file__).with_name("steps")
STEPS: Final = ("tables",)
"""Each step once, in order: `steps/NUMBER_NAME.sql`, then `NUMBER_NAME.DATABASE.sql` for one database alone.

What is in a release never changes.
"""


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
    for version, name in enumerate(STEPS[seen:], seen + 1):
        for statement in _statements(f"{version}_{name}", connection.dialect.name):
            connection.exec_driver_sql(statement)
        connection.execute(_VERSIONS.insert().values(version=version))


def connect_plainly(url: str) -> sa.Connection:
    """Open one connection to a database that may be at work, and prepare nothing."""
    file = file_of(url)
    address = f"sqlite:///{file}" if file else sa.make_url(url).set(drivername="postgresql+psycopg")
    return sa.create_engine(address, poolclass=sa.NullPool).connect()


def check_version(version: int) -> None:
    """Refuse to work on a database of another release.

    Raises:
        ServeError: with the way out.
    """
    if version != len(STEPS):
        raise ServeError(
            f"The database has version {version}, and this release works on version {len(STEPS)}; "
            + ("use the newer release." if version > len(STEPS) else "run `deepagents db migrate` first.")
        )


def _statements(step: str, database: str) -> list[str]:
    """Return what is between the empty lines of files; drivers take one statement at a time."""
    names = (f"{step}.sql", f"{step}.{database}.sql")
    both, alone = ((_DIRECTORY / name).read_text("utf-8") for name in names)
    # All that the two call differently.
    both = both.replace("JSONB", "JSON") if database == "sqlite" else both
    return [statement for text in (both, alone) for statement in text.strip().split("\n\n")]


def version_of(connection: sa.Connection) -> int:
    """Return the number of the last step that a database has seen; 0 if it is not a database of a server."""
    if not sa.inspect(connection).has_table(_VERSIONS.name):
        return 0
    return connection.execute(sa.select(sa.func.max(_VERSIONS.c.version))).scalar() or 0
