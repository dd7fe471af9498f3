"""Keep the beginning and the end of what a command prints, in bounded memory."""

from __future__ import annotations

import codecs
from dataclasses import dataclass, field

_LONGEST_HELD_LINE = 8192
STDERR_PREFIX = "[stderr] "


@dataclass(slots=True)
class Bounded:
    """Text up to `limit` bytes: whole when it fits, else its first and its last half."""

    limit: int
    left_out: int = 0
    _head: bytearray = field(default_factory=bytearray)
    _tail: bytearray = field(default_factory=bytearray)

    def add(self, text: str) -> None:
        """Take some text."""
        data = text.encode()
        room = self.limit // 2 - len(self._head)
        self._head += data[:room]
        self._tail += data[max(room, 0) :]
        if len(self._tail) > 2 * self.limit:
            self._forget(len(self._tail) - self.limit)

    def close(self) -> str:
        """Return what is left, with a line where something is missing."""
        size = len(self._head) + len(self._tail)
        if not self.left_out and size <= self.limit:
            return (self._head + self._tail).decode("utf-8", "ignore")
        self._forget(max(len(self._tail) - (self.limit - len(self._head)), 0))
        head, tail = self._head.decode("utf-8", "ignore"), self._tail.decode("utf-8", "ignore")
        return f"{head}\n... [{self.left_out} bytes left out] ...\n{tail}"

    def _forget(self, count: int) -> None:
        del self._tail[:count]
        self.left_out += count


@dataclass(slots=True)
class Stream:
    """One stream of a command, decoded and prefixed line by line."""

    prefix: str
    _decoder: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace")
    )
    _held: str = ""
    _inside_line: bool = False

    def feed(self, data: bytes, *, final: bool = False) -> str:
        """Return the text that is ready: whole lines, and at the end or in a very long line all there is."""
        lines = (self._held + self._decoder.decode(data, final)).split("\n")
        self._held = lines.pop()
        ready = "".join(self._start() + self._end(line) for line in lines)
        if self._held and (final or len(self._held) > _LONGEST_HELD_LINE):
            ready += self._start() + self._held
            self._held, self._inside_line = "", True
        return ready

    def _start(self) -> str:
        return "" if self._inside_line else self.prefix

    def _end(self, line: str) -> str:
        self._inside_line = False
        return f"{line}\n"
