"""Show the conversation line after line: for screen readers, logs and terminals without a cursor."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from shutil import get_terminal_size
from typing import Any, Final

from deepagents_cli.errors import Exit
from deepagents_cli.project.settings import merge, read_user
from deepagents_cli.protocol import Open, ToScreen
from deepagents_cli.terminal import READING, take_typed_ahead
from deepagents_cli.text import one_line
from deepagents_cli.views.chat.composer import Composer
from deepagents_cli.views.chat.conversation import Conversation
from deepagents_cli.views.chat.link import Link, writable_in
from deepagents_cli.views.chat.picker import Picker
from deepagents_cli.views.chat.process import WorkerProcess
from deepagents_cli.views.chat.questions import WORDS, Pending
from deepagents_cli.views.chat.render import Renderer
from deepagents_cli.views.chat.theme import find_look
from deepagents_cli.views.editor import edit_text, find_editor

_AGAIN: Final = 2.0
_LONG: Final = 2.0
"""Seconds after which a call that still runs is named."""
_WIDTH: Final = 80


def talk(opening: Open, worker: Sequence[str]) -> int:
    """Talk by lines until the person leaves; return the exit code."""
    link = Link(WorkerProcess(worker), opening)
    return asyncio.run(_Plain(link, Path(opening.directory), writable_in(opening)).run())


class _Plain:
    def __init__(self, link: Link, directory: Path, writable: Sequence[Path]) -> None:
        self._link = link
        self._talk = Conversation(
            link.send, set_theme=self._ignore_theme, leave=self._leave, stop_key="Ctrl-C"
        )
        self._settings = merge(read_user(Path.home()))
        self._changeable = (directory, *(writable or self._settings.write))
        self._composer = Composer(directory, self._changeable)
        look = replace(find_look(), colours=False, styled=False, prompt="> ", done="ok", failed="!!")
        self._renderer = Renderer(look, min(_WIDTH, get_terminal_size().columns))
        self._next: Callable[[str], None] | None = None
        self._edited: list[str] = []
        self._asked: Pending | None = None
        self._answerable = False
        self._picking: Picker | None = None
        self._named: set[int] = set()
        self._interrupted_at = 0.0
        self._unread = b""
        self._ready = False
        self._end: asyncio.Future[int] | None = None

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        self._end = loop.create_future()
        self._link.attach(loop, self._take, self._ended)
        loop.add_reader(sys.stdin.fileno(), self._read)
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._leave, Exit.STOPPED)
        loop.set_exception_handler(self._failed)
        self._name_long_calls()
        try:
            return await self._end
        finally:
            loop.remove_reader(sys.stdin.fileno())
            self._link.close()
            if self._talk.way_on:
                self._print(f"Go on with: {self._talk.way_on}")

    def _take(self, message: ToScreen) -> None:
        queued = list(self._talk.queued)
        was_working = self._talk.working
        self._talk.take(message)
        self._show()
        if self._talk.queued != queued:
            for text in self._talk.queued:
                self._print(f"queued: {one_line(text)}")
        if self._talk.ready and not self._talk.working and (was_working or not self._ready):
            self._ready = True
            self._prompt()

    def _show(self) -> None:
        for block in self._talk.transcript.take_finished():
            if block.kind != "person":
                self._print(*self._renderer.block(block))
        for text in [*self._talk.taken_back, *self._talk.refused]:
            self._print(f"taken back: {one_line(text)}")
        self._talk.taken_back, self._talk.refused = [], []
        if self._talk.question is not self._asked:
            self._asked = self._talk.question
            self._next, self._answerable = None, False
            asyncio.get_running_loop().call_later(READING, self._open, self._asked)
        elif self._talk.picker is not self._picking:
            self._picking = self._talk.picker
            self._list_rows()

    def _open(self, question: Pending | None) -> None:
        """Take answers from the next line on: what was typed before the question could be read is none."""
        if question is not self._asked:
            return
        lines, begun = take_typed_ahead()
        for line in lines:
            self._line(line)
        self._unread += begun.encode()
        self._answerable = True
        self._ask()

    def _ask(self) -> None:
        question = self._asked
        self._next = None
        if question is None:
            return
        if question.is_text:
            self._print("Answer:")
        else:
            named = {key: each.label for key, each in question.answers.items()} | WORDS
            self._print(", ".join(f"{one_line(named[key])} ({key})" for key in question.offered) + "?")

    def _list_rows(self) -> None:
        picker = self._picking
        if picker is None:
            return
        self._print(picker.title)
        for number, row in enumerate(picker.found, 1):
            mark = f"{number}." if row.usable else "cannot be used:"
            self._print(f"{mark} {row.label}{', ' if row.detail else ''}{row.detail}")
        self._print("Type a number, or words to filter by; an empty line leaves.")

    def _read(self) -> None:
        piece = os.read(sys.stdin.fileno(), 1 << 16)
        if not piece:
            self._leave(0)
            return
        *lines, self._unread = (self._unread + piece).split(b"\n")
        for line in lines:
            self._line(line.decode("utf-8", "replace"))
            self._show()

    def _line(self, line: str) -> None:
        if self._next is not None:
            take, self._next = self._next, None
            take(line)
        elif self._picking is not None:
            self._pick(line.strip())
        elif self._asked is not None and self._answerable:
            self._answer(self._asked, line)
        elif self._asked is not None and self._asked.read_key(line):
            self._print(f"typed before the question, and not taken: {one_line(line)}")
        elif line.strip() or self._talk.can_go_on:
            self._send(line)

    def _send(self, line: str) -> None:
        text, attachments = self._composer.expand(line)
        waiting = len(self._talk.queued)
        self._talk.submit(text.strip(), attachments)
        if len(self._talk.queued) > waiting and (self._talk.working or self._asked):
            self._print(f"queued: {one_line(text)}")
        if not self._talk.working:
            self._show()

    def _answer(self, question: Pending, line: str) -> None:
        if question.is_text:
            self._talk.answer(line)
            return
        key = question.read_key(line)
        if key is None and line.strip():
            # A line that is no answer is for the agent.
            self._send(line)
            self._ask()
        elif key not in question.offered:
            self._ask()
        elif key == "e":
            self._edit(question)
        elif text := self._talk.press(key):
            self._read_next(*text)
        else:
            self._show()
            if self._talk.question is question and self._talk.picker is None:
                self._ask()

    def _read_next(self, label: str, take: Callable[[str], None]) -> None:
        self._print(label)
        self._next = take

    def _edit(self, question: Pending) -> None:
        text, suffix = question.edited_text()
        editor = find_editor(self._settings.editor)
        if not editor:
            self._edited = []
            self._print(*text.split("\n"))
            self._read_next("Type the new text; a line that holds only a dot ends it:", self._edited_line)
            return
        try:
            self._talk.edit(edit_text(editor, text, suffix, self._changeable))
        except ValueError as error:
            self._print(f"Not taken: {error}")
            self._ask()

    def _edited_line(self, line: str) -> None:
        if line.strip() == ".":
            self._talk.edit("\n".join(self._edited))
            return
        self._edited.append(line)
        self._next = self._edited_line

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
        self._talk.picker = self._picking = None
        if row is not None:
            picker.picked(row.value)
        elif self._asked:
            self._ask()

    def _prompt(self) -> None:
        self._print("Ready.")

    def _print(self, *lines: str) -> None:
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()

    def _name_long_calls(self) -> None:
        now = self._talk.transcript.clock()
        for call in self._talk.transcript.calls.values():
            if now - call.since >= _LONG and id(call) not in self._named:
                self._named.add(id(call))
                self._print(f"running: {one_line(call.line)}")
        asyncio.get_running_loop().call_later(1.0, self._name_long_calls)

    def _interrupt(self) -> None:
        now = time.monotonic()
        if now - self._interrupted_at < _AGAIN:
            self._leave(0)
            return
        self._interrupted_at = now
        self._talk.stop()
        self._next = self._picking = self._talk.picker = None
        self._print("Ctrl-C again leaves.")
        self._show()

    def _ended(self) -> None:
        how, tail = self._link.describe_end()
        self._talk.lose_worker()
        if self._talk.failed is None:
            self._talk.transcript.add("error", how)
            self._talk.transcript.add("dim", tail)
        self._show()
        self._leave(self._talk.failed or Exit.FAILED)

    def _leave(self, code: int) -> None:
        if self._end and not self._end.done():
            self._end.set_result(code)

    def _failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if self._end and not self._end.done():
            self._end.set_exception(context.get("exception") or RuntimeError(str(context.get("message"))))

    def _ignore_theme(self, theme: str) -> None:
        self._print("Nothing is coloured here.")
