"""Show the conversation at a terminal: finished blocks in the scrollback, below them what still changes."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from prompt_toolkit.application import Application, get_app, in_terminal, run_in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Always, Condition, Filter
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import ColorDepth

from deepagents_cli.errors import Exit
from deepagents_cli.project.settings import merge, read_user
from deepagents_cli.protocol import Choice, Ready, ToScreen, Whole
from deepagents_cli.text import one_line
from deepagents_cli.values import Mode
from deepagents_cli.views.chat.input.keyboard import open_keyboard, open_output
from deepagents_cli.views.chat.input.line import InputLine
from deepagents_cli.views.chat.input.patience import Patience
from deepagents_cli.views.chat.screen.drawing import Drawing
from deepagents_cli.views.chat.screen.layout import Entry, View
from deepagents_cli.views.chat.screen.pager import Pager
from deepagents_cli.views.chat.worker.link import Link
from deepagents_cli.views.conversation.chat import Chat
from deepagents_cli.views.conversation.notify import REPORT_FOCUS, REPORT_NO_FOCUS, Notifier
from deepagents_cli.views.conversation.picker import Picker
from deepagents_cli.views.conversation.questions import Pending
from deepagents_cli.views.conversation.thinking import Thinking
from deepagents_cli.views.rendering.render import Renderer, warm_up
from deepagents_cli.views.terminal.editor import edit_text, find_editor
from deepagents_cli.views.terminal.theme import ask_background, find_look

Start: TypeAlias = Callable[[Ready | None, Mode | None], Link]
"""Starts another worker, with the thread and the mode that are open."""
_Binding: TypeAlias = tuple[str, Filter, Callable[[KeyPressEvent], Any]]
"""One key, or several in a row; when it counts; what it does."""
_PAGE: Final = 8
"""Rows of a picker."""
_SPIN: Final = 0.1
_IN_A_ROW: Final = 1.0
"""Seconds between two Esc of a person who wants to stop something."""
_AGAIN: Final = 2.0
"""Seconds in which a second Ctrl-C leaves, and a second Esc goes back."""


class Screen:
    """Draws a conversation with prompt_toolkit, and hands it what the person does."""

    def __init__(
        self, start: Start, link: Link, directory: Path, typed: int, writable: Sequence[Path] = ()
    ) -> None:
        self._settings = merge(read_user(Path.home()))
        self.talk = Chat(
            link.send,
            set_theme=self._set_theme,
            leave=self.leave,
            clear=self.clear,
            thinking=Thinking(self._settings.reasoning, "Ctrl-O shows all"),
        )
        self._link = link
        self._start = start
        self._changeable = (directory, *(writable or self._settings.write))
        self.input = InputLine(
            directory, self._changeable, lambda: self.talk.commands, self._forget_interrupt
        )
        self.line = Buffer(multiline=True, name="line", on_text_changed=lambda _: self._filter())
        self.renderer = Renderer(find_look(self._settings.theme), 80)
        self._patience = Patience(self._ready_to_answer, lambda: bool(self.input.text))
        self._output = open_output()
        self._notifier = Notifier(self._settings.notify, directory.name, self._output.write_now)
        self.drawing = Drawing(
            self.talk, self.renderer, self._output, self._draw, lambda: self._patience.is_typing
        )
        self.view = View(
            self.talk, self.renderer, self.drawing, self._output, self.input, self.line, lambda: self.is_asked
        )
        self.app: Application[int] = Application(
            layout=self.view.layout,
            key_bindings=_make_keys(self),
            input=open_keyboard(self._found_background, self._found_focus, typed),
            output=self._output,
            erase_when_done=True,
            color_depth=lambda: None if self.renderer.look.colours else ColorDepth.DEPTH_1_BIT,
            include_default_pygments_style=False,
            # What is drawn is limited here; a key is drawn at once, however busy the loop is.
            max_render_postpone_time=None,
        )
        self.app.ttimeoutlen = 0.05
        self.app.timeoutlen = 0.15
        self.app.before_render += self._focus
        self.app.before_render += self.drawing.note_size
        self.app.key_processor.before_key_press += self._patience.note_key
        self._interrupted_at = self._escaped_at = self._stopped_at = 0.0
        self._picking: Picker | None = None
        self._pager: Pager | None = None
        self._away = False
        self._gone = False

    @property
    def is_asked(self) -> bool:
        """Whether the next line may answer a question."""
        return self._patience.is_over(self.talk.question)

    async def run(self) -> int:
        """Talk until the person leaves; return the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.leave, Exit.STOPPED)
        self._link.attach(loop, self._take, self._ended)
        # What startup has painted is drawn again.
        self.app.output.write_raw("\r\x1b[J" + ask_background(self.renderer.look) + self._focus_reports)
        try:
            return await self.app.run_async(pre_run=self._begin, handle_sigint=False)
        finally:
            for number in (signal.SIGTERM, signal.SIGHUP):
                loop.remove_signal_handler(number)
            self.drawing.stop()
            self._output.write_now(REPORT_NO_FOCUS)
            self._link.close()
            if self.talk.way_on:
                sys.stdout.write(f"Go on with: {self.talk.way_on}\n")
                sys.stdout.flush()

    def changed(self) -> None:
        """Draw soon."""
        if not self._gone:
            self.drawing.soon()

    def submit(self) -> None:
        """Send what stands in the input line; a backslash at its end begins a new line instead."""
        typed = self.input.text
        if typed.endswith("\\") and self.input.cursor_position == len(typed):
            self.input.delete_before_cursor()
            self.input.insert_text("\n")
            return
        if not typed.strip() and not self.talk.can_go_on:
            return
        if (question := self.talk.question) and (key := question.read_key(typed)):
            self._answer(question, key)
            return
        if self._link.ended:
            self._begin_again()
        text, attachments = self.input.take()
        # By what is seen: what a folded paste begins with would run unread.
        taken = self.talk.run(text[1:]) if typed.startswith("!") else self.talk.submit(text, attachments)
        if not taken:
            self.input.offer_again(typed)
        elif self.is_asked:
            self._show_note("sent to the agent; the question still waits for its answer")
        self.changed()

    def _answer(self, question: Pending, key: str) -> None:
        """Answer the question that is on the screen."""
        self.input.reset()
        if not self.is_asked:
            self._show_note("typed before the question could be read: answer again")
        elif key not in question.offered:
            self._show_note("that is not an answer to this question")
        elif key == "e":
            self._edit(question)
        elif text := self.talk.press(key):
            label, take = text
            self._enter(Entry(f"{label} (Esc goes back)", take))
        self.changed()

    def clear(self) -> None:
        """Clear the screen; the scrollback stays."""
        self.app.renderer.clear()
        # Not in the first row: a tmux that is to erase a whole screen keeps it as history.
        self._output.write_raw("\n")
        self.drawing.clear()
        self.changed()

    def escape(self) -> None:
        """Leave what is open: an entry, a picker, a completion; else stop the present step.

        Where nothing is to be left or stopped, and nothing is typed, the second one in a row goes back.
        """
        before, self._escaped_at = self._escaped_at, 0.0
        if self.view.entry is not None:
            is_text = self.talk.question is not None and self.talk.question.is_text
            self.view.entry = None
            self._focus()
            if is_text:
                self.talk.stop()
        elif self.view.mode == "picker":
            self.talk.picker = None
        elif self.input.complete_state:
            self.input.cancel_completion()
        elif self.talk.is_busy or self.input.text:
            self.talk.stop()
            self._stopped_at = time.monotonic()
        elif time.monotonic() - self._stopped_at < _IN_A_ROW:
            # It was meant for what has just ended.
            pass
        elif time.monotonic() - before < _AGAIN:
            self._show_note("")
            self.talk.command("rewind")
        else:
            self._escaped_at = time.monotonic()
            self._show_note("Esc again: go back to before one of your messages")
        self.changed()

    def interrupt(self) -> None:
        """Stop the command of the person; else clear the input, and leave when it comes again at once."""
        if self.talk.stop_run():
            return
        now = time.monotonic()
        if now - self._interrupted_at < _AGAIN:
            self.leave(0)
            return
        self.app.current_buffer.reset()
        self._interrupted_at = now
        self._show_note("Ctrl-C again leaves")

    def leave(self, code: int) -> None:
        """End the conversation."""
        if self.app.is_running and not self._gone:
            self._gone = True
            self._output.held = False
            self.app.exit(result=code)

    def take_back(self) -> None:
        """Take back what the agent has not read yet."""
        self.talk.take_back()
        self.changed()

    def paste(self, text: str) -> None:
        """Take a pasted text, folded where it is long."""
        if self.view.mode == "input":
            self.input.paste(text)
        elif self.view.mode in ("entry", "picker"):
            self.line.insert_text(text.replace("\r\n", "\n").replace("\r", "\n"))

    def paste_picture(self) -> None:
        """Attach the picture in the clipboard."""
        if not self.input.paste_picture():
            self._show_note("no picture to paste, or no wl-paste, xclip or pngpaste")

    def look(self) -> None:
        """Show all of what the last call has returned."""
        if self._link.ended or self.talk.ready is None:
            self._show_note("the agent's process does not run")
        else:
            self.talk.look()

    def search_history(self) -> None:
        """Pick a text that was typed before."""
        texts = dict.fromkeys(reversed(self.input.history.get_strings()))
        rows = [Choice(text, one_line(text)) for text in texts]
        self.talk.picker = self.view.history = Picker("History", rows, self.input.type_again)
        self.changed()

    def move_in_picker(self, by: int) -> None:
        """Go to another row."""
        if self.talk.picker:
            self.talk.picker.move(by)

    def pick(self) -> None:
        """Take the row of the picker."""
        picker = self.talk.picker
        row = picker.current() if picker else None
        if picker and row:
            self.talk.picker = None
            picker.picked(row.value)
            self.changed()

    def end_entry(self) -> None:
        """Take the text that was asked for."""
        if entry := self.view.entry:
            text = self.line.text
            self.view.entry = None
            entry.done(text)
            self.changed()

    def _forget_interrupt(self) -> None:
        # Who types on between two Ctrl-C, or two Esc, has not pressed it twice.
        self._interrupted_at = self._escaped_at = 0.0

    def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._failed)
        # What was imported is not garbage, and to look through it would take longer than a key may.
        gc.freeze()
        # In a thread: the first code of a language takes as long as several keys.
        loop.run_in_executor(None, warm_up)
        self._spin()

    def _spin(self) -> None:
        if self._gone:
            return
        if (
            self.talk.working or self.talk.ready is None or self.talk.transcript.own
        ) and not self._link.ended:
            self.changed()
        asyncio.get_running_loop().call_later(_SPIN, self._spin)

    def _take(self, message: ToScreen) -> None:
        if isinstance(message, Whole):
            self._show_whole(message)
            return
        if isinstance(message, Ready):
            # A session may work in a worktree.
            directory = Path(message.directory)
            self._changeable = (*self._changeable, directory)
            self.input.move(directory)
        self.talk.take(message)
        self._notifier.see(self.talk, message)
        self.changed()

    def _show_whole(self, whole: Whole) -> None:
        if self._pager is not None:
            self._pager.show(whole)
        elif not whole.title:
            self._show_note("nothing was returned or thought yet")
        elif not self._away:
            self._away = True
            self.app.create_background_task(self._page(whole))

    async def _page(self, whole: Whole) -> None:
        self._pager = Pager(whole, self.talk.look, self.app, lambda: self.talk.question is not None)
        try:
            async with in_terminal():
                await self._pager.app.run_async(handle_sigint=False)
        finally:
            self._pager, self._away = None, False
            self.changed()

    def _draw(self) -> None:
        if self._pager is not None:
            self._pager.app.invalidate()
        if self._away or self._gone:
            return
        if self.talk.taken_back:
            typed = [self.input.text] if self.input.text else []
            self.input.type_again("\n".join([*self.talk.taken_back, *typed]))
            self.talk.taken_back = []
        if self.talk.refused and self.input.text:
            self._show_note("Up brings back what was not taken")
        elif self.talk.refused:
            self.input.offer_again("\n".join(self.talk.refused))
        self.talk.refused = []
        self._patience.show(self.talk.question)
        self.drawing.show(self.app, steady=self.talk.working or bool(self.input.text))

    def _ready_to_answer(self, question: Pending) -> None:
        if question.is_text:
            self._enter(Entry("Answer:", self.talk.answer))
        self.changed()

    def _focus(self, _: object = None) -> None:
        """Have the keys go where what is drawn says that they go."""
        self._output.held = False
        if self.talk.picker is not self._picking:
            self._picking = self.talk.picker
            self.line.reset()
        wanted = self.input if self.view.mode == "input" else self.line
        if not self.app.layout.has_focus(wanted):
            self.app.layout.focus(wanted)

    def _filter(self) -> None:
        if self.talk.picker is not None and self.view.entry is None:
            self.talk.picker.type(self.line.text)

    def _enter(self, entry: Entry, text: str = "") -> None:
        self.view.entry = entry
        self.line.reset()
        self.line.text = text
        self.line.cursor_position = len(text)
        self._focus()

    def _edit(self, question: Pending) -> None:
        text, suffix = question.edited_text()
        editor = find_editor(self._settings.editor)
        if editor:
            self.app.create_background_task(self._edit_in(editor, text, suffix))
        else:
            self._enter(Entry("Ctrl-S takes it, Esc leaves it as it was", self.talk.edit, long=True), text)

    async def _edit_in(self, editor: str, text: str, suffix: str) -> None:
        self._away = True
        try:
            async with in_terminal():
                # The editor would take a report for keys.
                self._output.write_now(REPORT_NO_FOCUS)
                edited = await asyncio.to_thread(edit_text, editor, text, suffix, self._changeable)
        except ValueError as error:
            self.talk.transcript.add("error", f"Not taken: {error}")
        else:
            self.talk.edit(edited)
        finally:
            self._away = False
            self._output.write_now(self._focus_reports)
            self.changed()

    def suspend(self) -> None:
        """Give the shell the terminal, until the person comes back."""
        self._output.write_now(REPORT_NO_FOCUS)
        stopped = asyncio.ensure_future(run_in_terminal(partial(os.kill, 0, signal.SIGTSTP)))
        stopped.add_done_callback(lambda _: self._output.write_now(self._focus_reports))

    @property
    def _focus_reports(self) -> str:
        return "" if self._settings.notify == "off" else REPORT_FOCUS

    def _set_theme(self, theme: str) -> None:
        self.renderer.look = self.renderer.look.themed(theme)
        self.changed()

    def _found_focus(self, has_focus: bool) -> None:
        self._notifier.has_focus = has_focus

    def _found_background(self, dark: bool) -> None:
        if self.renderer.look.colours and self._settings.theme == "auto":
            self._set_theme("dark" if dark else "light")

    def _show_note(self, note: str) -> None:
        self.view.note = note
        if note:
            asyncio.get_running_loop().call_later(_AGAIN, self._show_note, "")
        self.changed()

    def _ended(self) -> None:
        """Say how the worker ended; the next message starts another one with the same thread."""
        how, tail = self._link.describe_end()
        failed, opened = self.talk.failed, self.talk.ready is not None
        self.talk.lose_worker()
        if failed is not None and not opened:
            # There is nothing to talk with, and the person was told why.
            self.drawing.now()
            self.leave(failed)
            return
        if failed is not None:
            how, tail = "The agent's process has ended.", ""
        self.talk.transcript.add("error", how)
        if tail:
            self.talk.transcript.add("dim", tail)
        self.talk.transcript.add("notice", "Send a message: it starts the agent again.")
        if self.talk.way_on:
            self.talk.transcript.add("notice", f"Or go on later with: {self.talk.way_on}")
        self.changed()

    def _begin_again(self) -> None:
        self._link.close()
        mode = self.talk.status.mode if self.talk.status else None
        # To start in mode full gives commands more than to choose it later.
        self._link = self._start(self.talk.ready, mode if mode != "full" else None)
        self.talk.reopen(self._link.send)
        self._link.attach(asyncio.get_running_loop(), self._take, self._ended)

    def _failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if self.app.is_running and not self._gone:
            self._gone = True
            self.app.exit(exception=error or RuntimeError(str(context.get("message"))))


