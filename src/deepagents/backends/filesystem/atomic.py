"""Replace a file in one step: whatever happens, the old content stands there or the new one, whole.

What is added at the end of one stands there whole, or not at all, unless the process is killed meanwhile.
"""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress

from deepagents.backends._directory import Directory, is_temporary, temporary_name
from deepagents.backends.filesystem.tree import Place

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_KEPT_MODE = 0o1777
FORGOTTEN_AFTER = 3600.0
"""Seconds after which a file that is still being written belongs to nobody."""


def version_of(found: os.stat_result) -> str:
    """Name the content of a file: a write always changes this."""
    return f"{found.st_mtime_ns:x}-{found.st_size:x}-{found.st_ino:x}"


def replace(place: Place, data: bytes, before: os.stat_result | None) -> str:
    """Put `data` in a place, keep the mode and owner of what stood there, and return the new version."""
    temporary = temporary_name()
    # Others must not read the new content of a private file meanwhile, nor after a kill: its mode comes last.
    fd = place.above.open(temporary, _NEW, 0o644 if before is None else 0o600)
    try:
        try:
            _fill(fd, data)
            _dress_as(fd, before)
            version = version_of(os.fstat(fd))
        finally:
            os.close(fd)
        place.above.rename(temporary, place.name)
    except BaseException:
        with suppress(OSError):
            place.above.unlink(temporary)
        raise
    place.above.sync()
    return version


def extend(place: Place, data: bytes) -> str:
    """Add `data` at the end of a file, take it back if not all of it fits, and return the new version."""
    fd = place.above.open(place.name, os.O_WRONLY | os.O_APPEND)
    try:
        size = os.fstat(fd).st_size
        try:
            _fill(fd, data)
            os.fsync(fd)
        except BaseException:
            with suppress(OSError):
                os.ftruncate(fd, size)
            raise
        return version_of(os.fstat(fd))
    finally:
        os.close(fd)


def sweep(directory: Directory) -> None:
    """Remove what killed writers left behind in a directory long ago."""
    long_ago = time.time() - FORGOTTEN_AFTER
    with suppress(OSError), directory.scan() as entries:
        for name in [entry.name for entry in entries if is_temporary(entry.name)]:
            if directory.stat(name).st_mtime < long_ago:
                directory.unlink(name)


def _fill(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _dress_as(fd: int, before: os.stat_result | None) -> None:
    """Give the new file the owner and mode of the old one, and a time that no earlier version had."""
    if before is not None and hasattr(os, "fchmod"):
        own = os.fstat(fd)
        if (own.st_uid, own.st_gid) != (before.st_uid, before.st_gid):
            with suppress(PermissionError):
                os.fchown(fd, before.st_uid, before.st_gid)
        mode = stat.S_IMODE(before.st_mode) & _KEPT_MODE
        if mode != stat.S_IMODE(os.fstat(fd).st_mode):
            with suppress(PermissionError):
                os.fchmod(fd, mode)
    if os.utime in os.supports_fd:
        now = time.time_ns()
        os.utime(fd, ns=(now, now))
    os.fsync(fd)
