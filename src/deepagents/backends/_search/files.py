"""Read many files below one directory, in the order of their paths."""

from __future__ import annotations

import os
from types import TracebackType

from deepagents.backends._directory import Directory

_FIRST = 1 << 16
_BLOCK = 1 << 20


class Files:
    """Keeps the way to the last file open, because the next one is most often beside it."""

    def __init__(self, base: Directory) -> None:
        self._base = base
        self._way: list[tuple[str, Directory]] = []
        self._at = ""

    def __enter__(self) -> Files:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._back_to(0)

    def open(self, path: str) -> int:
        """Open a file by its path from the start, following no link."""
        above, _, name = path.rpartition("/")
        return self._directory(above).open(name)

    def stat(self, path: str) -> os.stat_result:
        """Describe a file, or a link itself."""
        above, _, name = path.rpartition("/")
        return self._directory(above).stat(name)

    def _directory(self, path: str) -> Directory:
        if path != self._at:
            self._go(path)
        return self._way[-1][1] if self._way else self._base

    def _go(self, path: str) -> None:
        names = path.split("/") if path else []
        shared = 0
        for (name, _), wanted in zip(self._way, names, strict=False):
            if name != wanted:
                break
            shared += 1
        self._back_to(shared)
        self._at = "\n"
        for name in names[shared:]:
            above = self._way[-1][1] if self._way else self._base
            self._way.append((name, above.child(name)))
        self._at = path

    def _back_to(self, depth: int) -> None:
        while len(self._way) > depth:
            self._way.pop()[1].close()


def read_at_most(fd: int, most: int) -> bytes | None:
    """Read a file whole, or return `None` when it holds more than `most` bytes."""
    first = os.read(fd, min(_FIRST, most + 1))
    if len(first) <= most and len(first) < _FIRST:
        return first
    if os.fstat(fd).st_size > most:
        return None
    parts, size = [first], len(first)
    while size <= most and (part := os.read(fd, _BLOCK)):
        parts.append(part)
        size += len(part)
    return b"".join(parts) if size <= most else None
