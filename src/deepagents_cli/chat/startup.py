"""Show the first prompt before anything large is imported, and keep what is typed until it can be read."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

try:
    import termios
except ImportError:  # Windows
    termios = None

_PROMPT = "› "
_PLAIN_PROMPT = "> "


class FirstPrompt:
    """Show the prompt, with the terminal in raw mode and without echo; leave it as it was found.

    Within another one, or where there is no such terminal, nothing is done.
    """

    def __init__(self) -> None:
        self._before: list[Any] | None = None

    def __enter__(self) -> FirstPrompt:
        if termios is None or is_plain() or not (sys.stdin.isatty() and sys.stdout.isatty()):
            return self
        descriptor = sys.stdin.fileno()
        attributes = termios.tcgetattr(descriptor)
        if not attributes[3] & termios.ICANON:
            return self
        self._before = termios.tcgetattr(descriptor)
        attributes[0] &= ~(termios.IXON | termios.IXOFF | termios.ICRNL | termios.INLCR | termios.IGNCR)
        attributes[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG)
        attributes[6][termios.VMIN] = 1
        # At once: what was typed before is kept, and read by the input line.
        termios.tcsetattr(descriptor, termios.TCSANOW, attributes)
        sys.stdout.write(f"deepagents\n\n\r{prompt()}")
        sys.stdout.flush()
        return self

    def __exit__(self, *error: object) -> None:
        if termios is None or self._before is None:
            return
        try:
            termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self._before)
        except termios.error:
            # The terminal is gone.
            return


def clear_prompt() -> None:
    """Remove the prompt, for what is drawn in its place."""
    sys.stdout.write("\r\x1b[J")
    sys.stdout.flush()


def prompt() -> str:
    """Return the mark before the input, in characters that the terminal's encoding has."""
    return _PROMPT if can_encode(_PROMPT) else _PLAIN_PROMPT


def can_encode(text: str) -> bool:
    """Tell whether standard output has these characters."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def is_plain(environment: Mapping[str, str] = os.environ) -> bool:
    """Tell whether the terminal cannot move its cursor, so that lines are written one after the other."""
    return environment.get("TERM", "dumb") in ("", "dumb", "unknown")
