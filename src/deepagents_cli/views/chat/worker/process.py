"""Start the process of a worker, with a log; it is started before anything large is imported here."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress

from deepagents_cli.project.state import state_dir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_LOGS_KEPT = 7 * 86_400
"""Seconds."""


class WorkerProcess:
    """The process of a worker; what it writes to standard error goes to the log.

    With `raw`, it is given the `terminal`, to put that back if this process is killed.
    """

    def __init__(self, command: Sequence[str], *, raw: bool = False) -> None:
        self.log = state_dir() / "logs" / f"worker-{os.getpid()}.log"
        self.terminal = os.dup(sys.stdin.fileno()) if raw else None
        shared = () if self.terminal is None else (self.terminal,)
        # Each on its own: directories above the last one would be readable for everybody.
        for place in (self.log.parent.parent, self.log.parent):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        _remove_old(self.log.parent)
        with open(self.log, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as errors:
            self.popen = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                # Ctrl-C in an editor, which runs on the same terminal, is not for the worker.
                start_new_session=True,
                pass_fds=shared,
            )
        for each in shared:
            os.close(each)


def _remove_old(logs: Path) -> None:
    """Remove the logs of workers that failed long ago."""
    for log in logs.glob("worker-*.log"):
        with suppress(OSError):
            if time.time() - log.stat().st_mtime > _LOGS_KEPT:
                log.unlink()
