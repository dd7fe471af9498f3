"""Keep contents, the index of each root and the records of changes in one SQLite file, within bounds.

Several processes may use it at once, and know of each other whether a step that one noted is still under way.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sqlite3
import sys
import time
import zlib
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any, Final, TypeAlias
from uuid import uuid4
from weakref import ref

from deepagents.undo import tables
from deepagents.undo.processes import IS_POSSIBLE, Processes
from deepagents.undo.states import FILE, PathReading, State, key_of
from deepagents.undo.steps import last_seen

Rows: TypeAlias = list[Any]
_FILE: Final = "files.db"
_VERSION: Final = 1
_BUSY_SECONDS: Final = 10.0
_AGAIN_SECONDS: Final = 0.2
"""How long another process is waited for that was waited for in vain before: no step takes long twice."""
_LASTING: Final = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_SCHEMA, sqlite3.SQLITE_NOTADB)
"""Errors of a file that is broken. Others pass: a lock is let go, a disk gets room again."""
_WAY_OUT: Final = "move that directory away while no agent runs, and a new history begins"
_AIR: Final = 1 << 16
_HOUR: Final = 3_600.0
_DAY: Final = 24 * _HOUR


class StoreOff(Exception):
    """The store cannot be used; the text is one sentence.

    `why` is its reason without names of this machine; `lasts` where it stays so.
    """

    def __init__(self, text: str, why: str, *, lasts: bool = False) -> None:
        super().__init__(text)
        self.why = why
        self.lasts = lasts


class Store:
    """One directory with the store of a history; nothing is opened before the first use.

    Every method raises `StoreOff` where the disk is full or the file cannot be used.
    """

    def __init__(self, directory: Path, max_bytes: int, max_age_days: float) -> None:
        self.directory = directory
        self.processes = Processes(directory)
        self._most = max_bytes
        self._days = max_age_days
        self._lock = RLock()
        self._database: sqlite3.Connection | None = None
        self._depth = 0
        self._of_parent: sqlite3.Connection | None = None
        self._next_drop = 0.0
        self._is_watching_forks = False
        self._name = ""
        self._patience = _BUSY_SECONDS
        # Contents up to this one are dropped when nothing refers to them; those of a look that is under way
        # are not referred to yet.
        self._settled = sys.maxsize

    @property
    def name(self) -> str:
        """The name of this store, which the state of threads refers to."""
        with self._using():
            return self._name

    @property
    def process(self) -> str:
        """The name by which others know this process."""
        return self.processes.own

    # -- transactions

    @contextmanager
    def write(self) -> Generator[sqlite3.Connection]:
        """Do all that is written meanwhile in one transaction, which no other process sees in part."""
        with self._using() as database:
            if self._depth:
                yield database
                return
            self._begin(database)
            self._depth += 1
            try:
                yield database
                database.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    database.execute("ROLLBACK")
                raise
            finally:
                self._depth -= 1

    def _begin(self, database: sqlite3.Connection) -> None:
        try:
            database.execute("BEGIN IMMEDIATE")
        except sqlite3.Error:
            self._wait_at_most(database, _AGAIN_SECONDS)
            raise
        self._wait_at_most(database, _BUSY_SECONDS)

    def _wait_at_most(self, database: sqlite3.Connection, seconds: float) -> None:
        if self._patience != seconds:
            self._patience = seconds
            database.execute(f"PRAGMA busy_timeout = {1000 * seconds:.0f}")

    def try_to_write(self) -> None:
        """Find out whether anything can be written."""
        with self.write() as database:
            database.execute("INSERT OR REPLACE INTO about VALUES ('tried', ?)", [uuid4().hex])

    def read(self, query: str, *values: Any) -> Rows:
        """Return the rows of a query."""
        with self._using() as database:
            return database.execute(query, values).fetchall()

    @contextmanager
    def _using(self) -> Generator[sqlite3.Connection]:
        with self._lock:
            # Of what is done meanwhile, only errors of the file itself are errors of the store.
            try:
                database = self._open()
            except (sqlite3.Error, OSError) as error:
                raise self._off(error) from error
            try:
                yield database
            except sqlite3.Error as error:
                raise self._off(error) from error

    def _off(self, error: sqlite3.Error | OSError) -> StoreOff:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        lasts = getattr(error, "sqlite_errorcode", -1) & 0xFF in _LASTING
        text = f"the history of files in {self.directory} cannot be used: {error}"
        return StoreOff(f"{text}; {_WAY_OUT}" if lasts else text, why, lasts=lasts)

    def _open(self) -> sqlite3.Connection:
        if self._database is not None:
            return self._database
        if not IS_POSSIBLE:
            text = "a history of files needs Linux or macOS"
            raise StoreOff(text, text, lasts=True)
        # One that was there is another's: its mode stays, and what lies in it is closed to others by itself.
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.processes.join()
        if not self._is_watching_forks:
            self._is_watching_forks = True
            os.register_at_fork(after_in_child=partial(_begin_anew, ref(self)))
        try:
            self._database = self._connect()
        except BaseException:
            self.processes.leave()
            raise
        self._drop_old()
        self.processes.drop_dead({process for (process,) in self._database.execute(tables.ALL_AT_WORK)})
        return self._database

    def begin_anew(self) -> None:
        """Leave to its parent, in a forked child, what this process has inherited."""
        self.processes.leave_to_parent()
        # Not closed: that would roll back what the parent writes. Who held the lock is not in the child.
        self._of_parent, self._database = self._database, None
        self._lock, self._depth, self._settled = RLock(), 0, sys.maxsize

    def _connect(self) -> sqlite3.Connection:
        # This opens no file that is there: to close it would drop all locks of this process on it.
        (self.directory / _FILE).touch(0o600)
        database = sqlite3.connect(
            self.directory / _FILE, self._patience, isolation_level=None, check_same_thread=False
        )
        pages = max(16, min(200, self._most // 16 // 4096))
        try:
            for pragma in (
                "auto_vacuum = INCREMENTAL", "journal_mode = WAL", "synchronous = NORMAL",
                "journal_size_limit = 0", f"wal_autocheckpoint = {pages}",
            ):  # fmt: skip
                database.execute(f"PRAGMA {pragma}")
            self._prepare(database)
        except BaseException:
            self._patience = _AGAIN_SECONDS
            # What was begun is rolled back by that.
            database.close()
            raise
        return database

    def _prepare(self, database: sqlite3.Connection) -> None:
        # What is there already is read without a lock, which another process may hold.
        if not _version_of(database):
            database.execute("BEGIN IMMEDIATE")
            if not _version_of(database):
                for statement in tables.SCHEMA.strip().split(";\n"):
                    database.execute(statement)
                database.execute("INSERT INTO about VALUES ('name', ?)", [uuid4().hex[:12]])
                database.execute(f"PRAGMA user_version = {_VERSION}")
            database.execute("COMMIT")
        if (version := _version_of(database)) != _VERSION:
            why = f"it is of version {version}, and this release reads {_VERSION}"
            text = f"the history of files in {self.directory} cannot be used: {why}"
            raise StoreOff(f"{text}; use the release that made it, or {_WAY_OUT}", why, lasts=True)
        # One that was made before rules of turns were kept has no table of them.
        database.executescript(tables.TURNS)
        self._name = database.execute("SELECT value FROM about WHERE name = 'name'").fetchone()[0]

    def close(self) -> None:
        """Let go of the file; the next use opens it again."""
        with self._lock:
            if self._database is None:
                return
            is_at_work = False
            with contextlib.suppress(sqlite3.Error):
                is_at_work = bool(self._database.execute(tables.AT_WORK, [self.process] * 2).fetchone())
                self._database.close()
            self._database = None
            # Others take a step for dead once this process has let go.
            if not is_at_work:
                self.processes.leave()

    # -- processes

    def is_alive(self, process: str) -> bool:
        """Return whether the process that wrote this name still runs."""
        return self.processes.is_alive(process)

    # -- contents

    def keep(self, found: Iterable[PathReading]) -> None:
        """Keep the contents of files that were read, each once, within the bound."""
        contents = {key_of(each.state): each.content for each in found if not self.has(each.state)}
        new = [(digest, content) for digest, content in contents.items() if content is not None]
        self.make_room(sum(len(content) + 200 for _, content in new))
        # Another process may be faster.
        insert = "INSERT OR IGNORE INTO contents(digest, size, data) VALUES (?, ?, ?)"
        with self.write() as database:
            for digest, content in new:
                packed = zlib.compress(content, 1)
                data = packed if len(packed) < len(content) else content
                database.execute(insert, [digest, len(content), data])

    @contextmanager
    def holding_new(self) -> Generator[None]:
        """Keep contents that are stored meanwhile, though nothing refers to them yet."""
        self._settled = self.read("SELECT coalesce(max(id), 0) FROM contents")[0][0]
        try:
            yield
        finally:
            self._settled = sys.maxsize

    def content(self, state: State | None) -> bytes | None:
        """Return the content of a file or the target of a link; `None` where nothing is kept."""
        if state is None or state[:1] != FILE:
            return key_of(state) if state and state[:1] == b"l" else None
        rows = self.read("SELECT size, data FROM contents WHERE digest = ?", key_of(state))
        if not rows:
            return None
        size, data = rows[0]
        return data if len(data) == size else zlib.decompress(data)

    def has(self, state: State) -> bool:
        """Return whether the content that a state names is kept."""
        return state[:1] != FILE or bool(self.read("SELECT 1 FROM contents WHERE digest = ?", key_of(state)))

    # -- bounds

    def size(self) -> int:
        """Return how many bytes there are on disk, what is not yet written into the file included."""
        total = 0
        for name in (_FILE, f"{_FILE}-wal", f"{_FILE}-shm"):
            with contextlib.suppress(OSError):
                total += (self.directory / name).stat().st_size
        return total

    def make_room(self, coming: int) -> None:
        """Drop the oldest records until so many bytes can be written within the bound.

        Within a transaction there is nothing to be dropped, so call it before.

        Raises:
            StoreOff: where that is not enough.
        """
        if self._depth:
            return
        if time.monotonic() >= self._next_drop:
            self._drop_old()
        # In the write-ahead file and in the other one, until the former is written back.
        needed = 2 * coming + _AIR
        if self.size() + needed <= self._most:
            return
        with self._using() as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            while self.size() + needed > self._most:
                if not self._drop_oldest():
                    why = f"it is full, with {self.size():,} bytes of at most {self._most:,}"
                    raise StoreOff(f"the history of files in {self.directory} cannot be used: {why}", why)
                _vacuum(database)
                database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _drop_oldest(self) -> bool:
        """Drop the oldest tenth of all records but the newest of each thread; then roots of others."""
        if old := self.read(tables.OLD_RECORDS, math.inf):
            self._drop(old[: 1 + len(old) // 10])
            return True
        unused = self.read("SELECT path FROM roots WHERE used < ? ORDER BY used LIMIT 1", time.time() - _DAY)
        if unused:
            self._drop_root(unused[0][0])
        return bool(unused)

    def _drop_old(self) -> None:
        """Drop what is too old; it is looked for when the store is opened, and then once an hour."""
        self._next_drop = time.monotonic() + _HOUR
        long_ago = time.time() - self._days * _DAY
        old = self.read(tables.OLD_RECORDS, long_ago)
        if self.read(f"SELECT 1 {tables.OLD_TURNS} LIMIT 1", long_ago):
            with self.write() as database:
                database.execute(f"DELETE {tables.OLD_TURNS}", [long_ago])
                database.execute(tables.WITHOUT_TURNS)
        for (path,) in self.read("SELECT path FROM roots WHERE used < ?", long_ago):
            self._drop_root(path)
        if old:
            self._drop(old)
            with self._using() as database:
                _vacuum(database)

    def _drop(self, rows: Sequence[Any]) -> None:
        note = (
            "INSERT INTO dropped SELECT thread, path, id FROM seen WHERE id = ? AND path IS NOT NULL "
            "ON CONFLICT DO UPDATE SET until = excluded.until"
        )
        with self.write() as database:
            for row in rows:
                database.execute(note, row)
                database.execute("DELETE FROM seen WHERE id = ?", row)
            database.execute(tables.WITHOUT_RECORDS)
            database.execute(tables.REFERRED, [self._settled])

    def _drop_root(self, path: bytes) -> None:
        with self.write() as database:
            database.execute("DELETE FROM roots WHERE path = ?", [path])
            database.execute("DELETE FROM rules_of_turns WHERE root = ?", [path])
            database.execute("DELETE FROM entries WHERE path >= ? AND path < ?", [path + b"/", path + b"0"])
            # Nobody comes any more who would end what died there.
            rows = database.execute("SELECT id, process, places FROM steps WHERE ended IS NULL").fetchall()
            for number, process, places in rows:
                if [*json.loads(places)] == [os.fsdecode(path)] and not self.is_alive(process):
                    database.execute("DELETE FROM steps WHERE id = ?", [number])
            database.execute(tables.REFERRED, [self._settled])

    def forget(self, thread: str) -> None:
        """Drop all records of a thread; what its copies go on from goes with the last of these."""
        with self.write() as database:
            # Another thread may have its name from here on, with higher numbers.
            kept = f"{thread}\n{last_seen(database):015}"
            for table, name in (*tables.OF_THREADS, ("lines", "source")):
                database.execute(f"UPDATE OR REPLACE {table} SET {name} = ? WHERE {name} = ?", [kept, thread])
            database.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", [tables.FORGOTTEN + kept, kept])
            self._forget(database, kept)
            database.execute(tables.REFERRED, [self._settled])
        with self._using() as database:
            _vacuum(database)

    def _forget(self, database: sqlite3.Connection, thread: str) -> None:
        gone = database.execute("SELECT 1 FROM about WHERE name = ?", [tables.FORGOTTEN + thread]).fetchone()
        if not gone or database.execute("SELECT 1 FROM lines WHERE source = ?", [thread]).fetchone():
            return
        sources = database.execute("SELECT source FROM lines WHERE thread = ?", [thread]).fetchall()
        for table, column in tables.OF_THREADS:
            database.execute(f"DELETE FROM {table} WHERE {column} = ?", [thread])
        for (source,) in sources:
            self._forget(database, source)


def _begin_anew(store: ref[Store]) -> None:
    if found := store():
        found.begin_anew()


def _version_of(database: sqlite3.Connection) -> int:
    return database.execute("PRAGMA user_version").fetchone()[0]


def _vacuum(database: sqlite3.Connection) -> None:
    """Give free pages back to the disk; `execute` would take one step, and free one page."""
    database.executescript("PRAGMA incremental_vacuum")
