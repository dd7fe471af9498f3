"""Read a page of an open text file without reading what comes after it."""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field

from deepagents._text import Window, format_size, window
from deepagents.backends._bytes import BINARY_HEAD, after_lines, lf_bytes
from deepagents.errors import BackendError

# Up to 1 MB, reading all costs next to nothing and also gives the number of lines.
_READ_WHOLE = 1 << 20
_BLOCK = 1 << 18
# Nothing stops a read in its thread when the caller has given up, so it must end by itself.
_MOST_SKIPPED = 1 << 30


def read_all(fd: int) -> bytes:
    """Read an open file to its end."""
    parts: list[bytes] = []
    while part := os.read(fd, 1 << 20):
        parts.append(part)
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
        return _Pager(fd, most, trail).page(max(offset, 0), min(limit, size))
    finally:
        marks.keep(fd, stamp, trail)


class _Pager:
    """Reads pages of a large file in blocks, and marks on the way where lines start."""

    def __init__(self, fd: int, most: int, trail: Trail) -> None:
        self._blocks = _Blocks(fd)
        self._most = most
        self._trail = trail
        self._size = os.fstat(fd).st_size

    def page(self, offset: int, limit: int) -> Window:
        first = self._skip(offset)
        parts: list[bytes] = []
        taken = size = 0
        block = first
        while block is not None:
            cut = after_lines(block, limit - taken)
            parts.append(block[:cut])
            taken += parts[-1].count(b"\n")
            size += cut
            # Asked block by block: one line can be gigabytes, and would be in memory before a check at the
            # end.
            if size > self._most:
                raise self._too_large(offset, limit)
            if taken == limit:
                more = cut < len(block) or next(self._blocks, None) is not None
                return _window(b"".join(parts), offset, limit, more)
            block = next(self._blocks, None)
        return _window(b"".join(parts), offset, taken, more=False)

    def _skip(self, offset: int) -> bytes:
        """Go to the start of a line and return what was read beyond it."""
        passed, position = self._trail.before(offset)
        self._blocks.go_to(position)
        last = b""
        give_up_at = position + _MOST_SKIPPED
        for block in self._blocks:
            lines = block.count(b"\n")
            if passed + lines >= offset:
                rest = block[after_lines(block, offset - passed) :] or next(self._blocks, b"")
                if rest:
                    return rest
            passed, last = passed + lines, block
            # No mark at the very end: what is added to the file later may go on in its last line.
            if self._blocks.position < self._size:
                self._trail.add(passed, self._blocks.position)
            if self._blocks.position > give_up_at:
                raise self._too_far(offset)
        total = passed + (not last.endswith(b"\n"))
        raise BackendError("invalid_argument", f"Line offset {offset} exceeds file length ({total} lines)")

    def _too_far(self, offset: int) -> BackendError:
        return BackendError(
            "too_large",
            f"The next {format_size(_MOST_SKIPPED)} of the file do not reach line {offset + 1}. Ask again to "
            "look further, or find text with grep.",
        )

    def _too_large(self, offset: int, limit: int) -> BackendError:
        return BackendError(
            "too_large",
            f"Lines {offset + 1} to {offset + limit} hold more than {format_size(self._most)}. "
            "Ask for fewer lines, or find text with grep.",
        )


def _window(data: bytes, offset: int, lines: int, more: bool) -> Window:
    end = offset + lines + (not more and not data.endswith(b"\n"))
    return Window(_decode(data), offset + 1, end, None if more else end, end if more else None)


class _Blocks(Iterator[bytes]):
    """Reads block by block, with every line ended by `\\n`; `position` is the offset of what comes next."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._held = b""
        self.position = 0

    def go_to(self, position: int) -> None:
        """Go on from a position that another pass came by."""
        os.lseek(self._fd, position, os.SEEK_SET)
        self._held, self.position = b"", position

    def __next__(self) -> bytes:
        while raw := os.read(self._fd, _BLOCK):
            data = self._held + raw
            # A `\r` at the end of a block may be the first half of a line end, so it waits for the next
            # block.
            self._held = b"\r" if data.endswith(b"\r") else b""
            data = data[: len(data) - len(self._held)]
            self.position += len(data)
            if data:
                return lf_bytes(data)
        if not self._held:
            raise StopIteration
        self._held = b""
        self.position += 1
        return b"\n"


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "replace")


_MOST_FILES = 64
_MOST_MARKS = 4096
# Some file systems count whole seconds, within which a change may leave the stamp as it was.
_SETTLED_AFTER_NS = 1_000_000_000

Stamp = tuple[int, int, int, int, int]
"""Which file, and which state of it."""


@dataclass(slots=True)
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


@dataclass(slots=True)
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
