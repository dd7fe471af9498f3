"""Let one process at a time work, by a lock that the system drops when its holder dies."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    def _hold(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_LOCK, 1)

else:
    import fcntl

    def _hold(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX)


@contextmanager
def only_one(path: Path) -> Generator[None]:
    """Wait until no other process holds `path`, then hold it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _hold(handle)
        yield
    finally:
        os.close(handle)
