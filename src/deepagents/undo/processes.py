"""Tell which of the processes that use a store still run, by a lock that each holds while it lives."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final
from uuid import uuid4

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

IS_POSSIBLE: Final = fcntl is not None
"""Whether this system has such locks."""


class Processes:
    """The processes of one store, this one among them."""

    def __init__(self, directory: Path) -> None:
        self.own = uuid4().hex
        self._directory = directory / "processes"
        self._held = -1

    def join(self) -> None:
        """Let others know that this process lives; files of those that died go."""
        if self._held >= 0 or fcntl is None:
            return
        self.own = uuid4().hex
        self._directory.mkdir(mode=0o700, exist_ok=True)
        path = self._lock_file(self.own)
        while self._held < 0:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(fd, fcntl.LOCK_EX)
            # Before it was locked, another process may have removed it as that of a dead one.
            if path.exists() and os.path.samestat(path.stat(), os.fstat(fd)):
                self._held = fd
            else:
                os.close(fd)
        for each in self._directory.glob("*.lock"):
            self.is_alive(each.stem)

    def leave(self) -> None:
        """Let others take this process for dead."""
        with contextlib.suppress(OSError):
            self._lock_file(self.own).unlink()
        self.leave_to_parent()

    def leave_to_parent(self) -> None:
        """Let go, in a forked child, of the lock that is its parent's: else that never seems to die."""
        if self._held >= 0:
            os.close(self._held)
            self._held = -1

    def is_alive(self, process: str) -> bool:
        """Return whether the process that joined under this name still runs."""
        if process == self.own or fcntl is None:
            return True
        path = self._lock_file(process)
        try:
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            # Shared: others who ask at the same moment must not take this for a sign of life.
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            path.unlink(missing_ok=True)
            return False
        except OSError:
            return True
        finally:
            os.close(fd)

    def _lock_file(self, process: str) -> Path:
        return self._directory / f"{process}.lock"
