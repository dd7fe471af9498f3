"""Keep the register of sessions and their directories, in the SQLite file that holds the checkpoints."""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path
from shlex import quote
from uuid import uuid4

from deepagents._values import valueclass
from deepagents_cli.errors import CommandError, Exit
from deepagents_cli.project.state import FILE

if sys.platform == "win32":
    import msvcrt

    def _lock(handle: int, offset: int) -> None:
        os.lseek(handle, offset, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)

    def _unlock(handle: int, offset: int) -> None:
        os.lseek(handle, offset, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(handle: int, offset: int) -> None:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, offset, os.SEEK_SET)

    def _unlock(handle: int, offset: int) -> None:
        fcntl.lockf(handle, fcntl.LOCK_UN, 1, offset, os.SEEK_SET)


BUSY_SECONDS = 30.0

_TABLE = """CREATE TABLE IF NOT EXISTS deepagents_threads (
    thread_id TEXT PRIMARY KEY, directory TEXT NOT NULL, used REAL NOT NULL, name TEXT NOT NULL,
    turn INTEGER NOT NULL
)"""
_WORKTREES = """CREATE TABLE IF NOT EXISTS deepagents_worktrees (
    directory TEXT PRIMARY KEY, origin TEXT NOT NULL, branch TEXT NOT NULL
)"""
"""Directories in worktrees that were made for sessions, and where each was asked for."""
_LONGEST_NAME = 80
_OF_CHECKPOINTS = ("checkpoints", "writes")
_VALUES = {"checkpoints": "checkpoint", "writes": "value"}
_OF_CONVERSATIONS = (
    "deepagents_threads",
    "deepagents_queue",
    "deepagents_usage",
    "deepagents_breaks",
    "deepagents_rewinds",
    "deepagents_effort",
)


@valueclass
class Session:
    """A thread as people know it; `used` is in seconds since 1970, `size` in bytes of its checkpoints.

    `branch` is that of the worktree which was made for it, and `origin` the directory where it was asked for.
    """

    id: str
    name: str
    directory: Path
    used: float
    size: int
    branch: str = ""
    origin: Path | None = None


