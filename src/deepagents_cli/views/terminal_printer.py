"""Show a run at a terminal: the answer as the conversation renders it, and a sign of life below it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from rich.console import Console

from deepagents.events import (
    CommandEnded,
    CommandOutput,
    Event,
    FinalAnswer,
    HostRefused,
    Reasoning,
    RunFailed,
    RunStarted,
    RunStopped,
    TaskChanged,
    Token,
    Usage,
)
from deepagents_cli.session.usage import Spending
from deepagents_cli.views.chat.live import STILL, TEXT_LINES, describe_work, spin
from deepagents_cli.views.chat.render import Renderer
from deepagents_cli.views.chat.startup import is_plain
from deepagents_cli.views.chat.streaming import MarkdownStream, Piece
from deepagents_cli.views.chat.theme import Look, find_look
from deepagents_cli.views.printer import Printer, has_unicode

_BETWEEN: Final = 0.1
"""Seconds between two drawings."""
_WHILE_IT_WRITES: Final = (Token, Reasoning, Usage, CommandOutput, CommandEnded, HostRefused, TaskChanged)
"""Events that may come in the middle of a text, and do not end it."""


def make_printer(
    console: Console, spending: Spending, theme: str = "auto", *, plain: bool = False
) -> Printer:
    """Make the printer of a run: the plain one if `plain`, or where a line cannot be erased again."""
    # With FORCE_COLOR, rich says of a pipe too that it is a terminal.
    is_terminal = console.is_terminal and console.file.isatty()
    can_draw = is_terminal and has_unicode(console) and not is_plain()
    if plain or not can_draw or os.environ.get("NO_COLOR"):
        return Printer(console, spending)
    size = partial(os.get_terminal_size, console.file.fileno())
    return TerminalPrinter(console, spending, find_look(theme), size)


class TerminalPrinter(Printer):
    """Writes a run to a terminal that can draw.

    A block of the answer is written when it is whole. What is being written stands below it, and a line that
    says that the agent works; both are taken away before anything else is written. They are drawn by the
    event loop, so that nothing is drawn while a person is asked.
    """

    def __init__(
        self, console: Console, spending: Spending, look: Look, size: Callable[[], os.terminal_size]
    ) -> None:
        super().__init__(console, spending)
        self._size = size
        self._renderer = Renderer(look, console.width)
        self._stream = MarkdownStream()
        self._rows = 0
        self._still_at = self._heard = 0.0
        self._next: asyncio.TimerHandle | None = None

    def __call__(self, event: Event) -> None:
        """Show one event."""
        self._heard = self._spending.seconds
        if not isinstance(event, _WHILE_IT_WRITES):
            self._end_text()
        if not isinstance(event, Token | Reasoning | Usage):
            self._erase()
        super().__call__(event)
        match event:
            case RunStarted():
                self._tick(asyncio.get_running_loop())
            case FinalAnswer():
                self._end_text()
            case RunStopped() | RunFailed():
                self._stop()
            case _:
                pass

    def end_line(self) -> None:
        """End the line that is being written."""
        self._erase()
        super().end_line()

    def close(self) -> None:
        """Take away what was drawn, and show what the run took."""
        self._end_text()
        self._stop()
        super().close()

    def _write(self, text: str) -> None:
        self._show(self._stream.feed(text))

    def _end_text(self) -> None:
        self._show(self._stream.finish())

    def _show(self, pieces: list[Piece]) -> None:
        if pieces:
            self._erase()
        for piece in pieces:
            above = [] if piece.continues else [""]
            self._put("".join(f"{line}\n" for line in [*above, *self._renderer.piece(piece)]))

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        self._erase()
        self._draw()
        self._next = loop.call_later(_BETWEEN, self._tick, loop)

    def _draw(self) -> None:
        # COLUMNS, which rich believes, may have stayed as it was when the window was another. A terminal
        # without a window, as in a container, has no size, and rich takes 80 columns.
        size, now = self._size(), time.monotonic()
        if all(size):
            # A terminal that breaks its rows anew makes more of them than are erased, and keeps the rest.
            self._still_at = now + STILL if size.columns != self._console.width else self._still_at
            self._console.size = size
        # A terminal breaks a line that fills its width, and then it is two.
        self._renderer.width = max(self._console.width - 1, 10)
        # Some terminals keep what they erase, if it is the whole screen.
        most = max(min(self._console.height - 5, TEXT_LINES), 1)
        piece = self._stream.open_piece(most) if now >= self._still_at else None
        above = [] if piece is None or piece.continues else [""]
        text = [*above, *self._renderer.piece(piece)[-most:], ""] if piece else []
        look, seconds = self._renderer.look, self._spending.seconds
        working = describe_work(seconds, 0.0 if self._calls else seconds - self._heard, look.dot)
        lines = [*text, self._renderer.line(f"{spin(look)} {working} {look.dot} Ctrl-C stops", "dim")]
        self._put("\n" * bool(self._column) + "\n".join(lines))
        self._rows = len(lines)

    def _erase(self) -> None:
        """Take away what was drawn, and go back to the end of the line above that is still open."""
        if not self._rows:
            return
        up = f"\x1b[{self._rows - 1}A" if self._rows > 1 else ""
        back = f"\x1b[A\x1b[{self._column}C" if self._column else ""
        self._put(f"\r{up}\x1b[J{back}")
        self._rows = 0

    def _stop(self) -> None:
        self._erase()
        if self._next is not None:
            self._next.cancel()

    def _put(self, text: str) -> None:
        out: Any = self._console.file
        out.write(text)
        out.flush()
