"""Wait for what another thread or process does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(ask: Callable[[], T], is_so: Callable[[T], object] = bool, seconds: float = 60) -> T:
    """Ask again and again until it is so, and return the last answer."""
    ends, pause = time.monotonic() + seconds, threading.Event()
    while not is_so(answer := ask()):
        assert time.monotonic() < ends, f"it did not happen; last: {answer!r}"
        pause.wait(0.02)
    return answer
