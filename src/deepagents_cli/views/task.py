"""Show one task: its events as text, as JSON or as the answer alone; it is over with the first turn."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Literal, TypeAlias

from deepagents.events import Event, FinalAnswer, LimitReached, RunFailed, RunStarted, RunStopped
from deepagents_cli import protocol
from deepagents_cli.errors import complain, exit_at_next_interrupt
from deepagents_cli.project.settings import merge, read_user
from deepagents_cli.session.agent.schema import fits
from deepagents_cli.terminal import make_console
from deepagents_cli.text import clean, one_line
from deepagents_cli.views.conversation.chat import Chat
from deepagents_cli.views.conversation.questions import Pending, read_question
from deepagents_cli.views.conversation.thinking import Thinking
from deepagents_cli.views.conversation.transcript import Block
from deepagents_cli.views.lines import Lines
from deepagents_cli.views.region import Region
from deepagents_cli.views.terminal.editor import find_editor
from deepagents_cli.views.terminal.startup import can_encode, is_plain
from deepagents_cli.views.terminal.theme import find_look

if TYPE_CHECKING:
    from deepagents_cli.views.rendering.render import Renderer

Form: TypeAlias = Literal["text", "json", "answer"]
_REFUSED: Final = (
    "Refused: this call needs a person's approval and nobody can be asked. Do not try again; say in your "
    "answer what you would have done."
)
_NOT_ANSWERED: Final = "Nobody can be asked. Decide by yourself, and say in your answer what you decided."


def write_json(event: Event, out: IO[str]) -> None:
    """Write an event as one line of JSON, and flush it."""
    # `json` escapes all control characters but this one, and a terminal may show the output too.
    line = json.dumps(event.as_dict(), default=str).replace("\x7f", "\\u007f")
    out.write(f"{line}\n")
    out.flush()


def write_answer(event: Event, out: IO[str]) -> None:
    """Write the answer alone; to a program as it is, and to a terminal so that it cannot steer it."""
    if isinstance(event, FinalAnswer):
        out.write(f"{clean(event.text) if out.isatty() else event.text}\n")
        out.flush()


class TaskView(Lines):
    """Shows the work on a task, and notes what decides about the exit code.

    A person is asked only where one sees the question and types the answer: what a pipe answers is not
    approval. Otherwise calls are refused, or with `approves` approved. At a terminal that can draw, the
    answer is rendered, and what still changes stands below it.
    """

    def __init__(
        self,
        form: Form,
        directory: Path,
        writable: Sequence[Path] = (),
        schema: dict[str, Any] | None = None,
        *,
        approves: bool = False,
    ) -> None:
        out = sys.stdout if form == "text" else sys.stderr
        settings = merge(read_user(Path.home()))
        # An answer that fits a schema is JSON, whose characters are not marks of Markdown.
        draws = form == "text" and not schema and _can_draw(out)
        super().__init__(
            Chat(
                self._send,
                set_theme=lambda theme: None,
                leave=lambda code: None,
                stop_key="Ctrl-C",
                stops_again="ends at once",
                streams=True,
                raw=not draws,
                thinking=Thinking(settings.reasoning),
            ),
            lambda: _make_renderer(out, settings.theme),
            out,
            editor=find_editor(settings.editor),
            changeable=(directory, *(writable or settings.write)),
        )
        self._form = form
        self._schema = schema
        self._approves = approves
        self._region = Region(out, self._draw) if draws else None
        self._takes: Callable[[protocol.AtOnce], None] | None = None
        self._can_ask = sys.stdin.isatty() and out.isatty()
        self._in_text = self._in_a_line = False
        self.began = self.stopped = False
        self.refused = 0
        """The calls that nobody could be asked about."""
        self.structured: Any = None
        self.reached: LimitReached | None = None
        self.broken: str | None = None

    @contextmanager
    def attached(self, takes: Callable[[protocol.AtOnce], None]) -> Generator[asyncio.Future[int]]:
        """Show a session that takes messages; yield what is done when it is idle, or cannot be shown."""
        loop = asyncio.get_running_loop()
        self._takes, self.over = takes, loop.create_future()
        # A shell starts background jobs with SIGINT ignored.
        before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
        heard = [each for each, handler in before.items() if handler != signal.SIG_IGN]
        for number in heard:
            # Of the loop, which a signal wakes even in the moment before it begins to wait.
            loop.add_signal_handler(number, self._stop, number == signal.SIGINT)
        loop.set_exception_handler(self.fail)
        if self._region is None:
            self.name_long_calls()
        else:
            self._region.start()
        try:
            yield self.over
        finally:
            self.wait_for_answer(is_asked=False)
            if self._region is not None:
                self._region.stop()
            for number in heard:
                loop.remove_signal_handler(number)
                signal.signal(number, before[number])
            if self.stopped:
                exit_at_next_interrupt()

    def take(self, message: protocol.ToScreen) -> None:
        """Take a message of the session, which does not wait until it is shown."""
        asyncio.get_running_loop().call_soon(self._take, message)

    def end_input(self) -> None:
        """Stop: who ends the input answers nothing more."""
        self._stop()

    def take_line(self, line: str) -> None:
        """Say that a line is not an answer."""
        if self.answerable:
            self.print("That is not an answer. `n` refuses, and asks for words to the agent.")
        else:
            self.print(f"Typed before the question, and not taken: {one_line(line)}")

    def print_block(self, block: Block) -> None:
        """Print a block; text that is passed on as it comes may leave its line open."""
        if block.kind != "raw":
            self.print(*self.renderer.blocks([block]))
            return
        if not (block.follows and self._in_text):
            block = replace(block, follows=False)
            self.end_line()
        text = "\n".join(self.renderer.blocks([block]))
        self.put(text)
        self._in_text, self._in_a_line = True, not text.endswith("\n")

    def print(self, *lines: str) -> None:
        """Print lines, below a line that is still open."""
        self.end_line()
        self._in_text = False
        self.put("".join(f"{line}\n" for line in lines))

    def print_offer(self, question: Pending) -> None:
        """Print which keys answer, and leave the cursor behind them."""
        self.end_line()
        self.put(self.renderer.line(" ".join([*question.offered.values(), "?"]), "bold") + " ")
        self._in_a_line = True

    def end_line(self) -> None:
        """End the line that is being written."""
        if self._region is not None:
            self._region.erase()
        if self._in_a_line:
            self._in_a_line = False
            self.put("\n")

    def read(self) -> None:
        """Read what was typed; the terminal has ended the line."""
        self._in_a_line = False
        super().read()

    def wait_for_answer(self, *, is_asked: bool) -> None:
        """Read only while a question waits: what is typed otherwise is for the shell."""
        if self._can_ask and is_asked:
            asyncio.get_running_loop().add_reader(sys.stdin.fileno(), self.read)
        elif self._can_ask:
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())

    def note_end(self, work: asyncio.Task[None]) -> None:
        """Note that what was to be shown has failed, or was cancelled."""
        if work.cancelled():
            self.end()
        elif error := work.exception():
            self.fail(work, {"exception": error})

    def finish(self, describe_use: Callable[[], str]) -> None:
        """Say what the run took."""
        if self.began and self._form == "text":
            took = ", ".join(filter(None, [describe_use(), f"{self.talk.clock.worked:.1f} s"]))
            self.print("", self.renderer.line(took, "dim"))

    def _take(self, message: protocol.ToScreen) -> None:
        match message:
            case protocol.Ready():
                self.talk.ready = message
                for notice in message.notices:
                    self._complain(notice)
            case protocol.Notice(text=text):
                self._complain(text)
            case protocol.Happened():
                self._happened(message)
            case protocol.Ask() | protocol.Question():
                self._ask(message)
            case protocol.Idle():
                self.talk.end_turn()
                self.end()
            case protocol.Queued() | protocol.Working():
                self.talk.take(message)
            case _:
                pass
        self.show()

    def _happened(self, message: protocol.Happened) -> None:
        event = self._note(message.event)
        if event is None:
            return
        if self._form == "json":
            write_json(event, sys.stdout)
        elif self._form == "answer":
            write_answer(event, sys.stdout)
        elif isinstance(event, RunStarted):
            self._begin(event)
        elif not isinstance(event, RunStopped | RunFailed):
            # What was changed is in the files; a log of it would be long.
            self.talk.take(replace(message, event=event, details=()))

    def _note(self, event: Event) -> Event | None:
        """Note what decides about the exit code; return the event as it is shown, `None` if it is not."""
        match event:
            case LimitReached(agent=None):
                self.reached = event
            case FinalAnswer():
                self.broken = event.broken
                if self._schema:
                    # A program that reads this output is never given another form.
                    if not fits(event.structured, self._schema):
                        return None
                    self.structured = event.structured
                    return replace(event, text=json.dumps(self.structured, ensure_ascii=False))
            case _:
                pass
        return event

    def _begin(self, event: RunStarted) -> None:
        from deepagents_cli.views.rendering.render import fit

        self.began = True
        dot = f" {self.renderer.look.dot} "
        parts = [event.model, f"thread {event.thread}", "resumed" if event.resumed else None, event.directory]
        head = dot.join(map(one_line, filter(None, parts)))
        self.talk.transcript.add("dim", fit(head, self.renderer.width))

    def _ask(self, message: protocol.Ask | protocol.Question) -> None:
        if not self._can_ask:
            self._answer_unasked(message)
            return
        self.talk.take(message)
        if self._form != "text":
            # Here the transcript does not learn how a call ends.
            self.talk.transcript.calls.clear()

    def _answer_unasked(self, asked: protocol.Ask | protocol.Question) -> None:
        if isinstance(asked, protocol.Question):
            self._send(protocol.Answer(asked.id, _NOT_ANSWERED))
            return
        if self._approves:
            block = Block("dim", "Answered with yes, since there is no terminal to ask at.")
            self.talk.transcript.finished += [*read_question(asked).show(), block]
            self._send(protocol.Decide(asked.id, "approve"))
            return
        self.refused += 1
        if self._form == "text":
            self.talk.transcript.add("notice", f"Refused, since nobody can be asked: {asked.line}")
        self._send(protocol.Decide(asked.id, "reject", _REFUSED, unasked=True))

    def _send(self, message: protocol.ToWorker) -> None:
        match message:
            case protocol.Stop() | protocol.Decide() | protocol.Preview() | protocol.Answer() if self._takes:
                self._takes(message)
            case _:
                pass

    def _stop(self, by_key: bool = False) -> None:
        if by_key and self.talk.cancel_question():
            self.show()
            return
        if self.stopped:
            signal.raise_signal(signal.SIGINT)
        self.stopped = True
        # Closing may wait for a request; a person who presses again wants to leave now.
        exit_at_next_interrupt()
        if self.talk.working:
            self.talk.stop_step()
            self.show()
        else:
            self.end()

    def _complain(self, text: str) -> None:
        self.end_line()
        complain(text)

    def _draw(self, columns: int, rows: int) -> list[str]:
        from deepagents_cli.views.rendering.live import draw_live

        self.renderer.width = columns
        if not self.talk.working or self.talk.question:
            return []
        piece = self.talk.transcript.open_piece(1)
        above = [""] if piece and not piece.continues and rows > 1 else []
        return [*above, *draw_live(self.talk, self.renderer, rows)]


def _make_renderer(out: IO[str], theme: str) -> Renderer:
    from deepagents_cli.views.rendering.render import Renderer

    console = make_console(out)
    without = {} if console.color_system else {"styled": False, "colours": False}
    return Renderer(replace(find_look(theme), **without), console.width)


def _can_draw(out: IO[str]) -> bool:
    # With FORCE_COLOR, rich says of a pipe too that it is a terminal.
    return out.isatty() and can_encode("✓") and not is_plain() and not os.environ.get("NO_COLOR")
