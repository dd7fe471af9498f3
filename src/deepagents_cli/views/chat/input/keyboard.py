"""Open the keyboard, the terminal and the history of what was typed, for prompt_toolkit."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from prompt_toolkit.data_structures import Size
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input.posix_utils import PosixStdinReader
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.output.vt100 import Vt100_Output

from deepagents_cli.views.conversation.notify import take_focus
from deepagents_cli.views.terminal.theme import take_answer

_LARGEST_HISTORY: Final = 1 << 20


def open_keyboard(
    found_background: Callable[[bool], None], found_focus: Callable[[bool], None], typed: int
) -> Vt100Input:
    """Read keys from standard input; what the terminal says about its background and focus is not a key.

    In the first bytes, as many as were `typed` before the terminal was raw, a line feed is the key Enter.
    """
    keyboard = Vt100Input(sys.stdin)
    keyboard.stdin_reader = _Reader(
        sys.stdin.fileno(), sys.stdin.encoding, found_background, found_focus, typed
    )
    return keyboard


class HeldOutput(Vt100_Output):
    """Keeps what is written while it is held, so that removing and drawing anew is one step for the eye."""

    held = False

    def write_now(self, sequence: str) -> None:
        """Write what is not drawn, such as a bell."""
        self.write_raw(sequence)
        self.flush()

    def flush(self) -> None:
        """Write what was kept, unless more belongs to it."""
        if not self.held:
            super().flush()


def open_output() -> HeldOutput:
    """Draw on standard output."""
    descriptor = sys.stdout.fileno()
    # Where the cursor is, is not asked: the answer could come late, and be taken for keys.
    return HeldOutput(sys.stdout, lambda: _size(descriptor), term=os.environ.get("TERM"), enable_cpr=False)


def _size(descriptor: int) -> Size:
    try:
        size = os.get_terminal_size(descriptor)
    except OSError:
        return Size(rows=24, columns=80)
    # A terminal may say that it has no size.
    return Size(rows=size.lines or 24, columns=size.columns or 80)


def open_history(state: Path, expand: Callable[[str], str]) -> History:
    """Open the history in the state directory; in memory where it cannot be written.

    It is stored expanded: in another session, the mark of a paste would stand for nothing.
    """
    file = state / "history"
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
        file.chmod(0o600)
        if file.stat().st_size > _LARGEST_HISTORY:
            _shorten(file)
    except OSError:
        return InMemoryHistory()
    return _ExpandedHistory(str(file), expand)


class _ExpandedHistory(FileHistory):
    def __init__(self, file: str, expand: Callable[[str], str]) -> None:
        super().__init__(file)
        self._expand = expand

    def store_string(self, string: str) -> None:
        # Who types goes on where there is no room for it.
        with suppress(OSError):
            super().store_string(self._expand(string))


def _shorten(file: Path) -> None:
    """Keep the newer half, from the beginning of an entry."""
    text = file.read_bytes()[-_LARGEST_HISTORY // 2 :]
    file.write_bytes(text[text.find(b"\n# ") + 1 :])


class _Reader(PosixStdinReader):
    """Reads what is typed, and hands on what the terminal says: whether it is dark, and has the focus."""

    def __init__(
        self,
        descriptor: int,
        encoding: str,
        found: Callable[[bool], None],
        found_focus: Callable[[bool], None],
        typed: int,
    ) -> None:
        # Bytes of another encoding, as a paste may bring, would be half characters that nothing takes.
        super().__init__(descriptor, errors="replace", encoding=encoding)
        self._found = found
        self._found_focus = found_focus
        self._held = ""
        self._early = typed

    def read(self, count: int = 1024) -> str:
        """Return what was typed."""
        more = super().read(count)
        if self._early > 0:
            early, more = more[: self._early], more[self._early :]
            self._early -= len(early.encode())
            more = early.replace("\n", "\r") + more
        typed, dark, self._held = take_answer(self._held + more)
        if dark is not None:
            self._found(dark)
        typed, has_focus, held = take_focus(typed)
        self._held += held
        if has_focus is not None:
            self._found_focus(has_focus)
        return typed
