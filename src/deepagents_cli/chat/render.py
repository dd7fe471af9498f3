"""Render blocks as lines of a terminal, with colours where there are any; the one user of rich here."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.color import ColorSystem
from rich.console import Console, RenderableType
from rich.markdown import Heading, Markdown
from rich.padding import Padding
from rich.segment import Segment
from rich.style import Style
from rich.syntax import Syntax

from deepagents_cli.chat.streaming import Piece
from deepagents_cli.chat.theme import Look
from deepagents_cli.chat.transcript import Block, Kind
from deepagents_cli.terminal import clean, one_line, style_text

_DIFF: Final = {"+": "green", "-": "red", "@": "cyan"}
_STYLES: Final[dict[Kind, str]] = {
    "person": "bold", "notice": "yellow", "error": "red", "output": "dim", "title": "bold yellow",
    "dim": "dim", "agent": "magenta", "failed_call": "red",
}  # fmt: skip
_TODOS: Final = {"completed": ("[x]", "green"), "in_progress": ("[>]", "bold")}
_COLOURS_ONLY: Final = re.compile(r"\x1b\[[0-9;]*m")
_INDENT: Final = 2
_CLOSE: Final = frozenset({"call", "failed_call", "agent", "output", "dim", "notice", "plan"})


class _PlainHeading(Heading):
    """A heading at the left, as text in a scrollback reads best."""

    def __rich_console__(self, console: Console, options: object) -> Iterable[RenderableType]:
        """Yield the text alone."""
        self.text.justify = "left"
        yield self.text


class _Markdown(Markdown):
    elements = {**Markdown.elements, "heading_open": _PlainHeading}


class Renderer:
    """Renders for a width and a look, both of which may change."""

    def __init__(self, look: Look, width: int) -> None:
        self.look = look
        self.width = width
        self._last: Kind | None = None
        self._piece: tuple[object, list[str]] = (None, [])
        self._console = Console(file=io.StringIO(), force_terminal=True, highlight=False, emoji=False)

    def blocks(self, blocks: Iterable[Block]) -> list[str]:
        """Render blocks below those before, each after an empty line unless it belongs to the last one."""
        lines: list[str] = []
        for block in blocks:
            close = block.follows or (block.kind in _CLOSE and self._last in _CLOSE)
            lines += [] if close or self._last is None else [""]
            lines += self.block(block)
            self._last = block.kind
        return lines

    def block(self, block: Block) -> list[str]:
        """Render a finished block."""
        match block.kind:
            case "markdown" | "code":
                return self._paint(self._text(block.text, block.language))
            case "call" | "failed_call" | "agent":
                return self._call(block)
            case "plan":
                return self.plan([each.split(" ", 1) for each in block.text.split("\n") if each])
            case "diff" | "sh" | "json":
                return self._details(block)
            case "preformatted":
                return [self._preformatted(line) for line in block.text.split("\n")]
            case _:
                return self._plain(block)

    def piece(self, piece: Piece) -> list[str]:
        """Render the end of a block that is still written; the same again where nothing has changed."""
        key = (piece, self.width, self.look)
        if self._piece[0] != key:
            self._piece = (key, self._paint(self._text(piece.text, piece.language)))
        return self._piece[1]

    def line(self, text: str, style: str = "", indent: str = "") -> str:
        """Render one line, cut to the width."""
        shown = style_text(one_line(text), style)
        shown.truncate(max(self.width - cell_len(indent), 1), overflow="ellipsis")
        return self._segments([Segment(indent), *shown.render(self._console)])

    def plan(self, todos: Sequence[Sequence[str]], most: int = 1000) -> list[str]:
        """Render a checklist, at most so many lines of it: those around what is in progress."""
        now = next((at for at, todo in enumerate(todos) if todo[0] != "completed"), len(todos))
        first = max(0, min(now - most // 2, len(todos) - most))
        lines: list[str] = []
        for status, *text in todos[first : first + most]:
            mark, style = _TODOS.get(status, ("[ ]", ""))
            lines.append(self.line(" ".join([mark, *text]), style, "  "))
        return lines

    def _text(self, text: str, language: str | None) -> RenderableType:
        text = clean(text)
        if language is None:
            return _Markdown(text, code_theme=self.look.code, hyperlinks=False)
        code = Syntax(
            text, language or "text", theme=self.look.code, word_wrap=True, background_color="default"
        )
        return Padding(code, (0, 0, 0, min(_INDENT, max(self.width - 8, 0))))

    def _plain(self, block: Block) -> list[str]:
        indent = self.look.prompt if block.kind == "person" else "    " if block.kind == "output" else ""
        text = style_text(block.text.rstrip("\n"), _STYLES.get(block.kind, ""))
        if block.kind == "output":
            return [
                self.line(line, "dim", f"{_whose(block.agent)}{indent}") for line in block.text.split("\n")
            ]
        room = max(self.width - len(indent), 8)
        lines = self._paint(text, room)
        return [f"{indent if not at else ' ' * len(indent)}{line}" for at, line in enumerate(lines)]

    def _call(self, block: Block) -> list[str]:
        call, _, result = block.text.partition("\n")
        mark = self.look.failed if block.kind == "failed_call" else self.look.done
        style = "red" if block.kind == "failed_call" else "green"
        call, result, whose = one_line(call), one_line(result), _whose(block.agent)
        head = [Segment(whose, Style(dim=True)), Segment(f"{mark} ", Style.parse(style))]
        name, _, rest = call.partition(" ")
        room = max(self.width - cell_len(whose) - 2, 8)
        # A long call must not hide how it ended.
        shown = style_text(name, "cyan" if block.kind != "agent" else "magenta")
        shown.append(f" {rest}" if rest else "", "default")
        if result and block.kind == "failed_call" and cell_len(call) + cell_len(result) + 2 > room:
            # Why something failed is shown whole.
            shown.truncate(room, overflow="ellipsis")
            why = self._paint(style_text(result, "red"), max(self.width - 4, 8))
            return [self._segments([*head, *shown.render(self._console)]), *(f"    {line}" for line in why)]
        shown.truncate(max(room - min(cell_len(result), 30) - 2, 8), overflow="ellipsis")
        shown.append(f"  {result}" if result else "", "red" if block.kind == "failed_call" else "dim")
        shown.truncate(room, overflow="ellipsis")
        return [self._segments([*head, *shown.render(self._console)])]

    def _details(self, block: Block) -> list[str]:
        lines: list[str] = []
        for line in block.text.split("\n"):
            style = _DIFF.get(line[:1], "dim") if block.kind == "diff" else ""
            # Nothing is cut here: what is not seen cannot be agreed to.
            text = style_text(line.expandtabs(), style)
            lines += self._paint(text, max(self.width - _INDENT, 4), "  ") or [""]
        return lines

    def _preformatted(self, line: str) -> str:
        """Keep colours, and nothing else that steers a terminal."""
        parts = _COLOURS_ONLY.split(line)
        colours = _COLOURS_ONLY.findall(line) if self.look.colours else []
        shown = [clean(part) for part in parts]
        mixed = [shown[0], *(f"{c}{s}" for c, s in zip(colours, shown[1:], strict=False))]
        return "".join(mixed if colours else shown) + ("\x1b[0m" if colours else "")

    def _paint(self, renderable: RenderableType, width: int = 0, indent: str = "") -> list[str]:
        options = self._console.options.update(width=max(width or self.width, 4), height=None)
        lines = self._console.render_lines(renderable, options, pad=False)
        painted = [indent + self._segments(line) for line in lines]
        while painted and not painted[0].strip():
            painted.pop(0)
        while painted and not painted[-1].strip():
            painted.pop()
        return painted

    def _segments(self, segments: Iterable[Segment]) -> str:
        """Write segments as text with colours; Markdown can spell characters that only stand here as such."""
        segments = list(Segment.simplify(each for each in segments if not each.control))
        if segments and not (segments[-1].style and segments[-1].style.bgcolor):
            segments[-1] = Segment(segments[-1].text.rstrip(), segments[-1].style)
        return "".join(self._segment(clean(each.text), each.style) for each in segments if each.text)

    def _segment(self, text: str, style: Style | None) -> str:
        if style is None or not self.look.styled:
            return text
        if not self.look.colours:
            style = style.without_color
        return style.render(text, color_system=ColorSystem.STANDARD)


def _whose(agent: str | None) -> str:
    return f"{one_line(agent)} | " if agent is not None else ""


def fit(text: str, width: int) -> str:
    """Cut a line to a width in cells."""
    return text if cell_len(text) <= width else set_cell_size(text, max(width - 1, 0)) + "…"
