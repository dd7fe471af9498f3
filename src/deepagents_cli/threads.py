"""Keep the register of threads and their directories, in the SQLite file that holds the checkpoints."""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

from deepagents_cli.errors import CommandError

if sys.platform == "win32":
    import msvcrt

    def _lock(handle: int, offset: int) -> None:
        os.lseek(handle, offset, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(handle: int, offset: int) -> None:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, offset, os.SEEK_SET)


FILE = "threads.sqlite"
BUSY_SECONDS = 30.0

_TABLE = """CREATE TABLE IF NOT EXISTS deepagents_threads (
    thread_id TEXT PRIMARY KEY, directory TEXT NOT NULL, used REAL NOT NULL
)"""


def state_dir(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """Return where threads are kept: `DEEPAGENTS_STATE`, or the user's state directory."""
    if chosen := environment.get("DEEPAGENTS_STATE"):
        return Path(chosen).expanduser()
    if chosen := environment.get("XDG_STATE_HOME"):
        return Path(chosen) / "deepagents"
    if platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "deepagents"
    if platform == "win32":
        return Path(environment.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "deepagents"
    return Path.home() / ".local" / "state" / "deepagents"


class Threads:
    """The register of threads.

    Raises:
        CommandError: when its file cannot be made or used.
    """

    def __init__(self, state: Path) -> None:
        self.path = state / FILE
        try:
            state.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.path.touch(mode=0o600)
            with self._open() as database:
                # So that a run can write while another reads, from any number of processes.
                database.execute("PRAGMA journal_mode=WAL")
                database.execute(_TABLE)
        except (OSError, sqlite3.DatabaseError) as error:
            raise CommandError(
                f"Threads cannot be kept in {str(self.path)!r} ({error}); "
                "name another directory in DEEPAGENTS_STATE"
            ) from error

    def choose(self, directory: Path, wanted: str | None, *, latest: bool) -> str:
        """Choose the thread to work in: the one wanted, the directory's latest, or a new one.

        Raises:
            CommandError: when the wanted thread belongs to another directory, or there is no latest.
        """
        if wanted is not None:
            return self._claim(directory, wanted)
        return self._latest(directory) if latest else f"{time.strftime('%Y%m%d-%H%M%S')}-{uuid4().hex[:6]}"

    def note(self, thread: str, directory: Path) -> None:
        """Remember that a thread of this directory is in use now."""
        with self._open() as database:
            database.execute(
                "INSERT INTO deepagents_threads VALUES (?, ?, ?) "
                "ON CONFLICT DO UPDATE SET used = excluded.used",
                (thread, str(directory), time.time()),
            )

    @contextmanager
    def hold(self, thread: str) -> Generator[None]:
        """Keep other processes out of a thread; the hold ends with this process, however it ends.

        Raises:
            CommandError: when another process works in it.
        """
        # One byte of one file for each thread: such a lock is released when the process dies.
        offset = int.from_bytes(sha256(thread.encode()).digest()[:4]) >> 2
        with open(self.path.with_suffix(".lock"), "wb", opener=_open_private) as file:
            try:
                _lock(file.fileno(), offset)
            except OSError as error:
                raise CommandError(
                    f"Thread {thread!r} is in use by another run; wait for it, or leave --continue out"
                ) from error
            yield

    def _latest(self, directory: Path) -> str:
        with self._open() as database:
            found = database.execute(
                "SELECT thread_id FROM deepagents_threads WHERE directory = ? ORDER BY used DESC LIMIT 1",
                (str(directory),),
            ).fetchone()
        if found is None:
            raise CommandError(f"There is nothing to continue: no thread belongs to {str(directory)!r} yet")
        return found[0]

    def _claim(self, directory: Path, thread: str) -> str:
        with self._open() as database:
            found = database.execute(
                "SELECT directory FROM deepagents_threads WHERE thread_id = ?", (thread,)
            ).fetchone()
        if found is not None and found[0] != str(directory):
            raise CommandError(f"Thread {thread!r} belongs to {found[0]!r}; give it with --dir")
        return thread

    @contextmanager
    def _open(self) -> Generator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, timeout=BUSY_SECONDS)) as database, database:
            yield database


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
