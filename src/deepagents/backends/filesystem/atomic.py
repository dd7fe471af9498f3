"""Change a file in one step, under a lock of its directory.

A file that is replaced holds the old content or the new one, whole, whatever happens. What is added at its
end is there whole or not at all, unless the process is killed meanwhile.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Final

from deepagents.backends._bytes import is_temporary, temporary_name, version_of
from deepagents.backends._directory import Directory
from deepagents.backends.filesystem.confined_dir import Entry

if sys.platform != "win32":
    import fcntl

# An hour is far beyond any write, so nothing that is still being written is removed.
FORGOTTEN_AFTER: Final = 3600.0
"""Seconds after which a temporary file was left by a writer that was killed."""
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
# Without set-uid and set-gid: new content must not run with another user's rights.
_KEPT_MODE: Final = 0o1777
_LOCKS: Final = 64
# Seconds. A write takes far less; one that is held up longer should fail and say so.
_LONGEST_WAIT: Final = 30.0
_FIRST_PAUSE: Final = 0.0005
_LONGEST_PAUSE: Final = 0.02


def replace(entry: Entry, data: bytes, before: os.stat_result | None) -> str:
    """Make `data` the content of a file, keep its mode and owner, and return the new version."""
    temporary = temporary_name()
    # Others must not read what is new in a private file meanwhile or after a kill: its mode comes last.
    fd = entry.above.open(temporary, _NEW, 0o644 if before is None else 0o600)
    try:
        try:
            _write_all(fd, data)
            _copy_owner_and_mode(fd, before)
            # Two writes within one tick of the file system's clock would get the same version.
            if os.utime in os.supports_fd:
                now = time.time_ns()
                os.utime(fd, ns=(now, now))
            # Without this, a power cut after the rename could leave the new name with no content.
            os.fsync(fd)
            version = version_of(os.fstat(fd))
        finally:
            os.close(fd)
        # A rename in one directory is atomic: a reader sees the old content or the new, whole.
        entry.above.rename(temporary, entry.name)
    except BaseException:
        with suppress(OSError):
            entry.above.unlink(temporary)
        raise
    # The new name is in the directory, which has to reach the disk as well.
    entry.above.sync()
    return version


def append(entry: Entry, data: bytes) -> str:
    """Add `data` at the end of a file, take it back if not all of it fits, and return the new version."""
    fd = entry.above.open(entry.name, os.O_WRONLY | os.O_APPEND)
    try:
        size = os.fstat(fd).st_size
        try:
            _write_all(fd, data)
            os.fsync(fd)
        except BaseException:
            with suppress(OSError):
                # A full disk may have taken a part, and half an addition is worse than none.
                os.ftruncate(fd, size)
            raise
        return version_of(os.fstat(fd))
    finally:
        os.close(fd)


def sweep(directory: Directory) -> None:
    """Remove what killed writers left in a directory long ago."""
    long_ago = time.time() - FORGOTTEN_AFTER
    with suppress(OSError), directory.scan() as entries:
        for name in [entry.name for entry in entries if is_temporary(entry.name)]:
            if directory.stat(name).st_mtime < long_ago:
                directory.unlink(name)


@contextmanager
def hold_lock(directory: Directory, path: Path) -> Generator[None]:
    """Hold the lock of one directory, which is at `path`.

    The lock is on the directory, not on the file: a file that is replaced is another one afterwards, and a
    lock file next to it would show up in listings.

    Raises:
        TimeoutError: when another holds it for too long.
    """
    # A system lock belongs to an open descriptor, and holds threads apart too; the lock in this process lets
    # them wait without polling. Directories share a few of these, so that nothing grows with their number.
    lock = _thread_locks()[hash(path) % _LOCKS]
    if not lock.acquire(timeout=_LONGEST_WAIT):
        raise _timeout()
    try:
        fd = directory.lock()
        if fd is not None:
            _lock_against_processes(fd)
        yield
    finally:
        lock.release()


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _copy_owner_and_mode(fd: int, before: os.stat_result | None) -> None:
    if before is None or not hasattr(os, "fchmod"):
        return
    own = os.fstat(fd)
    # The owner comes before the mode: changing the owner clears bits of the mode.
    if (own.st_uid, own.st_gid) != (before.st_uid, before.st_gid):
        with suppress(PermissionError):
            # Only root may give files away; for others the writer becomes the owner.
            os.fchown(fd, before.st_uid, before.st_gid)
    mode = stat.S_IMODE(before.st_mode) & _KEPT_MODE
    if mode != stat.S_IMODE(os.fstat(fd).st_mode):
        with suppress(PermissionError):
            os.fchmod(fd, mode)


@cache
def _thread_locks() -> tuple[threading.Lock, ...]:
    return tuple(threading.Lock() for _ in range(_LOCKS))


def _timeout() -> TimeoutError:
    return TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))


def _lock_against_processes(fd: int) -> None:
    """Lock an open directory until it is closed; some file systems cannot, and go without."""
    if sys.platform == "win32":
        return
    last, pause = time.monotonic() + _LONGEST_WAIT, _FIRST_PAUSE
    while True:
        try:
            # Polled, because a blocking flock knows no time limit, and signals do not reach threads.
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > last:
                raise _timeout() from None
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        except OSError:
            return
        else:
            return
