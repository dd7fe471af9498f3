"""Remember where some lines of large files start, so that the next page need not count from the top."""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from dataclasses import dataclass, field

_MOST_FILES = 64
_MOST_MARKS = 4096
_SETTLED_AFTER_NS = 1_000_000_000

Stamp = tuple[int, int, int, int, int]
"""Which file, and which state of it."""


@dataclass(slots=True)
class Trail:
    """Places in one state of a file: so many lines end before the byte at a position."""

    lines: list[int] = field(default_factory=lambda: [0])
    positions: list[int] = field(default_factory=lambda: [0])

    def before(self, line: int) -> tuple[int, int]:
        """Return the last place before the start of a line, counted from 0: its line count and position."""
        at = max(bisect_left(self.lines, line) - 1, 0)
        return self.lines[at], self.positions[at]

    def add(self, line: int, position: int) -> None:
        """Mark a place, unless it lies before the last one; of very many, every other is dropped."""
        if position <= self.positions[-1]:
            return
        self.lines.append(line)
        self.positions.append(position)
        if len(self.lines) > _MOST_MARKS:
            del self.lines[1::2], self.positions[1::2]


@dataclass(slots=True)
class LineMarks:
    """The trails of the files that were read last; a file that changed starts a new one."""

    _trails: dict[Stamp, Trail] = field(default_factory=dict[Stamp, Trail])

    def trail_of(self, fd: int) -> tuple[Stamp, Trail]:
        """Return a copy of what is known about an open file."""
        stamp = _stamp(os.fstat(fd))
        known = self._trails.get(stamp)
        return stamp, Trail(known.lines.copy(), known.positions.copy()) if known else Trail()

    def keep(self, fd: int, stamp: Stamp, trail: Trail) -> None:
        """Remember a trail, unless the file changed meanwhile, or so lately that it might without a trace."""
        about = os.fstat(fd)
        if _stamp(about) != stamp or about.st_mtime_ns > time.time_ns() - _SETTLED_AFTER_NS:
            return
        if len(self._trails) >= _MOST_FILES:
            self._trails.clear()
        self._trails[stamp] = trail


def _stamp(about: os.stat_result) -> Stamp:
    return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns
