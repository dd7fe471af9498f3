"""Text for a terminal: cleaned of what could steer it, cut to its width, in colour where it has any."""

from __future__ import annotations

import re
from typing import IO, Final

from rich.console import Console

WIDTH_IN_A_PIPE: Final = 120

_UNSAFE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def make_console(file: IO[str]) -> Console:
    """Make a console on a stream; no colours where there is no terminal or `NO_COLOR` is set."""
    console = Console(file=file, highlight=False, markup=False, emoji=False, soft_wrap=False)
    return (
        console
        if console.is_terminal
        else Console(file=file, highlight=False, markup=False, emoji=False, width=WIDTH_IN_A_PIPE)
    )


def clean(text: str) -> str:
    """Make control and direction characters visible, so that no text steers the terminal."""
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """Join a text's lines."""
    return " ".join(clean(text).split())
