"""Write to a terminal and read from it: colours where there are any, and what was typed too early."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping, Sequence
from io import TextIOWrapper
from select import select
from typing import IO, TYPE_CHECKING, Final

from deepagents_cli.text import clean

try:
    import termios
except ImportError:  # Windows
    termios = None

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

WIDTH_IN_A_PIPE: Final = 120
READING: Final = 0.3
"""Seconds that a question stands on the screen before a line answers it."""

_AS_FOUND = b"\x1b[?2004l\x1b[?1004l\x1b[?25h\x1b[0m\r\n"
"""Ends bracketed paste and reports of the focus; shows the cursor, without colour on a line of its own."""


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


def is_pipe(descriptor: int) -> bool:
    """Return whether another program writes to, or reads from, a descriptor."""
    kind = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)


def take_typed_ahead(quiet: float = 0.0) -> tuple[Sequence[str], str]:
    """Take what was typed before a question could be read, so that it does not answer it.

    Returns the lines, and the beginning of one: what comes next belongs to that. Waits until nothing has been
    typed for `quiet` seconds.
    """
    if termios is None or not sys.stdin.isatty():
        return (), ""
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


def style_text(text: str, style: str = "") -> Text:
    """Return cleaned text for a console."""
    from rich.text import Text

    return Text(clean(text), style=style)


def put_back(descriptor: int) -> None:
    """Have a terminal edit lines and echo again, where a conversation that is gone has left it raw."""
    if termios is None:
        return
    try:
        attributes = termios.tcgetattr(descriptor)
        # A shell that has the terminal by now lets Ctrl-C through.
        if not attributes[3] & (termios.ICANON | termios.ECHO | termios.ISIG):
            attributes[0] |= termios.ICRNL | termios.IXON
            attributes[3] |= termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG
            termios.tcsetattr(descriptor, termios.TCSANOW, attributes)
            os.write(descriptor, _AS_FOUND)
    except (termios.error, OSError):
        # The terminal is gone.
        return