def _make_keys(screen: Screen) -> KeyBindings:
    """Make the bindings of a screen; of several that count, the later one wins."""
    keys = KeyBindings()
    for key, when, act in (*_anywhere(screen), *_at_input(screen), *_in_picker(screen), *_in_entry(screen)):
        keys.add(*key.split(), filter=when)(act)
    return keys


def _anywhere(screen: Screen) -> Iterator[_Binding]:
    yield "c-c", Always(), lambda _: screen.interrupt()
    yield "c-d", Condition(lambda: not get_app().current_buffer.text), lambda _: screen.leave(0)
    yield "escape", Always(), lambda _: screen.escape()
    yield "c-z", Always(), lambda _: screen.suspend()
    yield "c-o", Always(), lambda _: screen.look()
    yield "c-l", Always(), lambda _: screen.clear()
    yield Keys.BracketedPaste.value, Always(), lambda event: screen.paste(event.data)


def _at_input(screen: Screen) -> Iterator[_Binding]:
    at_input = Condition(lambda: screen.view.mode == "input")
    can_take_back = Condition(lambda: bool(screen.talk.queued) and not screen.input.text)
    yield "enter", at_input, lambda _: screen.submit()
    yield "enter", at_input & Condition(lambda: _has_chosen(screen.input)), lambda _: _choose(screen.input)
    yield "c-j", at_input, lambda _: screen.input.insert_text("\n")
    yield "escape enter", at_input, lambda _: screen.input.insert_text("\n")
    yield "up", at_input & can_take_back, lambda _: screen.take_back()
    yield "c-r", at_input, lambda _: screen.search_history()
    yield "c-v", at_input, lambda _: screen.paste_picture()
    yield "tab", at_input, lambda _: _complete(screen.input)
    yield "s-tab", at_input, lambda _: screen.talk.go_to_next_mode()
    completing = Condition(lambda: screen.input.complete_state is not None)
    yield "s-tab", at_input & completing, lambda _: screen.input.complete_previous()


