"""Render blocks as lines of a terminal, with colours where there are any; the one user of rich here."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.color import ColorSystem
from rich.console import Console, Group, RenderableType
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.theme import Theme

from deepagents_cli.terminal import style_text
from deepagents_cli.text import COLOURS, clean, one_line
from deepagents_cli.views.conversation.streaming import Piece
from deepagents_cli.views.conversation.transcript import Block, Kind
from deepagents_cli.views.terminal.startup import can_encode
from deepagents_cli.views.terminal.theme import Look, find_look

DIFF_COLOURS: Final = {"+": "green", "-": "red", "@": "cyan"}
_STYLES: Final[dict[Kind, str]] = {
    "person": "bold", "notice": "yellow", "error": "red", "output": "dim", "title": "bold yellow",
    "dim": "dim", "thought": "dim italic", "agent": "magenta", "failed_call": "red",
}  # fmt: skip
_TODOS: Final = {"completed": ("[x]", "green"), "in_progress": ("[>]", "bold")}
_INDENT: Final = 2
_TYPED_LINES: Final = 12
"""Of what a person has sent, more lines than these are left out: who has pasted a file knows it."""
_MARKDOWN: Final = Theme(
    # Without backgrounds, which are black on a light terminal, and without dark blue.
    {
        "markdown.code": "bold cyan",
        "markdown.h2": "bold underline",
        "markdown.h3": "bold",
        "markdown.h4": "italic",
        "markdown.block_quote": "italic",
        "markdown.link": "cyan",
        "markdown.link_url": "underline cyan",
    }
)
_IN_ASCII: Final = {ord("•"): "*", ord("▌"): "|", ord("…"): "."}
_CLOSE: Final = frozenset({"call", "failed_call", "agent", "output", "dim", "notice", "plan", "thought"})


class Renderer:
    """Renders for a width and a look, both of which may change."""

    def __init__(self, look: Look, width: int) -> None:
        self.look = look
        self.width = width
        self._last: Kind | None = None
        self._piece: tuple[object, list[str]] = (None, [])
        self._console = Console(
            file=io.StringIO(), force_terminal=True, highlight=False, emoji=False, theme=_MARKDOWN
        )

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
                lines = self._text(block.text, block.language, follows=block.follows)
            case "call" | "failed_call" | "agent":
                lines = self._call(block)
            case "plan":
                lines = self.plan([each.split(" ", 1) for each in block.text.split("\n") if each])
            case "diff" | "sh" | "json":
                lines = self._details(block)
            case "terms":
                lines = self._terms(block)
            case "output":
                lines = [self.output(line, _whose(block.agent)) for line in block.text.split("\n")]
            case "preformatted":
                lines = [self._preformatted(line) for line in block.text.split("\n")]
            case _:
                lines = self._plain(block)
        return lines

    def piece(self, piece: Piece) -> list[str]:
        """Render the end of a block that is still written; the same again where nothing has changed."""
        key = (piece, self.width, self.look)
        if self._piece[0] != key:
            self._piece = (key, self._text(piece.text, piece.language, follows=piece.continues))
        return self._piece[1]

    def line(self, text: str, style: str = "", indent: str = "") -> str:
        """Render one line, cut to the width."""
        return self._cut(one_line(text), style, indent)

    def output(self, text: str, whose: str = "") -> str:
        """Render one line that a command has printed, with its columns, cut to the width."""
        return self._cut(text.expandtabs(), "dim", f"{whose}    ")

    def plan(self, todos: Sequence[Sequence[str]], most: int = 1000) -> list[str]:
        """Render a checklist, at most so many lines of it: those around what is in progress."""
        now = next((at for at, todo in enumerate(todos) if todo[0] != "completed"), len(todos))
        first = max(0, min(now - most // 2, len(todos) - most))
        lines: list[str] = []
        for status, *text in todos[first : first + most]:
            mark, style = _TODOS.get(status, ("[ ]", ""))
            lines.append(self.line(" ".join([mark, *text]), style, "  "))
        return lines

    def _text(self, text: str, language: str | None, *, follows: bool) -> list[str]:
        if language is None:
            # An answer alone, or events, need none of it.
            from deepagents_cli.views.rendering.markdown import render_markdown

            return self._paint(render_markdown(clean(text), self.look.code))
        code = text.lstrip("\n")
        # Empty lines between two parts of code belong to it.
        above = [""] * (len(text) - len(code)) if follows else []
        from deepagents_cli.views.rendering.markdown import render_code

        parts = render_code(clean(code), clean(language), self.look.code, self.width, goes_on=follows)
        return [*above, *self._paint(Group(*parts))]

    def _cut(self, text: str, style: str, indent: str) -> str:
        shown = style_text(text)
        shown.truncate(max(self.width - cell_len(indent), 1), overflow="ellipsis")
        return self._segments([Segment(indent), Segment(shown.plain, Style.parse(style))])

    def _plain(self, block: Block) -> list[str]:
        if block.kind == "raw":
            return clean(block.text).split("\n")
        indent, text = _whose(block.agent), block.text.rstrip("\n")
        if block.kind == "person":
            indent, text = self.look.prompt, _fold(text)
        lines = self._paint(style_text(text, _STYLES.get(block.kind, "")), max(self.width - len(indent), 8))
        return [f"{indent if not at else ' ' * len(indent)}{line}" for at, line in enumerate(lines)]

    def _terms(self, block: Block) -> list[str]:
        """Render lines of a term, a tab and what it means, these below each other."""
        table = Table.grid(padding=(0, 2, 0, 0))
        for line in block.text.split("\n"):
            table.add_row(*(style_text(each, _STYLES.get(block.kind, "")) for each in line.split("\t", 1)))
        return self._paint(table)

    def _call(self, block: Block) -> list[str]:
        call, _, result = block.text.partition("\n")
        mark = self.look.failed if block.kind == "failed_call" else self.look.done
        style = "red" if block.kind == "failed_call" else "green"
        call, result, whose = one_line(call), one_line(result), _whose(block.agent)
        head = [Segment(whose, Style(dim=True)), Segment(f"{mark} ", Style.parse(style))]
        name, _, rest = call.partition(" ")
        room = max(self.width - cell_len(whose) - 2, 8)
        # A long call must not hide how it ended.
        shown = style_text("").append(name, "cyan" if block.kind != "agent" else "magenta")
        shown.append(f" {rest}" if rest else "")
        if result and block.kind == "failed_call" and cell_len(call) + cell_len(result) + 2 > room:
            # Why something failed is shown whole.
            shown.truncate(room, overflow="ellipsis")
            why = self._paint(style_text(result, "red"), max(self.width - 4, 8))
            return [self._segments([*head, *shown.render(self._console)]), *(f"    {line}" for line in why)]
        shown.truncate(max(room - min(cell_len(result), 48) - 2, 8), overflow="ellipsis")
        shown.append(f"  {result}" if result else "", "red" if block.kind == "failed_call" else "dim")
        shown.truncate(room, overflow="ellipsis")
        return [self._segments([*head, *shown.render(self._console)])]

    def _details(self, block: Block) -> list[str]:
        lines: list[str] = []
        for line in block.text.split("\n"):
            style = DIFF_COLOURS.get(line[:1], "dim") if block.kind == "diff" else ""
            # Nothing is cut here: what is not seen cannot be agreed to.
            text = style_text(line.expandtabs(), style)
            lines += self._paint(text, max(self.width - _INDENT, 4), "  ") or [""]
        return lines

    def _preformatted(self, line: str) -> str:
        """Keep colours, and nothing else that steers a terminal."""
        parts = COLOURS.split(line)
        colours = COLOURS.findall(line) if self.look.colours else []
        shown = [clean(part) for part in parts]
        mixed = [shown[0], *(f"{c}{s}" for c, s in zip(colours, shown[1:], strict=False))]
        return "".join(mixed if colours else shown) + ("\x1b[0m" if colours else "")

    def _paint(self, renderable: RenderableType, width: int = 0, indent: str = "") -> list[str]:
        options = self._console.options.update(width=max(width or self.width, 4), height=None)
        if self.look.dot.isascii():
            # The lines of tables, too.
            options.encoding = "ascii"
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
        line = "".join(self._segment(clean(each.text), each.style) for each in segments if each.text)
        return line.translate(_IN_ASCII) if self.look.dot.isascii() else line

    def _segment(self, text: str, style: Style | None) -> str:
        if style is None or not self.look.styled:
            return text
        if not self.look.colours:
            style = style.without_color
        return style.render(text, color_system=ColorSystem.STANDARD)


def warm_up() -> None:
    """Import and compile what the first Markdown needs, and the first code in languages that take long."""
    renderer = Renderer(find_look(), 80)
    renderer.block(Block("markdown", "| `a` |\n|---|\n| 1 |\n"))
    for language in ("python", "typescript", "css", "sql"):
        renderer.block(Block("code", "x", language=language))


def _fold(text: str) -> str:
    lines = text.split("\n")
    if len(lines) <= _TYPED_LINES:
        return text
    left_out = len(lines) - _TYPED_LINES + 1
    return "\n".join([*lines[: _TYPED_LINES - 1], f"... {left_out:,} more lines"])


def _whose(agent: str | None) -> str:
    return f"{one_line(agent)} | " if agent is not None else ""


def fit(text: str, width: int) -> str:
    """Cut a line to a width in cells."""
    more = "…" if can_encode("…") else "."
    return text if cell_len(text) <= width else set_cell_size(text, max(width - 1, 0)) + more
