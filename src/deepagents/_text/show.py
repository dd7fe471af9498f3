"""Make text ready for a reader: number it, cut it short, format sizes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from deepagents._text.lines import split_lines

MAX_LINE_LENGTH: Final = 5000
_HEAD_LINES = 10
_TAIL_LINES = 5
_PREVIEW_LINE_LENGTH = 1000
_CUT = "\n... [the rest was cut]"
# Everything that ends a line somewhere, steers a terminal, turns the direction of text or cannot be encoded.
_UNSAFE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def number_lines(text: str, start: int = 1) -> str:
    """Number the lines as `cat -n` does. A very long line goes on in rows numbered `N.1`, `N.2` and so on."""
    return "\n".join(
        f"{marker:>6}\t{row}"
        for number, line in enumerate(split_lines(text), start)
        for marker, row in _rows(number, line)
    )


def _rows(number: int, line: str) -> Iterator[tuple[str, str]]:
    yield str(number), line[:MAX_LINE_LENGTH]
    for part, at in enumerate(range(MAX_LINE_LENGTH, len(line), MAX_LINE_LENGTH), 1):
        yield f"{number}.{part}", line[at : at + MAX_LINE_LENGTH]


def preview(text: str) -> str:
    """Return the first 10 and the last 5 lines, each cut to 1,000 characters, and say what was left out."""
    lines = split_lines(text)
    left_out = len(lines) - _HEAD_LINES - _TAIL_LINES
    if left_out > 0:
        marker = f"... [{left_out} lines truncated] ..."
        lines = [*lines[:_HEAD_LINES], marker, *lines[-_TAIL_LINES:]]
    return "\n".join(cut_line(line, _PREVIEW_LINE_LENGTH) for line in lines)


def cut_line(line: str, most: int) -> str:
    """Cut a line to so many characters, and say how many were cut."""
    left_out = len(line) - most
    return f"{line[:most]} ... [{left_out} characters cut]" if left_out > 0 else line


def truncate(text: str, limit: int, note: str = _CUT) -> str:
    """Cut a text so that it and the note about the cut have at most `limit` characters."""
    if len(text) <= limit:
        return text
    return text[: max(limit - len(note), 0)] + note[: max(limit, 0)]


def escape_controls(text: str) -> str:
    """Return a text in which nothing can pass for a further line: control characters as `\\n`, `\\x1b`."""
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def describe_exception(error: BaseException) -> str:
    """Return the kind of an error and its text, if it has any."""
    text = ""
    # `__str__` of a foreign exception may itself raise, and must not hide the error.
    with suppress(Exception):
        text = str(error)
    return f"{type(error).__name__}: {text}".rstrip(": ")


def format_size(size: int) -> str:
    """Write a number of bytes for people: `512 B`, `1.5 kB`, `20.0 MB`."""
    if size < 1000:
        return f"{size} B"
    value = size / 1000
    for unit in ("kB", "MB", "GB"):
        if value < 999.95:
            return f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"
