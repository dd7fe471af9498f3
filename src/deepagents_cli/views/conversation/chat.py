"""Hold a conversation: what the worker says becomes blocks and questions, what the person does messages."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Final

from deepagents_cli import protocol
from deepagents_cli.project.state import is_kept
from deepagents_cli.text import one_line
from deepagents_cli.values import SCOPES, Scope
from deepagents_cli.views.conversation.clock import WorkClock
from deepagents_cli.views.conversation.commands import OWN_COMMANDS, read_command, show_help
from deepagents_cli.views.conversation.picker import Picker
from deepagents_cli.views.conversation.questions import Pending, read_question
from deepagents_cli.views.conversation.status import describe_session
from deepagents_cli.views.conversation.thinking import Thinking
from deepagents_cli.views.conversation.transcript import Kind, Transcript
from deepagents_cli.views.terminal.theme import THEMES

_PAST: Final[Mapping[str, Kind]] = {
    "person": "person", "agent": "markdown", "tool": "dim", "command": "preformatted",
}  # fmt: skip
_ENDS: Final[Mapping[protocol.End, str]] = {
    "done": "",
    "stopped": "Stopped. What is done is kept.",
    "limited": "Stopped at a limit.",
    "failed": "The turn has failed.",
}


class Chat:
    """Knows what is going on; a front end shows it, and calls a method for what the person does."""

    def __init__(
        self,
        send: Callable[[protocol.ToWorker], None],
        *,
        set_theme: Callable[[str], None],
        leave: Callable[[int], None],
        clear: Callable[[], None] = lambda: None,
        stop_key: str = "Esc",
        stops_again: str = "stops again",
        clock: Callable[[], float] = time.monotonic,
        streams: bool = False,
        raw: bool = False,
        thinking: Thinking | None = None,
    ) -> None:
        self.ready: protocol.Ready | None = None
        self.status: protocol.Status | None = None
        self.queued: list[str] = []
        self.taken_back: list[str] = []
        self.refused: list[str] = []
        """What was sent and could not be taken."""
        self.working = False
        self.failed: int | None = None
        self.picker: Picker | None = None
        self.questions: deque[Pending] = deque()
        self.clock = WorkClock(clock, lambda: self.working, lambda: bool(self.questions))
        self.transcript = Transcript(
            self.clock.now, thinking=thinking or Thinking(), streams=streams, raw=raw
        )
        self._send = send
        self._set_theme = set_theme
        self._leave = leave
        self._clear = clear
        self.stop_key, self.stops_again = stop_key, stops_again
        self._held: list[tuple[str, Callable[[], bool]]] = []
        """What was typed while nothing is open yet, and what takes it then."""
        self._stops_run = self._cancelled = False
        self._clearing = 0
        """The command that begins a session on a clear screen, until it has ended."""
        self._kept = 0
        """How many of the queued texts the worker has kept in its record."""
        self._begins = False
        """Whether a text is on its way that begins a turn."""
        self.is_stopping = False
        """Whether the worker was asked to stop the turn, which is not over yet."""
        self._asked: dict[int, tuple[str, Sequence[str]]] = {}
        """The commands that the worker carries out, by their numbers, and what was attached to them."""
        self._number = self._stopped = 0
        """Those up to the number that is stopped send, offer and propose nothing any more."""
        self._begun = False
        self._noted = ""
        self._thread = ""

    @property
    def question(self) -> Pending | None:
        """The question that waits for an answer now."""
        return self.questions[0] if self.questions else None

    @property
    def commands(self) -> dict[str, str]:
        """All slash commands, with what they do."""
        return {**OWN_COMMANDS, **(self.ready.commands if self.ready else {})}

    @property
    def silence(self) -> float:
        """Seconds in which nothing has come from the model, though nothing else runs."""
        return 0.0 if self.transcript.calls or self.questions else self.clock.silence

    @property
    def can_go_on(self) -> bool:
        """Whether an empty line begins a turn: a step was interrupted, or a text waits."""
        return self.ready is not None and (bool(self.queued) or self.ready.waiting) and not self.working

    def take(self, message: protocol.ToScreen) -> None:
        """Take a message of the worker."""
        self.clock.count()
        match message:
            case protocol.Happened():
                self.clock.hear()
                self.transcript.take(message.event, message.line, message.details)
            case protocol.Ask() | protocol.Question() | protocol.Trust():
                self._ask(message)
            case protocol.Status():
                self.status = message
            case protocol.Result():
                self._result(message)
            case protocol.Whole():
                self._whole(message)
            case protocol.Failed():
                self.failed = message.code
                self._say("error", message.text)
            case protocol.Ready():
                self._open(message)
            case _:
                self._turn(message)

    def _turn(self, message: protocol.OfTurn | protocol.OfRun | protocol.PastMessage) -> None:
        match message:
            case protocol.Queued():
                self._queue(message.texts)
            case protocol.TakenBack() | protocol.Refused():
                back = self.refused if isinstance(message, protocol.Refused) else self.taken_back
                back += message.texts
                self.queued, self._kept = [], 0
                self._begins = self.is_stopping = False
            case protocol.Working():
                self.working, self._begins = True, False
                self._noted, self._cancelled = "", False
                self.clock.begin_turn()
                self._queue([])
            case protocol.Idle():
                self._idle(message)
            case protocol.Notice():
                self._noted = message.text
                self._say("notice", message.text)
            case _:
                self._run(message)

    def _run(self, message: protocol.OfRun | protocol.PastMessage) -> None:
        match message:
            case protocol.Running():
                self.transcript.begin_own(message.command, one_line(message.where))
            case protocol.Printed():
                self.transcript.print_own(message.text, message.stream)
            case protocol.Ran():
                self.transcript.end_own(message.output, message.how, failed=message.failed)
            case protocol.PastMessage():
                # A session that is opened has these in `Ready`; editors ask for them one by one.
                pass

    def run(self, command: str) -> bool:
        """Run a command of the person; `False` leaves it where it was typed."""
        if not command.strip() or self.transcript.own:
            why = f"Your command still runs; {self.stop_key} stops it." if command.strip() else ""
            self._say("notice", why or "Write a command behind the !")
            return False
        if self.ready is None:
            self._held.append((f"!{command}", lambda: self.run(command)))
            self.queued.append(f"!{command}")
            return True
        self._begun, self._stops_run = True, False
        self.transcript.begin_own(command)
        self._send(protocol.Run(command))
        return True

    @property
    def is_busy(self) -> bool:
        """Whether there is something to stop or to answer, or nothing is open yet."""
        works = self.working or self._begins or self.ready is None
        return works or bool(self._asked or self.questions or self.transcript.own)

    def stop_run(self) -> bool:
        """Stop the command of the person, once; return whether there was one to be stopped."""
        if self.transcript.own is None or self._stops_run:
            return False
        self._stops_run = True
        self._send(protocol.StopRun())
        return True

    def submit(self, text: str, attachments: Sequence[str] = ()) -> bool:
        """Send what was typed, or carry out a command; `False` leaves the text where it was typed."""
        command = read_command(text)
        if command and (self.ready is not None or command[0] in OWN_COMMANDS):
            return self.command(*command, attachments)
        if self.ready is None:
            # The worker may still ask whether to trust the directory.
            self._held.append((text, lambda: self.submit(text, attachments)))
            self.queued.append(text)
            return True
        if text or attachments:
            # It goes to the scrollback when the agent reads it.
            self.queued.append(text)
        self._begun, self._begins = True, not self.working and self.transcript.own is None
        self._send(protocol.Send(text, attachments))
        return True

    def command(self, name: str, arguments: str = "", attachments: Sequence[str] = ()) -> bool:
        """Carry out a slash command, here or in the worker; what it sends has these attachments."""
        if name in self.commands and name != "clear":
            self._say("person", f"/{name} {arguments}".rstrip())
        if name in OWN_COMMANDS:
            self._own_command(name, arguments)
            return True
        if name not in self.commands:
            near = get_close_matches(name, self.commands, n=1)
            hint = f"; is it /{near[0]}?" if near else "; /help lists them"
            self._say("notice", f"There is no command /{name}{hint}")
            return False
        self._invoke(name, arguments, attachments)
        return True

    def _invoke(self, name: str, arguments: str = "", attachments: Sequence[str] = ()) -> int:
        self._number += 1
        self._asked[self._number] = name, attachments
        self._send(protocol.Invoke(self._number, name, arguments))
        return self._number

    @property
    def way_on(self) -> str:
        """The line that goes on with this session; empty where nothing was begun, or nothing is kept."""
        if not self._begun or not self._thread or not is_kept():
            return ""
        return f"deepagents --continue (or: deepagents --thread {one_line(self._thread)})"

    def lose_worker(self) -> None:
        """Note that the worker is gone; what it had not kept is typed again."""
        self.clock.count()
        self.working = self._begins = self.is_stopping = False
        self.transcript.end_turn()
        self.transcript.end_own("", "ended with the agent's process", failed=True)
        self.questions.clear()
        self.picker = None
        # The rest waits in the record, and the next worker has it.
        self.refused += self.queued[self._kept :]
        self.queued, self._held, self._kept, self._asked = [], [], 0, {}

    def reopen(self, send: Callable[[protocol.ToWorker], None]) -> None:
        """Go on with another worker."""
        self._send = send
        self.ready = None

    def stop(self) -> None:
        """Stop the command of the person, or cancel a server's question; else stop the present step."""
        if not (self.stop_run() or self.cancel_question()):
            self.stop_step()

    def stop_step(self) -> None:
        """Stop the present step, by which what waits is answered."""
        self.clock.count()
        # At a question, it is the answer that is meant.
        begins = self._begins and not self.questions
        for message in (each.message for each in self.questions):
            if isinstance(message, protocol.Ask) and not message.call_id:
                # No step waits for this answer, so that none brings it by its end.
                self._send(protocol.Decide(message.id, "reject"))
        self.questions = deque(each for each in self.questions if isinstance(each.message, protocol.Trust))
        if self.ready is None:
            self.take_back()
        elif self.working or begins or self._asked:
            self.is_stopping = self.working or begins
            self._stopped = self._number
            self._send(protocol.Stop())

    def cancel_question(self) -> bool:
        """Leave a server's question unanswered, once in a row; return whether there was one.

        A server that asks again cannot keep the step going.
        """
        question = self.question
        if question is None or not question.can_cancel or self._cancelled:
            return False
        self._cancelled = True
        self._say("notice", f"Cancelled. {self.stop_key} again stops the step.")
        self._send(protocol.Answer(question.message.id, "", cancelled=True))
        self._answered()
        return True

    def take_back(self) -> None:
        """Ask for what the agent has not read yet."""
        if self.ready is None:
            self.taken_back, self.queued, self._held = [*self.queued], [], []
        else:
            self._send(protocol.TakeBack())

    def go_to_next_mode(self) -> None:
        """Change to the next mode; the status line tells it as soon as it holds."""
        if self.ready is not None:
            self._send(protocol.NextMode())

    def press(self, key: str) -> tuple[str, Callable[[str], None]] | None:
        """Answer the question by a key; where that needs a text, return its label and what takes it."""
        question = self.question
        if question is None or key not in question.offered:
            return None
        is_call = isinstance(question.message, protocol.Ask)
        if key == "n" and is_call:
            return "Why (may be empty)?", self.refuse
        if key == "r":
            return ("Reply in the tool's place:", self.respond) if is_call else ("Answer:", self.answer)
        match key:
            case "v":
                self._show_question()
            case "?":
                self.transcript.finished.append(question.explain(self.stop_key))
            case "a" if isinstance(question.message, protocol.Ask):
                self._choose_rule(question.message)
            case _ if chosen := question.answers.get(key):
                self.answer(chosen.value, chosen.label)
            case _:
                self._answer(question, agreed=key == "y")
        return None

    def answer(self, text: str, shown: str | None = None) -> None:
        """Answer a question that a tool asked; `shown` is what the person saw for this answer."""
        if question := self.question:
            self._cancelled = False
            self._say("person", shown or text)
            self._send(protocol.Answer(question.message.id, text))
            self._answered()

    def refuse(self, reason: str) -> None:
        """Refuse the call, with a reason that may be empty."""
        if question := self.question:
            self._say("notice", f"Refused: {reason}" if reason else "Refused.")
            self._decide(protocol.Decide(question.message.id, "reject", reason or None))

    def respond(self, text: str) -> None:
        """Give a text in the place of the call's result."""
        if question := self.question:
            self._say("notice", f"Replied: {text}")
            self._decide(protocol.Decide(question.message.id, "respond", text))

    def edit(self, text: str) -> None:
        """Show what the call would do with this text."""
        question = self.question
        if question is None:
            return
        if isinstance(question.message, protocol.Draft):
            self._ask(replace(question.message, text=text))
        else:
            self._send(protocol.Preview(question.message.id, text))

    def _answer(self, question: Pending, *, agreed: bool) -> None:
        match question.message:
            case protocol.Trust():
                self._send(protocol.Trusted(agreed))
                self._answered()
            case protocol.Draft(id=number):
                if agreed:
                    self._send(protocol.Save(number, question.edited_text()[0]))
                else:
                    self._say("notice", "Not written.")
                self._answered()
            case protocol.Ask(id=number) if agreed:
                self._decide(protocol.Decide(number, "approve"))
            case _:
                pass

    def _choose_rule(self, asked: protocol.Ask) -> None:
        rules = [protocol.Choice(rule, one_line(label)) for rule, label in asked.rules.items()]
        scopes: Mapping[str, Scope] = {each: each for each in SCOPES}
        rows = [protocol.Choice(scope, text) for scope, text in SCOPES.items()]

        def choose_scope(rule: str) -> None:
            self.picker = Picker("For how long?", rows, lambda scope: keep(rule, scope))

        def keep(rule: str, chosen: str) -> None:
            self._decide(protocol.Decide(asked.id, "approve", rule=rule, scope=scopes[chosen]))

        self.picker = Picker("Always allow what?", rules, choose_scope)

    def _decide(self, decision: protocol.Decide) -> None:
        self._send(decision)
        self._answered()

    def _answered(self) -> None:
        self.clock.count()
        self.questions.popleft()
        self.picker = None
        if self.question:
            self._show_question()

    def _ask(self, message: protocol.Ask | protocol.Question | protocol.Trust | protocol.Draft) -> None:
        question = read_question(message)
        if isinstance(message, protocol.Ask) and message.call_id and message.line:
            self.transcript.know_call(message.call_id, message.line, message.agent)
        at = next((at for at, each in enumerate(self.questions) if each.message.id == message.id), None)
        if at is not None:
            self.questions[at] = question
        else:
            self.questions.append(question)
        if question is self.question:
            self.picker = None
            self._show_question()

    def _show_question(self) -> None:
        if self.question:
            self.transcript.finished += self.question.show()

    def _open(self, ready: protocol.Ready) -> None:
        self.transcript.end_turn()
        if self._clearing:
            self._clear()
        # Another worker has opened the session that stands above.
        again = self.ready is None and self._thread == ready.thread
        self.ready = ready
        if ready.thread != self._thread:
            # These are of the session before.
            self.transcript.plan = ()
            self.clock.begin_session()
        self._thread = ready.thread
        self._begun = self._begun or ready.resumed
        for past in () if again else ready.history:
            self._say(_PAST[past.who], past.text)
        self._say("dim", "\n".join(describe_session(ready)))
        for notice in ready.notices:
            self._say("notice", notice)
        held, self._held, self.queued = self._held, [], []
        if ready.waiting and not held:
            self._say("notice", "The last step was interrupted. Send an empty line to go on with it.")
        for text, take in held:
            if not take():
                self.refused.append(text)
            # The rest is queued by the worker behind the first.
            self.working = self.working or not (read_command(text) or self.transcript.own)

    def _queue(self, texts: Sequence[str]) -> None:
        """Show as the person's what left the queue: the agent has read it."""
        for text in self.queued[: len(self.queued) - len(texts)]:
            self._say("person", text)
        self.queued = [*texts]
        self._kept = len(texts)

    def end_turn(self) -> None:
        """Note that the turn is over."""
        self.clock.count()
        self.working = self.is_stopping = False
        self.transcript.end_turn()

    def _idle(self, message: protocol.Idle) -> None:
        self.end_turn()
        error = message.error
        # What keeps a text from being taken may end the turn as well, and is said once.
        if (message.end != "done" or error) and error != self._noted:
            kind: Kind = "error" if message.end == "failed" else "notice"
            self._say(kind, error or _ENDS[message.end])

    def _result(self, result: protocol.Result) -> None:
        name, attachments = self._asked.pop(result.id, ("", ()))
        self._clearing = 0 if self._clearing == result.id else self._clearing
        if result.text:
            self._say("markdown", result.text)
        if result.error:
            self._say("notice", result.error)
        if result.ansi:
            self._say("preformatted", result.ansi)
        if result.typed:
            self.taken_back.append(result.typed)
        if name and result.id <= self._stopped and (result.send or result.draft or result.choices):
            self._say("notice", protocol.STOPPED)
        elif name:
            self._go_on(name, attachments, result)

    def _go_on(self, name: str, attachments: Sequence[str], result: protocol.Result) -> None:
        """Let the person choose or agree, or send what a command has put together."""
        if result.choices:
            rows = [
                protocol.Choice(each.value, one_line(each.label), one_line(each.detail), each.usable)
                for each in result.choices
            ]
            self.picker = Picker(f"/{name}", rows, lambda value: self.command(name, value))
        if result.draft:
            self._ask(result.draft)
        if result.send:
            self.submit(f" {result.send}" if result.send.startswith("/") else result.send, attachments)

    def look(self, back: int = 0) -> None:
        """Ask for all of what the last call has returned, or one so many before it."""
        self._send(protocol.ShowWhole(back))

    def _whole(self, whole: protocol.Whole) -> None:
        self._say("title", whole.title or "Nothing was returned or thought that long ago.")
        self._say("plain", whole.text)

    def _own_command(self, name: str, arguments: str) -> None:
        match name:
            case "quit":
                self._leave(0)
            case "clear" if self.ready is not None:
                self._clearing = self._invoke("new")
            case "clear":
                self._say("notice", "Nothing is open yet.")
            case "help":
                self.transcript.finished += show_help(self.commands)
            case "result":
                self._look_back(arguments)
            case _:
                self._theme(arguments)

    def _theme(self, wanted: str) -> None:
        if wanted in THEMES:
            self._set_theme(wanted)
        elif wanted:
            self._say("notice", f"{wanted!r} is not a theme; write {', '.join(THEMES)}")
        else:
            rows = [protocol.Choice(each, each) for each in THEMES]
            self.picker = Picker("/theme", rows, lambda theme: self.command("theme", theme))

    def _look_back(self, arguments: str) -> None:
        if not arguments.isdecimal() and arguments:
            self._say("notice", f"{arguments!r} is not a number; /result 1 shows the one before the last")
        elif self.ready is None:
            self._say("notice", "Nothing is open yet")
        else:
            self.look(int(arguments or 0))

    def _say(self, kind: Kind, text: str) -> None:
        self.transcript.add(kind, text)
