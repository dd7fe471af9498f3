"""Show the conversation line after line: for screen readers, logs and terminals without a cursor."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shutil import get_terminal_size
from typing import Final

from deepagents_cli.errors import Exit
from deepagents_cli.project.settings import merge, read_user
from deepagents_cli.protocol import Open, Ready, ToScreen
from deepagents_cli.text import one_line
from deepagents_cli.views.chat.input.composer import Composer
from deepagents_cli.views.chat.worker.link import Link
from deepagents_cli.views.chat.worker.process import WorkerProcess
from deepagents_cli.views.conversation.chat import Chat
from deepagents_cli.views.conversation.notify import Notifier
from deepagents_cli.views.conversation.thinking import Thinking
from deepagents_cli.views.lines import Lines
from deepagents_cli.views.rendering.render import Renderer
from deepagents_cli.views.terminal.editor import find_editor
from deepagents_cli.views.terminal.theme import find_look
from deepagents_cli.views.worktrees import leave_worktree

_AGAIN: Final = 2.0
_WIDTH: Final = 80


def talk(opening: Open, worker: Sequence[str]) -> int:
    """Talk by lines until the person leaves; return the exit code."""
    link = Link(WorkerProcess(worker), opening)
    plain = _Plain(link, Path(opening.directory), opening.options["write"])
    code = asyncio.run(plain.run())
    if plain.talk.ready is not None:
        leave_worktree(Path(plain.talk.ready.directory), asks=not code)
    return code


class _Plain(Lines):
    def __init__(self, link: Link, directory: Path, writable: Sequence[Path]) -> None:
        self._link = link
        settings = merge(read_user(Path.home()))
        changeable = (directory, *(writable or settings.write))
        look = replace(find_look(), colours=False, styled=False, prompt="> ", done="ok", failed="!!")
        super().__init__(
            Chat(
                link.send,
                set_theme=self._ignore_theme,
                leave=self.end,
                stop_key="Ctrl-C",
                streams=True,
                thinking=Thinking(settings.reasoning, "/result shows all"),
            ),
            lambda: Renderer(look, min(_WIDTH, get_terminal_size().columns)),
            sys.stdout,
            editor=find_editor(settings.editor),
            changeable=changeable,
        )
        self._composer = Composer(directory, changeable)
        # A screen reader may say what a terminal without a cursor is sent.
        can_ring = sys.stdout.isatty() and os.environ.get("TERM") not in (None, "", "dumb")
        self._notifier = Notifier(settings.notify if can_ring else "off", directory.name, self.put)
        self._interrupted_at = 0.0
        self._ready = False

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        self.over = loop.create_future()
        self._link.attach(loop, self._take, self._ended)
        loop.add_reader(sys.stdin.fileno(), self.read)
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.end, Exit.STOPPED)
        loop.set_exception_handler(self.fail)
        self.name_long_calls()
        try:
            return await self.over
        finally:
            loop.remove_reader(sys.stdin.fileno())
            self._link.close()
            if self.talk.way_on:
                self.print(f"Go on with: {self.talk.way_on}")

    def end_input(self) -> None:
        self.end()

    def take_line(self, line: str) -> None:
        """Send a line to the agent."""
        if not (line.strip() or self.talk.can_go_on):
            return
        waiting = len(self.talk.queued)
        text, attachments = self._composer.expand(line)
        if line.startswith("!"):
            self.talk.run(line[1:])
        else:
            self.talk.submit(text.strip(), attachments)
        if len(self.talk.queued) > waiting and (self.talk.working or self.asked):
            self.print(f"queued: {one_line(text)}")
        if not self.talk.working:
            self.show()

    def _take(self, message: ToScreen) -> None:
        queued = list(self.talk.queued)
        was_working = self.talk.working
        if isinstance(message, Ready):
            # A session may work in a worktree.
            self._changeable = (*self._changeable, Path(message.directory))
            self._composer.move(Path(message.directory))
        self.talk.take(message)
        self._notifier.see(self.talk, message)
        self.show()
        for text in [*self.talk.taken_back, *self.talk.refused]:
            self.print(f"taken back: {one_line(text)}")
        self.talk.taken_back, self.talk.refused = [], []
        if self.talk.queued != queued:
            for text in self.talk.queued:
                self.print(f"queued: {one_line(text)}")
        if self.talk.ready and not self.talk.working and (was_working or not self._ready):
            self._ready = True
            self.print("Ready.")

    def _interrupt(self) -> None:
        if self.talk.stop_run() or self.talk.cancel_question():
            self.show()
            return
        now = time.monotonic()
        if now - self._interrupted_at < _AGAIN:
            self.end()
            return
        self._interrupted_at = now
        self.talk.stop()
        self.forget_answers()
        self.print("Ctrl-C again leaves.")
        self.show()

    def _ended(self) -> None:
        how, tail = self._link.describe_end()
        self.talk.lose_worker()
        if self.talk.failed is None:
            self.talk.transcript.add("error", how)
            self.talk.transcript.add("dim", tail)
        self.show()
        self.end(self.talk.failed or Exit.FAILED)

    def _ignore_theme(self, theme: str) -> None:
        self.print("Nothing is coloured here.")
