"""Take the terminal before anything large is imported: show the first prompt, and keep what is typed."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

try:
    import fcntl
    import termios
except ImportError:  # Windows
    fcntl = termios = None

_PROMPT = "› "
_PLAIN_PROMPT = "> "
_LONGEST_SETTINGS = 1 << 18


class FirstPrompt:
    """Show the prompt, with the terminal in raw mode and without echo; leave it as it was found.

    Within another one, or where there is no such terminal, nothing is done. `typed` counts the bytes that
    had been typed before: Enter among them is a line feed.
    """

    def __init__(self) -> None:
        self.typed = 0
        self._before: list[Any] | None = None

    def __enter__(self) -> FirstPrompt:
        if termios is None or fcntl is None or is_plain() or not (sys.stdin.isatty() and sys.stdout.isatty()):
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
        self.typed = int.from_bytes(fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)), sys.byteorder)
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


class Starting:
    """Say at a terminal that the program starts, as long as its packages are imported."""

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown and sys.stdout.isatty() and not is_plain() and not os.environ.get("NO_COLOR")

    def __enter__(self) -> None:
        if self._shown:
            sys.stdout.write("\x1b[2mstarting\x1b[0m")
            sys.stdout.flush()

    def __exit__(self, *error: object) -> None:
        if self._shown:
            # The line alone: some terminals keep in their history what is erased with the whole screen.
            sys.stdout.write("\r\x1b[K")
            sys.stdout.flush()


def clear_prompt() -> None:
    """Remove the prompt, for what is drawn in its place."""
    sys.stdout.write("\r\x1b[J")
    sys.stdout.flush()


def prompt() -> str:
    """Return the mark before the input, in characters that the terminal's encoding has."""
    return _PROMPT if can_encode(_PROMPT) else _PLAIN_PROMPT


def can_encode(text: str) -> bool:
    """Tell whether standard output has these characters, and the locale does not say that it has none."""
    if not text.isascii() and is_ascii(os.environ):
        return False
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def is_ascii(environment: Mapping[str, str]) -> bool:
    """Tell whether the locale is set to one without further characters, whatever Python makes of it."""
    # Python sets this one by itself where the locale is C, and writes UTF-8 then.
    kind = environment.get("LC_CTYPE", "")
    kind = "" if kind == "C.UTF-8" else kind
    return (environment.get("LC_ALL") or kind or environment.get("LANG")) in ("C", "POSIX")


def is_plain() -> bool:
    """Tell whether to write line after line: for a terminal without a cursor, or by the settings."""
    return os.environ.get("TERM", "dumb") in ("", "dumb", "unknown") or _is_plain_set()


def _is_plain_set() -> bool:
    # The settings are read as a whole later; most have no such word, and nothing is imported for them here.
    path = os.environ.get("DEEPAGENTS_SETTINGS") or "~/.deepagents/settings.toml"
    path = f"{os.environ.get('HOME', '')}{path[1:]}" if path.startswith("~/") else path
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        try:
            text = os.read(descriptor, _LONGEST_SETTINGS)
        finally:
            os.close(descriptor)
        if b"plain" not in text:
            return False
        import tomllib

        return tomllib.loads(text.decode()).get("plain") is True
    except (OSError, ValueError):
        return False
