"""Notice code that blocks the event loop, for as long as which everybody waits."""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import sysconfig
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_EVERY: Final = 0.25
_LONG: Final = 2.0
"""Seconds without an answer of the event loop that are logged."""
_LIBRARIES: Final = (
    *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")),
    str(Path(__file__).parent),
)
_log: Final = logging.getLogger("deepagents.server")


@contextmanager
def watching_loop() -> Generator[None]:
    """Log which line blocks the event loop of this thread, until the block ends."""
    over = threading.Event()
    given = (asyncio.get_running_loop(), threading.get_ident(), over)
    threading.Thread(target=_watch, args=given, name="watchdog", daemon=True).start()
    try:
        yield
    finally:
        over.set()


def _watch(loop: asyncio.AbstractEventLoop, thread: int, over: threading.Event) -> None:
    while not over.wait(_EVERY):
        answers = threading.Event()
        try:
            loop.call_soon_threadsafe(answers.set)
        except RuntimeError:
            # It has just been closed.
            return
        if not answers.wait(_LONG) and not over.is_set():
            _log.warning(
                "All callers wait for %s, which blocks the event loop; await it, or let a thread do it",
                _find_line(thread),
            )
            answers.wait()


def _find_line(thread: int) -> str:
    """Return where a thread is now: in the user's own code, if there is any below what it calls."""
    with tempfile.TemporaryFile("w+") as file:
        faulthandler.dump_traceback(file)
        file.seek(0)
        threads = file.read().split("\n\n")
    of_thread = next((each for each in threads if f"0x{thread:016x}" in each.partition("\n")[0]), "")
    lines = [line.strip() for line in of_thread.splitlines()[1:]]
    own = [line for line in lines if not any(place in line for place in _LIBRARIES)]
    return next(iter((*own, *lines)), "code that cannot be found")
