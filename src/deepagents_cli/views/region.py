"""Draw what still changes as the last lines of a terminal, and take it away before others are written."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import IO, Final

_BETWEEN: Final = 0.1
"""Seconds between two drawings."""
STILL: Final = 0.3
"""Seconds without another width after which a window is no longer being dragged."""
_UNKNOWN: Final = os.terminal_size((80, 24))
"""The size of a terminal without a window, as in a container."""


class Region:
    """Draws by the event loop the lines that `lines` returns for a width, and a number of rows at most."""

    def __init__(self, out: IO[str], lines: Callable[[int, int], list[str]]) -> None:
        self._out = out
        self._lines = lines
        self._rows = 0
        self._columns: int = self._size().columns
        self._still_at = 0.0
        self._next: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Draw, and go on drawing."""
        self.erase()
        self._draw()
        self._next = asyncio.get_running_loop().call_later(_BETWEEN, self.start)

    def stop(self) -> None:
        """Draw no more."""
        self.erase()
        if self._next is not None:
            self._next.cancel()

    def erase(self) -> None:
        """Take away what was drawn."""
        if self._rows:
            up = f"\x1b[{self._rows - 1}A" if self._rows > 1 else ""
            self._put(f"\r{up}\x1b[J")
            self._rows = 0

    def _draw(self) -> None:
        size, now = self._size(), time.monotonic()
        if size.columns != self._columns:
            # A terminal that breaks its rows anew makes more of them than are erased, and keeps the rest.
            self._columns, self._still_at = size.columns, now + STILL
        # Some terminals keep what they erase, if it is the whole screen.
        most = max(size.lines - 3, 1) if now >= self._still_at else 1
        # A terminal breaks a line that fills its width, and then it is two.
        lines = self._lines(max(size.columns - 1, 10), most)
        self._put("\n".join(lines))
        self._rows = len(lines)

    def _size(self) -> os.terminal_size:
        # COLUMNS may have stayed as it was when the window was another.
        size = os.get_terminal_size(self._out.fileno())
        return size if all(size) else _UNKNOWN

    def _put(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()
