"""Decide when a conversation is drawn, and write what of it is finished above what still changes."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Final

from prompt_toolkit.application import Application
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text

from deepagents_cli.views.chat.input.keyboard import HeldOutput
from deepagents_cli.views.conversation.chat import Chat
from deepagents_cli.views.conversation.transcript import Block
from deepagents_cli.views.region import STILL
from deepagents_cli.views.rendering.live import draw_live
from deepagents_cli.views.rendering.render import Renderer

_BETWEEN: Final = 0.05
_REST: Final = 4
_TYPING: Final = 0.12
"""Seconds between drawings while keys are pressed: a key is drawn at once."""
_RENDERING: Final = 0.004
"""Seconds for which blocks are rendered before keys are looked for."""
_LIVE_ROWS: Final = 16


class Drawing:
    """Has `draw` called soon after each change; what comes meanwhile is drawn with it."""

    def __init__(
        self,
        talk: Chat,
        renderer: Renderer,
        output: HeldOutput,
        draw: Callable[[], None],
        is_typing: Callable[[], bool],
    ) -> None:
        self.live: StyleAndTextTuples = []
        self._talk = talk
        self._renderer = renderer
        self._output = output
        self._draw = draw
        self._is_typing = is_typing
        self._height = 0
        self._columns = output.get_size().columns
        self._drawn_at = self._cost = 0.0
        self._next: asyncio.Handle | None = None
        self._rendering: asyncio.Handle | None = None
        self._resizing: asyncio.Handle | None = None
        self._blocks: deque[Block] = deque()
        self._lines: list[str] = []

    def soon(self) -> None:
        """Draw as soon as the last drawing is long enough ago."""
        if self._rendering is None and self._talk.transcript.finished:
            self._rendering = asyncio.get_running_loop().call_soon(self._render)
        if self._next is None:
            # On a slow machine, keys must not wait for one drawing after the other.
            pause = max(_BETWEEN, _REST * self._cost, _TYPING * self._is_typing())
            wait = max(self._drawn_at + pause - time.monotonic(), 0)
            self._next = asyncio.get_running_loop().call_later(wait, self._due)

    def now(self) -> None:
        """Draw."""
        self._next = None
        begun = time.monotonic()
        self._draw()
        self._drawn_at = time.monotonic()
        self._cost = self._drawn_at - begun

    def stop(self) -> None:
        """Draw no more."""
        for handle in (self._next, self._rendering, self._resizing):
            if handle is not None:
                handle.cancel()

    @property
    def is_resizing(self) -> bool:
        """Whether the width changes, so that little may be drawn.

        A terminal that wraps its rows anew makes more of them than are erased, and keeps the rest as copies.
        """
        return self._resizing is not None

    def note_size(self, _: object = None) -> None:
        """Leave `live` empty while the width changes."""
        columns = self._output.get_size().columns
        if columns == self._columns:
            return
        self._columns = columns
        if self._resizing is not None:
            self._resizing.cancel()
        self._resizing = asyncio.get_running_loop().call_later(STILL, self._end_resizing)
        self._show_lines([""] * self._height)

    def _end_resizing(self) -> None:
        self._resizing = None
        self.soon()

    def _due(self) -> None:
        if self._rendering is None:
            self.now()
        else:
            self._next = asyncio.get_running_loop().call_soon(self._due)

    def _render(self, seconds: float = _RENDERING) -> None:
        """Turn into lines what is finished; when the time is over, keys go first."""
        self._rendering = None
        self._renderer.width = max(self._output.get_size().columns - 1, 10)
        self._blocks += self._talk.transcript.take_finished()
        end = time.monotonic() + seconds
        while self._blocks and time.monotonic() < end:
            self._lines += self._renderer.blocks([self._blocks.popleft()])
        if self._blocks:
            self._rendering = asyncio.get_running_loop().call_soon(self._render)

    def show(self, app: Application[Any], *, steady: bool) -> None:
        """Write what is finished into the scrollback, and keep what still changes as `live`.

        With `steady`, the input line does not go up where less changes than before: empty lines take the
        place of what is gone, until finished lines need it.
        """
        self._render(math.inf)
        room = self._height - len(self._lines) if steady else 0
        if self._lines:
            self._output.held = True
            app.renderer.erase()
            self._output.write_raw("".join(f"{line}\n" for line in self._lines))
            self._lines = []
        rows = min(self._output.get_size().rows - 6, _LIVE_ROWS)
        lines = draw_live(self._talk, self._renderer, rows)
        lines += [""] if lines else []
        lines = [""] * (min(room, rows + 1) - len(lines)) + lines
        self._show_lines([""] * len(lines) if self.is_resizing else lines)
        app.invalidate()

    def _show_lines(self, lines: Sequence[str]) -> None:
        self._height = len(lines)
        # Once here, and not with every key.
        drawn = _join_fragments(to_formatted_text(ANSI("\n".join(lines))))
        self.live = drawn or [("", "")] * bool(lines)

    def clear(self) -> None:
        """Begin at the top of an empty screen."""
        self._height = 0


def _join_fragments(fragments: StyleAndTextTuples) -> StyleAndTextTuples:
    """Join neighbours of one style: each fragment is looked at several times in each drawing."""
    alike = groupby(fragments, key=lambda fragment: fragment[0])
    return [(style, "".join(fragment[1] for fragment in each)) for style, each in alike]
