"""Show a long text on a screen of its own, that is scrolled; the conversation stays below it as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from prompt_toolkit.application import Application
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import FormattedTextControl, Layout, Window
from rich.cells import cell_len, chop_cells

from deepagents_cli.protocol import Whole
from deepagents_cli.text import clean, one_line
from deepagents_cli.views.rendering.render import fit

_AROUND: Final = 2
"""Rows of the screen for the title and the keys."""
_END: Final = 1 << 40


class Pager:
    """Shows one text at a time; `look` asks for another one, which `show` takes.

    `is_asked` tells whether a question of the agent waits behind it.
    """

    def __init__(
        self,
        whole: Whole,
        look: Callable[[int], None],
        around: Application[Any],
        is_asked: Callable[[], bool],
    ) -> None:
        self._look = look
        self._is_asked = is_asked
        self._whole = whole
        self._top = 0
        self._note = ""
        self._columns = 0
        self._lines: list[str] = []
        self.app: Application[None] = Application(
            layout=Layout(Window(FormattedTextControl(self._draw, show_cursor=False))),
            key_bindings=self._keys(),
            input=around.input,
            output=around.output,
            full_screen=True,
            include_default_pygments_style=False,
        )
        self.app.ttimeoutlen = around.ttimeoutlen
        self.app.timeoutlen = around.timeoutlen

    def show(self, whole: Whole) -> None:
        """Show another text, from its beginning."""
        if whole.title:
            self._whole, self._top, self._columns, self._note = whole, 0, 0, ""
        else:
            self._note = "nothing older is kept"
        self.app.invalidate()

    def _keys(self) -> KeyBindings:
        bindings: dict[str, Callable[[KeyPressEvent], None]] = {
            "up k c-p": lambda _: self._scroll(-1),
            "down j c-n enter": lambda _: self._scroll(1),
            "pageup b c-b": lambda _: self._scroll(-self._page()),
            "pagedown space c-f": lambda _: self._scroll(self._page()),
            "home g": lambda _: self._scroll(-_END),
            "end G": lambda _: self._scroll(_END),
            "c-o left": lambda _: self._look(self._whole.back + 1),
            "right": lambda _: self._look(max(self._whole.back - 1, 0)),
            "q escape c-c c-d": lambda _: self.app.exit(),
        }
        keys = KeyBindings()
        for names, act in bindings.items():
            for name in names.split():
                keys.add(name)(act)
        return keys

    def _scroll(self, by: int) -> None:
        self._note = ""
        self._top = max(min(self._top + by, len(self._lines) - self._page()), 0)

    def _page(self) -> int:
        return max(self.app.output.get_size().rows - _AROUND, 1)

    def _draw(self) -> StyleAndTextTuples:
        width = max(self.app.output.get_size().columns, 10)
        if width != self._columns:
            self._columns = width
            self._lines = list(_wrap(self._whole.text, width - 1))
            self._scroll(0)
        shown = self._lines[self._top : self._top + self._page()]
        filled = shown + [""] * (self._page() - len(shown))
        return [
            ("bold", fit(one_line(self._whole.title), width - 1)),
            ("", "\n" + "\n".join(filled) + "\n"),
            ("reverse", fit(self._describe(self._top + len(shown)), width - 1)),
        ]

    def _describe(self, last: int) -> str:
        asked = "a question waits for you" if self._is_asked() else ""
        count, whole = len(self._lines), self._whole
        where = f"lines {self._top + 1:,} to {last:,} of {count:,}" if count else "it is empty"
        keys = "q leaves, Ctrl-O shows the one before, arrows and Space scroll"
        which = f"{whole.count - whole.back} of {whole.count}"
        return f" {'; '.join(filter(None, [self._note, asked, where, which, keys]))} "


def _wrap(text: str, width: int) -> Iterator[str]:
    """Yield a text as lines of a terminal, each as wide as the screen at most, and cut behind a word."""
    for line in clean(text).rstrip("\n").expandtabs(8).split("\n"):
        if not line.isascii() and cell_len(line) > width:
            yield from chop_cells(line, width)
            continue
        at = 0
        while len(line) - at > width:
            end = line.rfind(" ", at + width // 2, at + width) + 1 or at + width
            yield line[at:end]
            at = end
        yield line[at:]
