"""End a command only once all of it is dead: its parent, which is waited for, dies a moment earlier."""

from __future__ import annotations

import os
import re
import select
import signal
import threading
from contextlib import suppress
from typing import Final

_CHILD: Final = re.compile(rb'"child-pid": *(\d+)')
_SECONDS_TO_DIE: Final = 10


class FirstProcess:
    """The first process in a sandbox, which is gone only when all others are; bubblewrap tells its number."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        self._process: int | None = None
        self._thread = threading.Thread(target=self._listen, name="sandbox-first", daemon=True)

    def __enter__(self) -> FirstProcess:
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        # Where bubblewrap never came so far, the thread hears the end of the pipe.
        os.close(self._writer)
        self._thread.join()
        os.close(self._reader)
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._process, signal.SIGKILL)
        waiting = select.poll()
        waiting.register(self._process, select.POLLIN)
        waiting.poll(_SECONDS_TO_DIE * 1000)
        os.close(self._process)

    @property
    def options(self) -> tuple[str, str]:
        """The options that make bubblewrap report its first process."""
        return "--info-fd", str(self._writer)

    @property
    def descriptors(self) -> list[int]:
        """The open file that bubblewrap needs."""
        return [self._writer]

    def _listen(self) -> None:
        report = b""
        while not (found := _CHILD.search(report)):
            data = os.read(self._reader, 4096)
            if not data:
                return
            report += data
        with suppress(ProcessLookupError):
            self._process = os.pidfd_open(int(found[1]))