def _in_picker(screen: Screen) -> Iterator[_Binding]:
    picking = Condition(lambda: screen.view.mode == "picker")
    yield "enter", picking, lambda _: screen.pick()
    for key, by in {"up": -1, "c-p": -1, "down": 1, "c-n": 1, "pageup": -_PAGE, "pagedown": _PAGE}.items():
        yield key, picking, lambda _, by=by: screen.move_in_picker(by)


def _in_entry(screen: Screen) -> Iterator[_Binding]:
    entering = Condition(lambda: screen.view.mode == "entry")
    one_line = Condition(lambda: screen.view.entry is not None and not screen.view.entry.long)
    yield "enter", entering & one_line, lambda _: screen.end_entry()
    yield "c-s", entering, lambda _: screen.end_entry()
    yield "c-j", entering, lambda _: screen.line.insert_text("\n")


def _has_chosen(buffer: Buffer) -> bool:
    state = buffer.complete_state
    return state is not None and state.current_completion is not None


def _choose(buffer: Buffer) -> None:
    buffer.complete_state = None


def _complete(buffer: Buffer) -> None:
    state = buffer.complete_state
    if state and len(state.completions) == 1:
        # Nothing is left to choose, and Enter sends.
        buffer.apply_completion(state.completions[0])
    elif state:
        buffer.complete_next()
    else:
        buffer.start_completion(select_first=True)
