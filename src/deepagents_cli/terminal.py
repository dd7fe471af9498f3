"""Text for a terminal: cleaned of what could steer it, cut to its width, in colour where it has any."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from io import TextIOWrapper
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.console import Console

WIDTH_IN_A_PIPE: Final = 120

_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]"
)


def make_console(file: IO[str], environment: Mapping[str, str] = os.environ) -> Console:
    """Make a console on a stream; plain text where there is no terminal or `NO_COLOR` is set.

    What the stream's encoding lacks is written as an escape.
    """
    from rich.console import Console

    _escape_the_unknown(file)
    plain = bool(environment.get("NO_COLOR"))
    return Console(
        file=file,
        highlight=False,
        markup=False,
        emoji=False,
        color_system=None if plain else "auto",
        width=None if file.isatty() else WIDTH_IN_A_PIPE,
    )


def _escape_the_unknown(file: IO[str]) -> None:
    if isinstance(file, TextIOWrapper):
        file.reconfigure(errors="backslashreplace")


def forget_typed() -> None:
    """Drop what was typed before a question could be read, so that it does not answer it."""
    if sys.platform != "win32" and sys.stdin.isatty():
        import termios

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def clean(text: str) -> str:
    """Make control, direction and half characters visible, so that no text steers the terminal."""
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """Join a text's lines."""
    return " ".join(clean(text).split())
