"""Show a session line after line, and ask in lines."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from deepagents_cli.terminal import READING, take_typed_ahead
from deepagents_cli.text import clean, one_line
from deepagents_cli.views.conversation.chat import Chat
from deepagents_cli.views.conversation.picker import Picker
from deepagents_cli.views.conversation.questions import WORDS, Pending
from deepagents_cli.views.conversation.transcript import Block
from deepagents_cli.views.terminal.editor import edit_text

if TYPE_CHECKING:
    from deepagents_cli.views.rendering.render import Renderer

_LONG: Final = 2.0
"""Seconds after which a call that still runs is named."""


class Lines:
    """Writes what is finished, and reads answers; a view that is made of it says what other lines mean.

    What was typed before a question could be read does not answer it.
    """

    def __init__(
        self,
        talk: Chat,
        make_renderer: Callable[[], Renderer],
        out: IO[str],
        *,
        editor: str | None,
        changeable: Sequence[Path],
    ) -> None:
        self.talk = talk
        self._make_renderer = make_renderer
        self.out = out
        self.asked: Pending | None = None
        """The question that stands above, from the moment that it is shown."""
        self.answerable = False
        self.over: asyncio.Future[int] | None = None
        """What is done when nothing more is shown."""
        self._editor = editor
        self._changeable = changeable
        self._next: Callable[[str], None] | None = None
        self._edited: list[str] = []
        self._picking: Picker | None = None
        self._unread = b""

    @cached_property
    def renderer(self) -> Renderer:
        """What renders blocks: an answer alone needs none, and rich takes long to import."""
        return self._make_renderer()

    def take_line(self, line: str) -> None:
        """Take a line that answers nothing."""
        raise NotImplementedError

    def end(self, code: int = 0) -> None:
        """Show nothing more."""
        if self.over is not None and not self.over.done():
            self.over.set_result(code)

    def fail(self, _: object, context: dict[str, Any]) -> None:
        """End by a failure that an event loop tells of."""
        if self.over is not None and not self.over.done():
            error = context.get("exception") or RuntimeError(str(context.get("message")))
            self.over.set_exception(error)

    def end_input(self) -> None:
        """Note that nothing more is typed."""
        raise NotImplementedError

    def print_block(self, block: Block) -> None:
        """Print a block."""
        self.print(*self.renderer.block(block))

    def print_offer(self, question: Pending) -> None:
        """Print which keys answer a question."""
        named = {key: each.label for key, each in question.answers.items()} | WORDS
        self.print(", ".join(f"{one_line(named[key])} ({key})" for key in question.offered) + "?")

    def wait_for_answer(self, *, is_asked: bool) -> None:
        """Note that a question can be answered from now on, or no longer."""

    def print(self, *lines: str) -> None:
        """Print lines."""
        self.put("".join(f"{line}\n" for line in lines))

    def put(self, text: str) -> None:
        """Write a text as it is."""
        self.out.write(text)
        self.out.flush()

    def show(self) -> None:
        """Print what is finished, and ask what is to be asked."""
        for block in self.talk.transcript.take_finished():
            if block.kind != "person":
                self.print_block(block)
        if self.talk.question is not self.asked:
            self.asked = self.talk.question
            self._next, self.answerable = None, False
            self.wait_for_answer(is_asked=False)
            asyncio.get_running_loop().call_later(READING, self._open, self.asked)
        elif self.talk.picker is not self._picking:
            self._picking = self.talk.picker
            self._list_rows()

    def read(self) -> None:
        """Read what was typed."""
        piece = os.read(sys.stdin.fileno(), 1 << 16)
        if not piece:
            self.end_input()
            return
        *lines, self._unread = (self._unread + piece).split(b"\n")
        for line in lines:
            self.take_typed(line.decode("utf-8", "replace"))
            self.show()

    def take_typed(self, line: str) -> None:
        """Take a line that was typed."""
        if self._next is not None:
            take, self._next = self._next, None
            take(line)
        elif self._picking is not None:
            self._pick(line.strip())
        elif self.asked is not None and self.answerable:
            self._answer(self.asked, line)
        elif self.asked is not None and self.asked.read_key(line):
            self.print(f"Typed before the question, and not taken: {one_line(line)}")
        else:
            self.take_line(line)

    def forget_answers(self) -> None:
        """Give up what was being typed in answer to a question."""
        self._next = self._picking = self.talk.picker = None

    def name_long_calls(self) -> None:
        """Name the calls that run for long already, from now on."""
        transcript = self.talk.transcript
        for call in transcript.calls.values():
            if transcript.clock() - call.since >= _LONG:
                transcript.name_call(call)
        self.show()
        asyncio.get_running_loop().call_later(1.0, self.name_long_calls)

    def _open(self, question: Pending | None) -> None:
        """Take answers from the next line on."""
        if question is None or question is not self.asked:
            return
        lines, begun = take_typed_ahead()
        for line in lines:
            self.take_typed(line)
        self._unread += begun.encode()
        self.answerable = True
        self.wait_for_answer(is_asked=True)
        self.ask()

    def ask(self) -> None:
        """Say what answers the question that waits."""
        self._next = None
        if self.asked is None:
            return
        if self.asked.is_text:
            self.print("Answer:")
        else:
            self.print_offer(self.asked)

    def _list_rows(self) -> None:
        picker = self._picking
        if picker is None:
            return
        self.print(picker.title)
        for number, row in enumerate(picker.found, 1):
            mark = f"{number}." if row.usable else "cannot be used:"
            self.print(f"{mark} {row.label}{', ' if row.detail else ''}{row.detail}")
        self.print("Type a number, or words to filter by; an empty line leaves.")

    def _answer(self, question: Pending, line: str) -> None:
        if question.is_text:
            self.talk.answer(line)
            return
        key = question.read_key(line)
        if key is None and line.strip():
            self.take_line(line)
            self.ask()
        elif key not in question.offered:
            self.ask()
        elif key == "e":
            self._edit(question)
        elif text := self.talk.press(key):
            self._read_next(*text)
        else:
            self.show()
            if self.talk.question is question and self.talk.picker is None:
                self.ask()

    def _read_next(self, label: str, take: Callable[[str], None]) -> None:
        self.print(label)
        self._next = take

    def _edit(self, question: Pending) -> None:
        text, suffix = question.edited_text()
        if not self._editor:
            self._edited = []
            self.print(*clean(text).split("\n"))
            self._read_next("Type the new text; a line with a single dot ends it:", self._take_edited)
            return
        try:
            self.talk.edit(edit_text(self._editor, text, suffix, self._changeable))
        except ValueError as error:
            self.print(f"Not taken: {one_line(str(error))}")
            self.ask()

    def _take_edited(self, line: str) -> None:
        if line.strip() != ".":
            self._edited.append(line)
            self._next = self._take_edited
            return
        before = self.asked.edited_text()[0] if self.asked else ""
        self.talk.edit("\n".join(self._edited) + "\n" * before.endswith("\n"))

    def _pick(self, line: str) -> None:
        picker = self._picking
        if picker is None:
            return
        rows = picker.found
        row = rows[int(line) - 1] if line.isdecimal() and 0 < int(line) <= len(rows) else None
        if line and (row is None or not row.usable):
            picker.type(line)
            self._list_rows()
            return
        self.talk.picker = self._picking = None
        if row is not None:
            picker.picked(row.value)
        elif self.asked:
            self.ask()
