"""Check where a database is: its address, its file, and what both are refused for."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import sys
from collections.abc import Generator
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from deepagents_server.errors import ServeError, show_cause

_DIRECTORY: Final = ".deepagents"
_OF_OTHERS: Final = 0o007


def database_url(given: str | None, directory: Path) -> str:
    """Return the address of a database: by default a file in the directory."""
    if given and "://" in given:
        return given
    file = Path(given) if given else directory / _DIRECTORY / "server.db"
    return f"sqlite:///{file.resolve()}"


def show_address(url: str) -> str:
    """Show an address without its password."""
    try:
        # A driver takes a password from the query too.
        return repr(make_url(url).set(query={}).render_as_string(hide_password=True))
    except (ArgumentError, ValueError):
        return f"'{url.partition(':')[0]}:...'"


def read_address(url: str) -> URL:
    """Take an address apart.

    Raises:
        ServeError: if it is none of a database that is known here.
    """
    with suppress(ArgumentError, ValueError):
        made = make_url(url)
        if made.get_backend_name() in ("sqlite", "postgresql", "postgres"):
            return made
    raise ServeError(
        f"{show_address(url)} is not a database; write a file's name, or postgresql://USER@HOST/NAME."
    )


def file_of(url: str) -> Path | None:
    """Return the file of an address, if it has one.

    By its one name: the other files of SQLite are named after that.

    Raises:
        ServeError: if it is none of a database that is known here.
    """
    made = read_address(url)
    return Path(made.database or "").resolve() if made.get_backend_name() == "sqlite" else None


@contextmanager
def explain_errors(url: str) -> Generator[None]:
    """Turn what drivers raise into a sentence.

    Raises:
        ServeError: with that sentence.
    """
    try:
        yield
    except (DBAPIError, sqlite3.Error, OSError) as error:
        raise ServeError(
            f"{show_address(url)} cannot be worked on: {show_cause(error)}. Put that right, or name another "
            "with --database."
        ) from error


def prepare_file(path: Path) -> None:
    """Make the file of a database, and close it to other users of the machine.

    Raises:
        ServeError: if its directory is not there.
    """
    if path.parent.name == _DIRECTORY:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    elif not path.parent.is_dir():
        raise ServeError(f"There is no directory {str(path.parent)!r}; make it, or name another file.")
    # What SQLite writes beside it gets the same mode. One that is there is not opened: to close it would drop
    # all locks of this process on it.
    path.touch(0o600)
    for each in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))):
        with suppress(FileNotFoundError):
            if each.stat().st_mode & _OF_OTHERS:
                each.chmod(0o600)


def keep_for_this_process(path: Path, stack: AsyncExitStack) -> None:
    """Keep other servers from a file until the stack is left.

    Raises:
        ServeError: if another one has it.
    """
    # The lock beside it is what earlier releases look at, and may be removed; a lock of the file itself holds
    # under each name that leads there. On macOS it would keep SQLite out as well.
    lock = path.with_name(f"{path.name}.lock")
    for each in (lock, *([path] if sys.platform == "linux" else ())):
        opened = os.open(each, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            # It stays open: to close the file would end SQLite's own locks, if this process is the server.
            raise ServeError(
                f"{str(path)!r} belongs to a server that runs; stop it, or name another file with --database."
            ) from error
        stack.callback(os.close, opened)
