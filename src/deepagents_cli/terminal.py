"""Text for a terminal: cleaned of what could steer it, cut to its width, in colour where it has any."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import IO, Final

from rich.console import Console

WIDTH_IN_A_PIPE: Final = 120

_UNSAFE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def make_console(file: IO[str], environment: Mapping[str, str] = os.environ) -> Console:
    """Make a console on a stream; plain text where there is no terminal or `NO_COLOR` is set."""
    plain = bool(environment.get("NO_COLOR"))
    return Console(
        file=file,
        highlight=False,
        markup=False,
        emoji=False,
        color_system=None if plain else "auto",
        width=None if file.isatty() else WIDTH_IN_A_PIPE,
    )


def clean(text: str) -> str:
    """Make control and direction characters visible, so that no text steers the terminal."""
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """Join a text's lines."""
    return " ".join(clean(text).split())
