"""Show the first prompt before anything large is imported, and keep what is typed until it can be read."""

from __future__ import annotations

import os
import sys
import termios
from collections.abc import Mapping, Sequence
from typing import Any, Final

PROMPT: Final = "› "
PLAIN_PROMPT: Final = "> "


class RawTerminal:
    """Hold the terminal in raw mode without echo, and leave it as it was found."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._before: Sequence[Any] = termios.tcgetattr(descriptor)

    def __enter__(self) -> RawTerminal:
        attributes = termios.tcgetattr(self._descriptor)
        attributes[0] &= ~(termios.IXON | termios.IXOFF | termios.ICRNL | termios.INLCR | termios.IGNCR)
        attributes[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG)
        attributes[6][termios.VMIN] = 1
        # TCSANOW keeps what was typed before; it is read by the input line.
        termios.tcsetattr(self._descriptor, termios.TCSANOW, attributes)
        return self

    def __exit__(self, *error: object) -> None:
        termios.tcsetattr(self._descriptor, termios.TCSADRAIN, list(self._before))


def paint_prompt(directory: str) -> None:
    """Paint what the input line will look like, with the cursor where typing begins."""
    title = f"deepagents · {directory}" if can_encode("·›") else f"deepagents {directory}"
    sys.stdout.write(f"{title}\n\n\r{prompt()}")
    sys.stdout.flush()


def prompt() -> str:
    """Return the mark before the input, in characters that the terminal's encoding has."""
    return PROMPT if can_encode(PROMPT) else PLAIN_PROMPT


def can_encode(text: str) -> bool:
    """Tell whether standard output has these characters."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def is_plain(*, asked: bool, environment: Mapping[str, str] = os.environ) -> bool:
    """Tell whether to write line after line: as asked, or because the terminal cannot move its cursor."""
    return asked or environment.get("TERM", "dumb") in ("", "dumb", "unknown")
