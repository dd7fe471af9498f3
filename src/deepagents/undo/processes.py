"""Tell which of the processes that use a store still run, by a lock that each holds while it lives.

The time of the locked file says of a process that died up to when it lived for certain.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Collection
from pathlib import Path
from threading import Lock, Thread
from typing import Final
from uuid import uuid4

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_BETWEEN_SIGNS: Final = 0.1

IS_POSSIBLE: Final = fcntl is not None
"""Whether this system has such locks."""


class Processes:
    """The processes of one store, this one among them."""

    def __init__(self, directory: Path) -> None:
        self.own = uuid4().hex
        self._directory = directory / "processes"
        self._held = -1
        self._reset()

    def _reset(self) -> None:
        self._guard, self._steps, self._gives_signs = Lock(), set[int](), False

    def join(self) -> None:
        """Let others know that this process lives."""
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

    def give_signs(self, step: int) -> None:
        """Give signs of life until this step and all others have ended."""
        with self._guard:
            self._steps.add(step)
            if not self._gives_signs:
                self._gives_signs = True
                Thread(target=self._give_signs, name="deepagents-undo-alive", daemon=True).start()

    def stop_signs(self, step: int) -> None:
        """Give no more signs of life for this step."""
        self._steps.discard(step)

    def _give_signs(self) -> None:
        while True:
            with self._guard:
                if not self._steps or self._held < 0:
                    self._gives_signs = False
                    return
                with contextlib.suppress(OSError):
                    os.utime(self._held)
            time.sleep(_BETWEEN_SIGNS)

    def last_sign(self, process: str) -> float:
        """Return up to when a process lived for certain, in nanoseconds: infinite while it does."""
        if self.is_alive(process):
            return math.inf
        try:
            return self._lock_file(process).stat().st_mtime_ns
        except OSError:
            return 0

    def leave(self) -> None:
        """Let others take this process for dead."""
        # A sign under way ends first: by then, the descriptor could be that of another file.
        with self._guard:
            with contextlib.suppress(OSError):
                self._lock_file(self.own).unlink()
            self.leave_to_parent()

    def leave_to_parent(self) -> None:
        """Let go, in a forked child, of the lock that is its parent's: else that never seems to die."""
        self._reset()
        if self._held >= 0:
            os.close(self._held)
            self._held = -1

    def is_alive(self, process: str) -> bool:
        """Return whether the process that joined under this name still runs."""
        return process == self.own or self._is_locked(self._lock_file(process))

    def drop_dead(self, wanted: Collection[str]) -> None:
        """Remove the files of processes that died, but of those whose last sign of life is wanted."""
        for path in self._directory.glob("*.lock"):
            if path.stem not in wanted and path.stem != self.own:
                self._is_locked(path, drops=True)

    def _is_locked(self, path: Path, *, drops: bool = False) -> bool:
        if fcntl is None:
            return True
        try:
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            # Shared: others who ask at the same moment must not take this for a sign of life.
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            if drops:
                path.unlink(missing_ok=True)
            return False
        except OSError:
            return True
        finally:
            os.close(fd)

    def _lock_file(self, process: str) -> Path:
        return self._directory / f"{process}.lock"
