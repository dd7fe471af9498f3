"""Prepare text for people: clean it, join its lines, cut it."""

from __future__ import annotations

import re
from typing import Final
from unicodedata import category

_STEERING: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories that can move, hide or reorder what is shown: control, format, surrogates, lines."""
COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
"""What a terminal takes for colours and styles, and nothing else that steers it."""
_HARMLESS: Final = frozenset("\n\t\u200c\u200d")
"""Newline and tab, and the joiners that scripts and emoji are written with."""


def clean(text: str) -> str:
    """Make visible whatever in a text could steer the terminal, hide text or change its order.

    All that a model, a tool or a file gives passes here before it is shown; `style_text` alone makes a `Text`
    of rich.
    """
    text = text.replace("\r\n", "\n")
    # Most text is ASCII lines, and to look up each character would take seconds for a large file.
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(
        each if each in _HARMLESS or category(each) not in _STEERING else _escape(each) for each in text
    )


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def one_line(text: str) -> str:
    """Clean a text and join its lines."""
    return " ".join(clean(text).split())


def reason_of(error: Exception) -> str:
    """Say why a file is not read, in the words of the system where it has refused."""
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


def cut(text: str, most: int) -> str:
    """Cut a text at so many characters, and count the others."""
    left = len(text) - most
    return f"{text[:most]}... ({left:,} more characters)" if left > 0 else text


def without_colours(text: str) -> str:
    """Return a text of a terminal without its colours."""
    return COLOURS.sub("", text)


def last_written(line: str) -> str:
    """Return what a terminal shows of a line: a progress bar writes it again and again."""
    return line.rstrip("\r").rpartition("\r")[2]


def fence(text: str, language: str = "") -> str:
    """Put a text into a fence of Markdown that is longer than each in the text, which would end it."""
    longest = max((len(each) for each in re.findall("`+", text)), default=0)
    mark = "`" * max(longest + 1, 3)
    return f"{mark}{language}\n{text}\n{mark}"


def short_time(seconds: float) -> str:
    """Write a time in at most two units."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
