"""Locks that let check and replace be one step, for threads and for processes."""

from __future__ import annotations

import errno
import os
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from deepagents.backends._directory import Directory

if sys.platform != "win32":
    import fcntl

_STRIPES = 64
_LONGEST_WAIT = 30.0
_FIRST_PAUSE = 0.0005
_LONGEST_PAUSE = 0.02


@contextmanager
def locked(directory: Directory, path: Path) -> Generator[None]:
    """Hold the lock of one directory, which lies at `path`.

    Raises:
        TimeoutError: when another holds it for too long.
    """
    stripes = _stripes()
    stripe = stripes[hash(path) % len(stripes)]
    if not stripe.acquire(timeout=_LONGEST_WAIT):
        raise _held_too_long()
    try:
        fd = directory.lock()
        if fd is not None:
            _lock_against_processes(fd)
        yield
    finally:
        stripe.release()


@cache
def _stripes() -> tuple[threading.Lock, ...]:
    return tuple(threading.Lock() for _ in range(_STRIPES))


def _held_too_long() -> TimeoutError:
    return TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))


def _lock_against_processes(fd: int) -> None:
    """Lock an open directory until it is closed; some file systems cannot, and go without."""
    if sys.platform == "win32":
        return
    last, pause = time.monotonic() + _LONGEST_WAIT, _FIRST_PAUSE
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > last:
                raise _held_too_long() from None
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        except OSError:
            return
        else:
            return
