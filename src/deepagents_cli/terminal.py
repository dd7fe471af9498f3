"""Prepare text for a terminal: clean it, cut it to the width, colour it where there are colours."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from io import TextIOWrapper
from select import select
from typing import IO, TYPE_CHECKING, Final
from unicodedata import category

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

WIDTH_IN_A_PIPE: Final = 120
READING: Final = 0.3
"""Seconds that a question stands on the screen before a line answers it."""

_STEERING: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories that can move, hide or reorder what is shown: control, format, surrogates, lines."""
_HARMLESS: Final = frozenset("\n\t\u200c\u200d")
"""Newline and tab, and the joiners that scripts and emoji are written with."""


def make_console(file: IO[str], environment: Mapping[str, str] = os.environ) -> Console:
    """Make a console on a stream; plain text where there is no terminal or `NO_COLOR` is set.

    What the stream's encoding lacks is written as an escape.
    """
    from rich.console import Console

    class PipeConsole(Console):
        def on_broken_pipe(self) -> None:
            # Rich would end the program with code 1.
            raise BrokenPipeError

    _escape_unknown(file)
    plain = bool(environment.get("NO_COLOR"))
    return PipeConsole(
        file=file,
        highlight=False,
        markup=False,
        emoji=False,
        color_system=None if plain else "auto",
        width=None if file.isatty() else WIDTH_IN_A_PIPE,
    )


def _escape_unknown(file: IO[str]) -> None:
    if isinstance(file, TextIOWrapper):
        # A character that a terminal's encoding lacks would otherwise end the program.
        file.reconfigure(errors="backslashreplace")


def take_typed_ahead(quiet: float = 0.0) -> tuple[Sequence[str], str]:
    """Take what was typed before a question could be read, so that it does not answer it.

    Returns the lines, and the beginning of one: what comes next belongs to that. Waits until nothing has been
    typed for `quiet` seconds.
    """
    if sys.platform == "win32" or not sys.stdin.isatty():
        return (), ""
    import termios

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    raw = termios.tcgetattr(descriptor)
    # A terminal that edits lines gives none out before it is ended.
    raw[3] &= ~termios.ICANON
    typed = b""
    termios.tcsetattr(descriptor, termios.TCSANOW, raw)
    try:
        while select([descriptor], (), (), quiet)[0] and (piece := os.read(descriptor, 1024)):
            typed += piece
    finally:
        termios.tcsetattr(descriptor, termios.TCSANOW, before)
    *lines, begun = typed.decode("utf-8", "replace").split("\n")
    return lines, begun


def clean(text: str) -> str:
    """Make visible whatever in a text could steer the terminal, hide text or change its order.

    All that a model, a tool or a file gives passes here before it is shown; other modules make no `Text` of
    their own.
    """
    text = text.replace("\r\n", "\n")
    # Most text is ASCII lines, and asking for the category of each of its characters would take seconds for
    # a large file.
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


def cut(text: str, most: int) -> str:
    """Cut a text at so many characters, and count the others."""
    left = len(text) - most
    return f"{text[:most]}... ({left:,} more characters)" if left > 0 else text


def style_text(text: str, style: str = "") -> Text:
    """Return cleaned text for a console."""
    from rich.text import Text

    return Text(clean(text), style=style)
