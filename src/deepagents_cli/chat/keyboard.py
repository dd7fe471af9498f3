"""Open the keyboard and the terminal for prompt_toolkit."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from prompt_toolkit.input.posix_utils import PosixStdinReader
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.output.vt100 import Vt100_Output

from deepagents_cli.chat.theme import take_answer


def open_keyboard(found_background: Callable[[bool], None]) -> Vt100Input:
    """Read keys from standard input; the terminal's answer about its background is no key."""
    keyboard = Vt100Input(sys.stdin)
    keyboard.stdin_reader = _Reader(sys.stdin.fileno(), sys.stdin.encoding, found_background)
    return keyboard


def open_output() -> Vt100_Output:
    """Draw on standard output."""
    output = Vt100_Output.from_pty(sys.stdout, term=os.environ.get("TERM"))
    # Where the cursor is, is not asked: the answer could come late, and be taken for keys.
    output.enable_cpr = False
    return output


class _Reader(PosixStdinReader):
    """Reads what is typed; `found` takes whether the background is dark, whenever the terminal says so."""

    def __init__(self, descriptor: int, encoding: str, found: Callable[[bool], None]) -> None:
        # Bytes of another encoding, as a paste may bring, would be half characters that nothing takes.
        super().__init__(descriptor, errors="replace", encoding=encoding)
        self._found = found
        self._held = ""

    def read(self, count: int = 1024) -> str:
        """Return what was typed."""
        typed, dark, self._held = take_answer(self._held + super().read(count))
        if dark is not None:
            self._found(dark)
        return typed
