"""Split text into lines, which end at `\\n`, `\\r\\n` or `\\r`, and nowhere else."""

from __future__ import annotations

import re

from deepagents._text.endings import to_lf
from deepagents._values import valueclass
from deepagents.errors import BackendError

# Not `str.splitlines`: it also ends lines at form feeds and other characters, and numbers would differ.
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")


@valueclass
class Window:
    """Some lines of a text, ended by `\\n`. Lines count from 1, offsets from 0.

    Without `start` there is no window: the text is blank and stands here whole, or no lines were asked for.
    """

    text: str
    start: int | None = None
    end: int | None = None
    total: int | None = None
    next_offset: int | None = None
    no_lines_requested: bool = False


def split_lines(text: str) -> list[str]:
    """Return the lines without their ends; an end at the very end opens no further line."""
    lines = to_lf(text).split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def split_keeping_ends(text: str) -> list[str]:
    """Return the lines with their ends; joined, they are the text."""
    return _LINE.findall(text)


def is_blank(text: str) -> bool:
    """Return whether a text is empty or nothing but whitespace."""
    return not text or text.isspace()


def window(content: str, offset: int, limit: int) -> Window:
    """Return `limit` lines from line `offset`, counted from 0. A blank text comes back as it is.

    Raises:
        BackendError: `invalid_argument`, when the text has no line at `offset`.
    """
    if is_blank(content):
        return Window(content)
    if limit <= 0:
        return Window("", no_lines_requested=True)
    offset = max(offset, 0)
    text = to_lf(content)
    ended = text.endswith("\n")
    total = text.count("\n") + (not ended)
    if offset >= total:
        raise past_end(offset, total)
    end = min(offset + limit, total)
    shown = "\n".join(text.split("\n", end)[offset:end])
    if end < total or ended:
        shown += "\n"
    return Window(shown, offset + 1, end, total, end if end < total else None)


def past_end(offset: int, total: int) -> BackendError:
    """Make the error for a page that begins behind the last line."""
    return BackendError("invalid_argument", f"Line offset {offset} exceeds file length ({total} lines)")
