"""Lock a directory against other threads and processes that write in it, and against no command."""

from __future__ import annotations

import errno
import os
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

from deepagents.backends._directory import Directory

if sys.platform != "win32":
    import fcntl

_LOCKS: Final = 64
# Seconds. A write takes far less; one that is held up longer should fail and say so.
_LONGEST_WAIT: Final = 30.0
_WAIT_FOR_OTHERS: Final = 2.0
_FIRST_PAUSE: Final = 0.0005
_LONGEST_PAUSE: Final = 0.02


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
    own = None
    try:
        fd = directory.lock()
        if fd is not None:
            own = _open_own_lock(os.fstat(fd))
            if own is not None:
                _lock_against_processes(own, _LONGEST_WAIT)
            _lock_directory(fd, has_own=own is not None)
        yield
    finally:
        if own is not None:
            os.close(own)
        lock.release()


def _open_own_lock(directory: os.stat_result) -> int | None:
    """Open a file to lock for a directory, which only processes of this user reach; `None` if none can be.

    A command in a sandbox can lock the directory itself, for as long as it likes.
    """
    top = Path(tempfile.gettempdir(), f"deepagents-{os.geteuid()}")
    try:
        top.mkdir(mode=0o700, exist_ok=True)
        status = top.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
            return None
        name = f"{(directory.st_dev ^ directory.st_ino) % _LOCKS}.lock"
        return os.open(top / name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError:
        return None


def _lock_directory(fd: int, *, has_own: bool) -> None:
    """Lock a directory against processes of other users and other machines, which hold it for a moment."""
    try:
        _lock_against_processes(fd, _WAIT_FOR_OTHERS if has_own else _LONGEST_WAIT)
    except TimeoutError:
        if not has_own:
            raise


@cache
def _thread_locks() -> tuple[threading.Lock, ...]:
    return tuple(threading.Lock() for _ in range(_LOCKS))


def _timeout() -> TimeoutError:
    return TimeoutError(errno.ETIMEDOUT, f"its directory was locked for {_LONGEST_WAIT:g} seconds")


def _lock_against_processes(fd: int, seconds: float) -> None:
    """Lock what is open until it is closed; some file systems cannot, and go without.

    Raises:
        TimeoutError: when another holds it for longer.
    """
    if sys.platform == "win32":
        return
    last, pause = time.monotonic() + seconds, _FIRST_PAUSE
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
