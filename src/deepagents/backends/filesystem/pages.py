"""Read a page of an open text file without reading what comes after it."""

from __future__ import annotations

import os
import time
from bisect import bisect_left

from deepagents._text import Window, format_size, past_end, window
from deepagents._values import field, recordclass
from deepagents.backends._bytes import BINARY_HEAD, Blocks, after_lines, take_lines
from deepagents.errors import BackendError

# Up to 1 MB, reading all costs next to nothing and also gives the number of lines.
_READ_WHOLE = 1 << 20
# Nothing stops a read in its thread when the caller has given up, so it must end by itself.
_MOST_SKIPPED = 1 << 30


def read_all(fd: int) -> bytes:
    """Read an open file to its end."""
    parts: list[bytes] = []
    while part := os.read(fd, 1 << 20):
        parts.append(part)
    return b"".join(parts)


def read_first(fd: int, most: int) -> bytes:
    """Read the first bytes of an open file: so many, unless it has fewer."""
    parts: list[bytes] = []
    while most > 0 and (part := os.read(fd, most)):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


def read_head(fd: int) -> bytes:
    """Read the first bytes of a file and go back to its start."""
    head = os.read(fd, BINARY_HEAD)
    os.lseek(fd, 0, os.SEEK_SET)
    return head


def read_page(fd: int, offset: int, limit: int, most: int, marks: LineMarks) -> Window:
    """Read `limit` lines from line `offset`, at most `most` bytes of them; `marks` make the next page cheap.

    Raises:
        BackendError: `invalid_argument` past the end of the file, `too_large` for a page that is.
    """
    size = os.fstat(fd).st_size
    if size <= _READ_WHOLE:
        return window(_decode(read_all(fd)), offset, limit)
    if limit <= 0:
        return Window("", no_lines_requested=True)
    stamp, trail = marks.trail_of(fd)
    try:
        return _read_large(fd, max(offset, 0), min(limit, size), most, trail)
    finally:
        marks.keep(fd, stamp, trail)


def _read_large(fd: int, offset: int, limit: int, most: int, trail: Trail) -> Window:
    """Read a page in blocks, and mark on the way where lines start."""
    passed, position = trail.before(offset)
    blocks = Blocks(fd, position)
    data, more = take_lines(_skip(blocks, passed, offset, trail), blocks, limit, most)
    if len(data) > most:
        raise BackendError(
            "too_large",
            f"Lines {offset + 1} to {offset + limit} hold more than {format_size(most)}. "
            "Ask for fewer lines, or find text with grep.",
        )
    end = offset + data.count(b"\n") + (not data.endswith(b"\n"))
    return Window(_decode(data), offset + 1, end, None if more else end, end if more else None)


def _skip(blocks: Blocks, passed: int, offset: int, trail: Trail) -> bytes:
    """Go from behind `passed` lines to the start of a line, and return what was read beyond it."""
    last = b""
    give_up_at, size = blocks.position + _MOST_SKIPPED, os.fstat(blocks.fd).st_size
    for block in blocks:
        lines = block.count(b"\n")
        if passed + lines >= offset:
            rest = block[after_lines(block, offset - passed) :] or next(blocks, b"")
            if rest:
                return rest
        passed, last = passed + lines, block
        # No mark at the very end: what is added to the file later may go on in its last line.
        if blocks.position < size:
            trail.add(passed, blocks.position)
        if blocks.position > give_up_at:
            raise BackendError(
                "too_large",
                f"The next {format_size(_MOST_SKIPPED)} of the file do not reach line {offset + 1}. "
                "Ask again to look further, or find text with grep.",
            )
    raise past_end(offset, passed + (not last.endswith(b"\n")))


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "replace")


_MOST_FILES = 64
_MOST_MARKS = 4096
# Some file systems count whole seconds, within which a change may leave the stamp as it was.
_SETTLED_AFTER_NS = 1_000_000_000

Stamp = tuple[int, int, int, int, int]
"""Which file, and which state of it."""


@recordclass
class Trail:
    """Positions in one state of a file, each with the number of lines that end before it."""

    lines: list[int] = field(default_factory=lambda: [0])
    positions: list[int] = field(default_factory=lambda: [0])

    def before(self, line: int) -> tuple[int, int]:
        """Return the line count and position of the last mark before the start of a line, counted from 0."""
        at = max(bisect_left(self.lines, line) - 1, 0)
        return self.lines[at], self.positions[at]

    def add(self, line: int, position: int) -> None:
        """Add a mark, unless it is before the last one; of very many, every other is dropped."""
        if position <= self.positions[-1]:
            return
        self.lines.append(line)
        self.positions.append(position)
        if len(self.lines) > _MOST_MARKS:
            # Coarser marks cost at most a few more blocks of skipping; the memory stays bounded.
            del self.lines[1::2], self.positions[1::2]


@recordclass
class LineMarks:
    """The trails of the files that were read last; a file that changed starts a new one."""

    _trails: dict[Stamp, Trail] = field(default_factory=dict[Stamp, Trail])

    def trail_of(self, fd: int) -> tuple[Stamp, Trail]:
        """Return a copy of what is known about an open file."""
        stamp = _stamp(os.fstat(fd))
        known = self._trails.get(stamp)
        # A copy, because other threads may read the same file at the same time.
        return stamp, Trail(known.lines.copy(), known.positions.copy()) if known else Trail()

    def keep(self, fd: int, stamp: Stamp, trail: Trail) -> None:
        """Remember a trail, unless the file changed meanwhile, or might have without a trace in its time."""
        about = os.fstat(fd)
        if _stamp(about) != stamp or about.st_mtime_ns > time.time_ns() - _SETTLED_AFTER_NS:
            return
        if len(self._trails) >= _MOST_FILES:
            self._trails.clear()
        self._trails[stamp] = trail


def _stamp(about: os.stat_result) -> Stamp:
    return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns
