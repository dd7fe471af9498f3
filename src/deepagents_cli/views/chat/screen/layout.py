"""Arrange what stands below the scrollback: live region, question, picker, input, completions, status."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText, StyleAndTextTuples
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Container,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    VerticalAlign,
    Window,
)
from prompt_toolkit.layout.processors import (
    ConditionalProcessor,
    Processor,
    Transformation,
    TransformationInput,
)

from deepagents_cli.views.conversation.status import status_line, status_parts
from deepagents_cli.views.conversation.transcript import Block
from deepagents_cli.views.rendering.render import fit

if TYPE_CHECKING:
    from deepagents_cli.views.chat.screen.screen import Screen

Focus: TypeAlias = Literal["input", "picker", "entry"]

_MENU: Final = 8
_INPUT_ROWS: Final = 10
_FAR: Final = 12


@dataclass(frozen=True, slots=True)
class Entry:
    """A text that is asked for in the place of the input; `long` ones have lines, and end with Ctrl-S."""

    label: str
    done: Callable[[str], None]
    long: bool = False


class _Hidden(Processor):
    """Shows nothing of a line."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        return Transformation([], lambda _: 0, lambda _: 0)


class View:
    """The layout of a screen; each part is drawn from what the screen holds at that moment."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        parts: list[Container] = [
            Window(height=1),
            self._shown(lambda: screen.drawing.live, lambda: bool(screen.drawing.live)),
            self._shown(self._question, lambda: self._is_asked),
            self._shown(self._picker, lambda: screen.mode == "picker"),
            self._shown(self._label, lambda: screen.mode == "entry"),
            ConditionalContainer(
                self._editor(screen.line),
                Condition(lambda: screen.mode in ("entry", "picker")),
            ),
            ConditionalContainer(
                self._editor(screen.input),
                Condition(lambda: screen.mode == "input" or bool(screen.input.text)),
            ),
            self._shown(self._menu, lambda: bool(screen.input.complete_state)),
            Window(FormattedTextControl(self._status), height=1),
            ConditionalContainer(
                Window(FormattedTextControl(self._own), height=1),
                Condition(lambda: bool(screen.talk.status and screen.talk.status.own)),
            ),
        ]
        self.layout = Layout(HSplit(parts, align=VerticalAlign.TOP), focused_element=screen.input)

    def _shown(self, draw: Callable[[], AnyFormattedText], when: Callable[[], bool]) -> Container:
        window = Window(FormattedTextControl(draw), dont_extend_height=True)
        return ConditionalContainer(window, Condition(when))

    def _editor(self, buffer: Buffer) -> Window:
        hidden = ConditionalProcessor(_Hidden(), Condition(lambda: self._screen.drawing.is_resizing))
        mark = self._screen.renderer.look.prompt

        def prefix(line: int, wrapped: int) -> AnyFormattedText:
            return [("bold", mark)] if not line and not wrapped else " " * len(mark)

        return Window(
            BufferControl(buffer, input_processors=[hidden]),
            height=Dimension(min=1, max=_INPUT_ROWS),
            wrap_lines=True,
            dont_extend_height=True,
            get_line_prefix=prefix,
        )

    @property
    def _is_asked(self) -> bool:
        return self._screen.talk.question is not None and self._screen.mode == "input"

    def _question(self) -> StyleAndTextTuples:
        question = self._screen.talk.question
        if question is None:
            return []
        # The title may have left the screen: above long details, or above what the agent writes meanwhile.
        moves = self._screen.talk.working and question.lets_work_go_on
        title = fit(question.title, self._width) if moves or len(question.details) > _FAR else ""
        keys = _fill([*question.offered.values(), "and Enter"], self._width) if self._screen.is_asked else []
        if not keys and self._screen.input.text:
            keys = [fit("Send or clear the line; then this can be answered.", self._width)]
        return [("bold", "\n".join(filter(None, [title, *keys])) or " ")]

    def _picker(self) -> StyleAndTextTuples:
        picker = self._screen.talk.picker
        if picker is None:
            return []
        left = f"{len(picker.found)} of {len(picker.rows)}  " if len(picker.rows) > _MENU else ""
        hint = f"{left}type to filter, Enter takes it, Esc leaves"
        fits = len(picker.title) + len(hint) + 2 <= self._width
        lines: StyleAndTextTuples = [
            ("bold", fit(picker.title, self._width)),
            ("dim", f"  {hint}" if fits else f"\n{fit(hint, self._width)}"),
        ]
        _, rows = self._screen.size
        for row, present in picker.window(min(_MENU, max(rows - 7, 1))):
            style = "" if row.usable else "dim"
            text = f"{'>' if present else ' '} {row.label}{'  ' if row.detail else ''}{row.detail}"
            lines.append((f"{style} reverse" if present else style, f"\n{fit(text, self._width)}"))
        if not picker.found:
            lines.append(("", "\n  nothing holds these words"))
        return lines

    def _label(self) -> AnyFormattedText:
        entry = self._screen.entry
        return [("bold", fit(entry.label, self._width))] if entry else ""

    def _menu(self) -> StyleAndTextTuples:
        state = self._screen.input.complete_state
        if state is None:
            return []
        at = state.complete_index
        first = max(0, min((at or 0) - _MENU // 2, len(state.completions) - _MENU))
        longest = max((len(each.display_text) for each in state.completions), default=0)
        lines: StyleAndTextTuples = []
        for number, each in list(enumerate(state.completions))[first : first + _MENU]:
            meta = each.display_meta_text
            text = f"  {each.display_text.ljust(longest)}  {meta}" if meta else f"  {each.display_text}"
            lines.append(("reverse" if number == at else "dim", fit(text, self._width)))
            lines.append(("", "\n"))
        return lines[:-1]

    def _status(self) -> AnyFormattedText:
        screen = self._screen
        if screen.note:
            return [("", fit(screen.note, self._width))]
        parts: Sequence[tuple[int, str]] = status_parts(screen.talk.status, screen.talk.clock.worked)
        # Grey colours are black on black in some terminals.
        return [("dim", fit(status_line(parts, self._width, screen.renderer.look.dot), self._width))]

    def _own(self) -> AnyFormattedText:
        status = self._screen.talk.status
        line = Block("preformatted", status.own) if status else None
        return ANSI(self._screen.renderer.block(line)[0]) if line else ""

    @property
    def _width(self) -> int:
        return max(self._screen.size[0] - 1, 1)


def _fill(words: Sequence[str], width: int) -> list[str]:
    """Put words on as few lines as hold them, none of them broken but one that is longer than a line."""
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + len(word) < width:
            lines[-1] += f" {word}"
        else:
            lines.append(fit(word, width))
    return lines