def new_thread_id() -> str:
    """Make an id that sorts by time, and that two processes do not share."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{uuid4().hex[:6]}"


class InUse(CommandError):
    """Another process works in a thread."""


class Sessions:
    """The register of sessions: of threads, with their directories and titles.

    Raises:
        CommandError: when its file cannot be made or used.
    """

    def __init__(self, state: Path) -> None:
        self.path = state / FILE
        self._locks = -1
        self._held: set[int] = set()
        try:
            state.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.path.touch(mode=0o600)
            with self._open() as database:
                # So that a run can write while another reads, from any number of processes.
                database.execute("PRAGMA journal_mode=WAL")
                database.execute(_TABLE)
                database.execute(_WORKTREES)
                # Of a file that an older checkout has made, this says at once that it lacks some.
                database.execute("SELECT name, turn FROM deepagents_threads LIMIT 0")
        except (OSError, sqlite3.DatabaseError) as error:
            raise CommandError(
                f"Sessions cannot be kept in {str(self.path)!r} ({error}); "
                "name another directory in DEEPAGENTS_STATE"
            ) from error

    def choose(self, directory: Path, wanted: str | None, *, latest: bool) -> str:
        """Choose the thread to work in: the one wanted, the directory's latest, or a new one.

        `wanted` is an id, or the name of a session of the directory; what is neither is the id of a new one.

        Raises:
            CommandError: when the wanted thread belongs to another directory, its name is that of several, or
                there is no latest.
        """
        if wanted is not None:
            return self._claim(directory, wanted)
        return self._latest(directory) if latest else new_thread_id()

    def note(self, thread: str, directory: Path, task: str = "") -> None:
        """Remember that a thread of this directory is in use now; its first task names it."""
        with self._open() as database:
            database.execute(
                # The turn says which was last, since the clock may be set.
                "INSERT INTO deepagents_threads (thread_id, directory, used, name, turn) "
                "VALUES (?, ?, ?, ?, (SELECT coalesce(max(turn), 0) + 1 FROM deepagents_threads)) "
                "ON CONFLICT DO UPDATE SET used = excluded.used, turn = excluded.turn, "
                "name = CASE name WHEN '' THEN excluded.name ELSE name END",
                (thread, str(directory), time.time(), _as_name(task)),
            )

    def name_of(self, thread: str) -> str:
        """Return the name of a thread; `""` for a new one."""
        with self._open() as database:
            statement = "SELECT name FROM deepagents_threads WHERE thread_id = ?"
            return (database.execute(statement, (thread,)).fetchone() or ("",))[0]

    def find_all(self, directory: Path | None = None) -> list[Session]:
        """Return the sessions of a directory and of its worktrees, or all, those used last first."""
        with self._open() as database:
            rows = database.execute(
                "SELECT thread_id, name, directory, used, branch, origin FROM deepagents_threads "
                "LEFT JOIN deepagents_worktrees USING (directory) "
                "WHERE directory = :place OR origin = :place OR :place IS NULL "
                "ORDER BY turn DESC, used DESC",
                {"place": None if directory is None else str(directory)},
            ).fetchall()
            sizes = _sizes(database)
        return [
            Session(
                thread, name, Path(place), used, sizes.get(thread, 0), branch or "", origin and Path(origin)
            )
            for thread, name, place, used, branch, origin in rows
        ]

    def note_worktree(self, directory: Path, origin: Path, branch: str) -> None:
        """Remember that a directory lies in a worktree that was made for sessions of another directory."""
        with self._open() as database:
            database.execute(
                "INSERT OR REPLACE INTO deepagents_worktrees VALUES (?, ?, ?)",
                (str(directory), str(origin), branch),
            )

    def find_origin(self, directory: Path) -> tuple[Path, str] | None:
        """Return where the worktree of a directory was asked for, and its branch; `None` for other ones."""
        with self._open() as database:
            statement = "SELECT origin, branch FROM deepagents_worktrees WHERE directory = ?"
            found = database.execute(statement, (str(directory),)).fetchone()
        return (Path(found[0]), found[1]) if found else None

    def forget_worktree(self, directory: Path) -> None:
        """Let the sessions of a worktree that is gone with its branch go on where it was asked for."""
        with self._open() as database:
            database.execute(
                "UPDATE deepagents_threads SET directory = (SELECT origin FROM deepagents_worktrees WHERE "
                "directory = :place) WHERE directory = :place AND EXISTS (SELECT 1 FROM deepagents_worktrees "
                "WHERE directory = :place)",
                {"place": str(directory)},
            )
            database.execute("DELETE FROM deepagents_worktrees WHERE directory = ?", (str(directory),))

    def find(self, wanted: str, directory: Path | None = None) -> Session:
        """Return the one thread with this id, this name, or an id that begins so.

        Raises:
            CommandError: when there is none or more than one.
        """
        known = self.find_all(directory)
        for matches in (
            [each for each in known if each.id == wanted],
            [each for each in known if each.name == wanted],
            [each for each in known if each.id.startswith(wanted)],
        ):
            if len(matches) == 1:
                return matches[0]
            if matches:
                listed = ", ".join(each.id for each in matches[:5])
                raise CommandError(f"{wanted!r} names {len(matches)} sessions ({listed}); give the whole id")
        raise CommandError(f"there is no session {wanted!r}; `deepagents sessions` lists them")

    def rename(self, thread: str, name: str) -> None:
        """Give a thread another name.

        Raises:
            CommandError: for a name that is empty.
        """
        if not _as_name(name):
            raise CommandError(f"{name!r} is not a name; write one with a letter or a digit", Exit.USAGE)
        with self._open() as database:
            database.execute(
                "UPDATE deepagents_threads SET name = ? WHERE thread_id = ?", (_as_name(name), thread)
            )

    def forget(self, thread: str) -> None:
        """Remove a thread with all its checkpoints.

        Raises:
            CommandError: when a process works in it.
        """
        with self.hold(thread), self._open() as database:
            for table in _tables(database, *_OF_CONVERSATIONS, *_OF_CHECKPOINTS):
                database.execute(f"DELETE FROM {table} WHERE thread_id = ?", (thread,))

    def read_saved(self, thread: str) -> Iterator[bytes]:
        """Yield the values that the checkpoints of a thread hold, as they are saved."""
        with self._open() as database:
            for table in _tables(database, *_OF_CHECKPOINTS):
                rows = database.execute(
                    f"SELECT {_VALUES[table]} FROM {table} WHERE thread_id = ?", (thread,)
                )
                yield from (value for (value,) in rows if value)

    def all_ids(self) -> set[str]:
        """Return the ids of all threads that there is something of."""
        with self._open() as database:
            tables = _tables(database, "deepagents_threads", *_OF_CHECKPOINTS)
            return {
                row[0]
                for each in tables
                for row in database.execute(f"SELECT DISTINCT thread_id FROM {each}")
            }

    def copy(self, source: Session, copy: str, last: str | None) -> None:
        """Copy a thread with its checkpoints, up to the one with the id `last`."""
        with self._open() as database:
            for table in _tables(database, *_OF_CHECKPOINTS):
                columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
                others = ", ".join(each for each in columns if each != "thread_id")
                # Their ids sort by time.
                database.execute(
                    f"INSERT INTO {table} (thread_id, {others}) SELECT ?, {others} FROM {table} "
                    "WHERE thread_id = ? AND (? IS NULL OR checkpoint_id <= ?)",
                    (copy, source.id, last, last),
                )
        self.note(copy, source.directory, f"{source.name} (fork)")

    def has_copy(self, thread: str) -> bool:
        """Return whether a copy of a thread is there: it has the same checkpoints."""
        with self._open() as database:
            if not _tables(database, "checkpoints"):
                return False
            same = (
                "SELECT 1 FROM checkpoints AS own JOIN checkpoints AS other USING (checkpoint_id) "
                "WHERE own.thread_id = ? AND other.thread_id != ? LIMIT 1"
            )
            return database.execute(same, (thread, thread)).fetchone() is not None

    def shrink(self) -> None:
        """Give the room of removed threads back to the file system."""
        with closing(sqlite3.connect(self.path, timeout=BUSY_SECONDS)) as database:
            database.execute("VACUUM")

    @contextmanager
    def hold(self, thread: str) -> Generator[None]:
        """Keep other processes out of a thread; the hold ends with this process, however it ends.

        Raises:
            InUse: when another process works in it.
        """
        # One byte of one file for each thread: such a lock is released when the process dies.
        offset = int.from_bytes(sha256(thread.encode()).digest()[:4]) >> 2
        if offset in self._held:
            yield
            return
        # Closing any descriptor of a file releases all locks of a process on it, so there is one for all.
        if not self._held:
            self._locks = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock(self._locks, offset)
            self._held.add(offset)
            yield
        except OSError as error:
            if offset in self._held:
                raise
            raise InUse(
                f"Session {thread!r} is in use by another run; wait for it, work in a copy "
                f"(deepagents sessions fork {quote(thread)}), or begin a new session"
            ) from error
        finally:
            if offset in self._held:
                self._held.remove(offset)
                _unlock(self._locks, offset)
            if not self._held:
                os.close(self._locks)

    def _latest(self, directory: Path) -> str:
        with self._open() as database:
            found = database.execute(
                "SELECT thread_id FROM deepagents_threads WHERE directory = ? "
                "ORDER BY turn DESC, used DESC LIMIT 1",
                (str(directory),),
            ).fetchone()
        if found is None:
            raise CommandError(f"There is nothing to continue: no session belongs to {str(directory)!r} yet")
        return found[0]

    def _claim(self, directory: Path, thread: str) -> str:
        with self._open() as database:
            found = database.execute(
                "SELECT directory FROM deepagents_threads WHERE thread_id = ?", (thread,)
            ).fetchone()
        if found is not None and found[0] != str(directory):
            raise CommandError(f"Session {thread!r} belongs to {found[0]!r}; give it with --dir")
        is_name = found is None and any(each.name == thread for each in self.find_all(directory))
        return self.find(thread, directory).id if is_name else thread

    @contextmanager
    def _open(self) -> Generator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, timeout=BUSY_SECONDS)) as database, database:
            yield database


def _as_name(text: str) -> str:
    """Make a name of a task: its first line, cut at a length that fits a list."""
    line = " ".join(text.strip().partition("\n")[0].split())
    return line if len(line) <= _LONGEST_NAME else f"{line[: _LONGEST_NAME - 1]}…"


def _tables(database: sqlite3.Connection, *names: str) -> list[str]:
    """Return which of these tables are there; LangGraph's are not before the first run."""
    rows = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return [name for (name,) in rows if name in names]


def _sizes(database: sqlite3.Connection) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for table in _tables(database, *_OF_CHECKPOINTS):
        for thread, size in database.execute(
            f"SELECT thread_id, SUM(LENGTH({_VALUES[table]})) FROM {table} GROUP BY thread_id"
        ):
            sizes[thread] = sizes.get(thread, 0) + (size or 0)
    return sizes
