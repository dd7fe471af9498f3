"""Cut Markdown, as it arrives in pieces, into blocks that are finished and one that is still written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from deepagents._values import valueclass

_FENCE: Final = re.compile(r" {0,3}(?P<mark>`{3,}(?!.*`)|~{3,})\s*(?P<language>.*?)\s*\Z")
_INNER_FENCE: Final = re.compile(r"\s*(?P<mark>`{3,}(?!.*`)|~{3,})")
_ITEM: Final = re.compile(r"\s{0,3}(?:[-*+]|\d{1,9}[.)])\s")
_TABLE: Final = re.compile(r"\s{0,3}\|?[\s:|-]*-[\s:|-]*")
_LONG_CODE: Final = 12
"""Lines: to colour one takes half a millisecond, and keys wait meanwhile."""
_LONG_LIST: Final = 30


@valueclass
class Piece:
    """A block of Markdown, or of code in a language; `continues` code whose earlier lines were given.

    `language` is all that stands behind the mark of the fence.
    """

    text: str
    language: str | None = None
    continues: bool = False


class MarkdownStream:
    """Takes text, and gives back each block as soon as nothing can change it any more.

    Code is given in parts, so that long code goes to the scrollback while it is written. A list stays whole
    unless it is long, and so does a fence within it.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._partial = ""
        self._fence: str | None = None
        self._language = ""
        self._given = False
        self._inner: str | None = None

    def feed(self, text: str) -> list[Piece]:
        """Take a text and return what it finished."""
        *lines, self._partial = (self._partial + text).split("\n")
        return [piece for line in lines for piece in self._line(line.removesuffix("\r"))]

    def finish(self) -> list[Piece]:
        """Return what is left, and begin anew."""
        pieces = self.feed("\n") if self._partial else []
        pieces += self._cut()
        self._lines = []
        self._fence = self._inner = None
        self._given = False
        return pieces

    def open_piece(self, lines: int) -> Piece | None:
        """Return the end of the block that is being written, at most so many lines of it."""
        text = [*self._lines, *([self._partial] if self._partial else [])]
        if not any(text):
            return None
        if len(text) > max(lines, 2) and self._fence is None and _TABLE.fullmatch(text[1]):
            # Rows are a table only below its head.
            text = [*text[:2], *text[2 - max(lines, 3) :]]
        else:
            text = text[-lines:]
        # A line may be of any length, and only its end is on the screen.
        tail = "\n".join(text)[-200 * lines :]
        return Piece(tail, self._language if self._fence else None, self._given)

    def _line(self, line: str) -> Iterator[Piece]:
        if self._fence is not None:
            yield from self._line_of_code(line)
        elif self._inner is None and (found := _FENCE.match(line)) and not self._in_list(line):
            yield from self._cut()
            self._fence, self._language = found["mark"], found["language"]
        else:
            yield from self._line_of_text(line)

    def _line_of_code(self, line: str) -> Iterator[Piece]:
        assert self._fence is not None
        mark = line.strip()
        if mark.startswith(self._fence) and not mark.strip(self._fence[0]):
            yield from self._cut()
            self._lines = []
            self._fence = None
            self._given = False
            return
        # Cut before a line that begins anew: colours depend on what stands before.
        begins = bool(line) and not line[0].isspace()
        if len(self._lines) >= _LONG_CODE and (begins or len(self._lines) >= 2 * _LONG_CODE):
            yield from self._cut()
            self._given = True
        self._lines.append(line)

    def _line_of_text(self, line: str) -> Iterator[Piece]:
        if self._inner is None and self._ends_before(line):
            yield from self._cut()
        if not line.strip() and not self._lines:
            return
        self._lines.append(line)
        if (found := _INNER_FENCE.match(line)) and self._in_list(line):
            self._inner = None if self._inner else found["mark"]
        elif line.startswith("#"):
            yield from self._cut()

    def _ends_before(self, line: str) -> bool:
        """Tell whether what stands so far is a whole block before this line."""
        if not any(self._lines):
            return False
        item = _ITEM.match(line)
        if _ITEM.match(self._lines[0]):
            long = len(self._lines) >= _LONG_LIST and item is not None and not line[0].isspace()
            leaves = not self._lines[-1] and bool(line) and not line[0].isspace() and item is None
            return long or leaves
        return not line.strip() or line.startswith("#")

    def _in_list(self, line: str) -> bool:
        """Tell whether this line may belong to a list that is open."""
        first = next((each for each in self._lines if each), "")
        return bool(_ITEM.match(first)) and not (line and _FENCE.match(line) and not line[0].isspace())

    def _cut(self) -> list[Piece]:
        lines, self._lines = self._lines, []
        while self._fence is not None and lines and not lines[-1].strip():
            # Empty lines between two parts of code begin the second one.
            self._lines.insert(0, lines.pop())
        text = "\n".join(lines)
        text = text.strip("\n") if self._fence is None else text
        if not text.strip() and not (self._fence and self._language and not self._given):
            return []
        return [Piece(text, self._language if self._fence is not None else None, self._given)]
