"""Arrange what stands below the scrollback: live region, question, picker, input, completions, status."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal, TypeAlias

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

from deepagents._values import valueclass
from deepagents_cli.views.chat.input.keyboard import HeldOutput
from deepagents_cli.views.chat.screen.drawing import Drawing
from deepagents_cli.views.conversation.chat import Chat
from deepagents_cli.views.conversation.picker import Picker
from deepagents_cli.views.conversation.status import status_line, status_parts
from deepagents_cli.views.conversation.transcript import Block
from deepagents_cli.views.rendering.render import Renderer, fit

Focus: TypeAlias = Literal["input", "picker", "entry"]

_MENU: Final = 8
_INPUT_ROWS: Final = 10
_FAR: Final = 12


@valueclass
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
    """What stands below the scrollback at the moment, and its layout; each part is drawn from that.

    `entry` is a text that is asked for, `note` takes the place of the status line, and `history` picks what
    was typed before. `is_answerable` tells whether the next line may answer a question.
    """

    def __init__(
        self,
        talk: Chat,
        renderer: Renderer,
        drawing: Drawing,
        output: HeldOutput,
        typed: Buffer,
        line: Buffer,
        is_answerable: Callable[[], bool],
    ) -> None:
        self.entry: Entry | None = None
        self.note = ""
        self.history: Picker | None = None
        self._talk = talk
        self._renderer = renderer
        self._drawing = drawing
        self._output = output
        self._input = typed
        self._is_answerable = is_answerable
        parts: list[Container] = [
            Window(height=1),
            self._shown(lambda: drawing.live, lambda: bool(drawing.live)),
            self._shown(self._question, lambda: self._is_asked),
            self._shown(self._picker, lambda: self.mode == "picker"),
            self._shown(self._label, lambda: self.mode == "entry"),
            ConditionalContainer(self._editor(line), Condition(lambda: self.mode in ("entry", "picker"))),
            ConditionalContainer(
                self._editor(typed), Condition(lambda: self.mode == "input" or bool(typed.text))
            ),
            self._shown(self._menu, lambda: bool(typed.complete_state)),
            Window(FormattedTextControl(self._status), height=1),
            ConditionalContainer(
                Window(FormattedTextControl(self._own), height=1),
                Condition(lambda: bool(talk.status and talk.status.own)),
            ),
        ]
        self.layout = Layout(HSplit(parts, align=VerticalAlign.TOP), focused_element=typed)

    @property
    def mode(self) -> Focus:
        """What the keys are for."""
        if self.entry is not None:
            return "entry"
        picker = self._talk.picker
        # One that the agent's process sends may come into the middle of a word.
        is_picking = picker is not None and (picker is self.history or not self._input.text)
        return "picker" if is_picking else "input"

    def _shown(self, draw: Callable[[], AnyFormattedText], when: Callable[[], bool]) -> Container:
        window = Window(FormattedTextControl(draw), dont_extend_height=True)
        return ConditionalContainer(window, Condition(when))

    def _editor(self, buffer: Buffer) -> Window:
        hidden = ConditionalProcessor(_Hidden(), Condition(lambda: self._drawing.is_resizing))
        mark = self._renderer.look.prompt

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
        return self._talk.question is not None and self.mode == "input"

    def _question(self) -> StyleAndTextTuples:
        question = self._talk.question
        if question is None:
            return []
        # The title may have left the screen: above long details, or above what the agent writes meanwhile.
        moves = self._talk.working and question.lets_work_go_on
        title = fit(question.title, self._width) if moves or len(question.details) > _FAR else ""
        keys = _fill([*question.offered.values(), "and Enter"], self._width) if self._is_answerable() else []
        if not keys and self._input.text:
            keys = [fit("Send or clear the line; then this can be answered.", self._width)]
        return [("bold", "\n".join(filter(None, [title, *keys])) or " ")]

    def _picker(self) -> StyleAndTextTuples:
        picker = self._talk.picker
        if picker is None:
            return []
        left = f"{len(picker.found)} of {len(picker.rows)}  " if len(picker.rows) > _MENU else ""
        hint = f"{left}type to filter, Enter takes it, Esc leaves"
        fits = len(picker.title) + len(hint) + 2 <= self._width
        lines: StyleAndTextTuples = [
            ("bold", fit(picker.title, self._width)),
            ("dim", f"  {hint}" if fits else f"\n{fit(hint, self._width)}"),
        ]
        rows = self._output.get_size().rows
        for row, present in picker.window(min(_MENU, max(rows - 7, 1))):
            style = "" if row.usable else "dim"
            text = f"{'>' if present else ' '} {row.label}{'  ' if row.detail else ''}{row.detail}"
            lines.append((f"{style} reverse" if present else style, f"\n{fit(text, self._width)}"))
        if not picker.found:
            lines.append(("", "\n  nothing holds these words"))
        return lines

    def _label(self) -> AnyFormattedText:
        entry = self.entry
        return [("bold", fit(entry.label, self._width))] if entry else ""

    def _menu(self) -> StyleAndTextTuples:
        state = self._input.complete_state
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
        if self.note:
            return [("", fit(self.note, self._width))]
        parts: Sequence[tuple[int, str]] = status_parts(self._talk.status, self._talk.clock.worked)
        # Grey colours are black on black in some terminals.
        return [("dim", fit(status_line(parts, self._width, self._renderer.look.dot), self._width))]

    def _own(self) -> AnyFormattedText:
        status = self._talk.status
        line = Block("preformatted", status.own) if status else None
        return ANSI(self._renderer.block(line)[0]) if line else ""

    @property
    def _width(self) -> int:
        return max(self._output.get_size().columns - 1, 1)


def _fill(words: Sequence[str], width: int) -> list[str]:
    """Put words on as few lines as hold them, none of them broken but one that is longer than a line."""
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + len(word) < width:
            lines[-1] += f" {word}"
        else:
            lines.append(fit(word, width))
    return lines
