"""Look after a database while servers work on it: bring it up to date, give space back, copy it."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Final

import sqlalchemy as sa
from sqlalchemy.engine import make_url

from deepagents._programs import find_program
from deepagents_server.config import Ages
from deepagents_server.database.engine import open_database
from deepagents_server.database.migrations import STEPS, check_version, connect_plainly, version_of
from deepagents_server.database.place import explain_errors, file_of
from deepagents_server.database.removal import Removed, open_remover
from deepagents_server.errors import ServeError

_PAGES: Final = 500
"""Pages that a file gives back at once; runs write in between."""


async def migrate(url: str) -> tuple[int, int]:
    """Bring a database up to date; return its version before and now.

    Raises:
        ServeError: if it cannot be reached, or a server that is older has the file.
    """
    with explain_errors(url):
        before = _version(url)
        if before != len(STEPS):
            async with open_database(url):
                pass
        return before, len(STEPS)


def prune(url: str, ages: Ages) -> Removed:
    """Remove what is older than it may be.

    Raises:
        ServeError: if there is no such database, or it is not up to date.
    """
    check(url)
    with explain_errors(url), open_remover(url) as remover:
        return remover.sweep(ages)


def check(url: str) -> None:
    """Tell whether a database is there and up to date.

    Raises:
        ServeError: if it is not.
    """
    with explain_errors(url):
        check_version(_version(url))


def vacuum(url: str) -> None:
    """Give back the space of what was removed: of a file to the disk, in PostgreSQL to new rows.

    Raises:
        ServeError: if there is no such database, or it is not up to date.
    """
    check(url)
    with explain_errors(url):
        if file := file_of(url):
            _shrink(file)
            return
        with _connect(url) as connection:
            at_once = connection.execution_options(isolation_level="AUTOCOMMIT")
            at_once.execute(sa.text("VACUUM (ANALYZE)"))


def back_up(url: str, target: Path) -> None:
    """Copy a database as it is at one moment; `target` is there when it is whole, and not before.

    Raises:
        ServeError: if it cannot be copied, or there is a file of this name.
    """
    if target.exists():
        raise ServeError(f"There is a file {str(target)!r} already; name another.")
    part = target.with_name(f".{target.name}.part")
    check(url)
    with explain_errors(url):
        try:
            # It holds what people have written: for the owner alone.
            os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
            _copy(url, part)
            with part.open("rb") as written:
                os.fsync(written.fileno())
            part.rename(target)
        except OSError as error:
            raise ServeError(f"{str(target)!r} cannot be written: {error.strerror}.") from error
        finally:
            part.unlink(missing_ok=True)


def _copy(url: str, part: Path) -> None:
    if file := file_of(url):
        with closing(sqlite3.connect(file)) as opened:
            # A reader among others: runs go on writing.
            opened.execute("VACUUM INTO ?", (str(part),))
    else:
        _dump(url, part)


def _dump(url: str, part: Path) -> None:
    program = find_program("pg_dump", [Path.cwd()])
    if not program:
        raise ServeError(
            "To copy a PostgreSQL, pg_dump is needed; install PostgreSQL's client programs, or let your "
            "provider take snapshots."
        )
    made = make_url(url)
    # Not in the arguments, which every user of the machine can read.
    password = {"PGPASSWORD": made.password} if made.password else {}
    place = sa.URL.create(
        "postgresql", made.username, None, made.host, made.port, made.database, made.query
    ).render_as_string()
    given = [program, "--format=custom", f"--file={part}", f"--dbname={place}"]
    done = subprocess.run(given, env={**os.environ, **password}, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise ServeError(f"pg_dump failed: {done.stderr.strip().splitlines()[-1:]}")


def _shrink(file: Path) -> None:
    with closing(sqlite3.connect(file, isolation_level=None, timeout=30)) as opened:
        while free := opened.execute("PRAGMA freelist_count").fetchone()[0]:
            opened.execute(f"PRAGMA incremental_vacuum({_PAGES})").fetchall()
            if opened.execute("PRAGMA freelist_count").fetchone()[0] >= free:
                return
        # The file gets shorter when the log is written into it; while somebody reads, that waits.
        opened.execute("PRAGMA busy_timeout=1000")
        opened.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _version(url: str) -> int:
    with _connect(url) as connection:
        return version_of(connection)


def _connect(url: str) -> sa.Connection:
    if (file := file_of(url)) and not file.is_file():
        raise ServeError(f"There is no database {str(file)!r}; name one with --database.")
    return connect_plainly(url)
