"""Hold a conversation: what the worker says becomes blocks and questions, what the person does messages."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final, cast

from deepagents_cli.project.state import is_kept
from deepagents_cli.protocol import Message
from deepagents_cli.text import one_line
from deepagents_cli.views.chat.clock import WorkClock
from deepagents_cli.views.chat.commands import OWN_COMMANDS, list_commands, read_command, show_help
from deepagents_cli.views.chat.picker import Picker, Row, read_rows
from deepagents_cli.views.chat.questions import SCOPES, Pending, read_question
from deepagents_cli.views.chat.status import describe_session
from deepagents_cli.views.chat.theme import THEMES
from deepagents_cli.views.chat.transcript import Kind, Transcript

_PAST: Final[dict[str, Kind]] = {"person": "person", "agent": "markdown"}


class Conversation:
    """Knows what is going on; a front end shows it, and calls a method for what the person does."""

    def __init__(
        self,
        send: Callable[..., None],
        *,
        set_theme: Callable[[str], None],
        leave: Callable[[int], None],
        stop_key: str = "Esc",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.ready: Message | None = None
        self.status: dict[str, Any] = {}
        self.queued: list[str] = []
        self.taken_back: list[str] = []
        self.refused: list[str] = []
        """What was sent and could not be taken."""
        self.working = False
        self.failed: int | None = None
        self.picker: Picker | None = None
        self.questions: deque[Pending] = deque()
        self.clock = WorkClock(clock, lambda: self.working, lambda: bool(self.questions))
        self.transcript = Transcript(self.clock.now)
        self._send = send
        self._set_theme = set_theme
        self._leave = leave
        self._stop_key = stop_key
        self._held: list[tuple[str, Sequence[str]]] = []
        self._kept = 0
        """How many of the queued texts the worker has kept in its record."""
        self._asked: dict[int, tuple[str, Sequence[str]]] = {}
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
        return list_commands(self.ready.get("commands", ()) if self.ready else ())

    @property
    def silence(self) -> float:
        """Seconds in which nothing has come from the model, though nothing else runs."""
        return 0.0 if self.transcript.calls or self.questions else self.clock.silence

    @property
    def can_go_on(self) -> bool:
        """Whether an empty line begins a turn: a step was interrupted, or a text waits."""
        waits = bool(self.queued or (self.ready and self.ready.get("waiting")))
        return waits and self.ready is not None and not self.working

    def take(self, message: Message) -> None:
        """Take a message of the worker."""
        self.clock.count()
        match message.get("is"):
            case "event":
                self.clock.hear()
                event = cast("Message", message.get("event") or {})
                self.transcript.take(event, message.get("line"), message.get("details") or ())
            case "ask" | "question" | "trust":
                self._ask(read_question(message))
            case "status":
                self.status |= message
            case "result":
                self._result(message)
            case "failed":
                self.failed = int(message.get("code") or 1)
                self._say("error", str(message.get("text")))
            case _:
                self._turn(message)

    def _turn(self, message: Message) -> None:
        match message.get("is"):
            case "ready":
                self._open(message)
            case "queued":
                self._queue(list(map(str, message.get("texts", ()))))
            case "taken_back" | "refused" as what:
                back = self.refused if what == "refused" else self.taken_back
                back += map(str, message.get("texts", ()))
                self.queued, self._kept = [], 0
            case "notice":
                self._noted = str(message.get("text"))
                self._say("notice", self._noted)
            case "working":
                self.working, self._noted = True, ""
                self.clock.begin_turn()
                self._queue([])
            case "idle":
                self._idle(message)
            case _:
                return

    def submit(self, text: str, attachments: Sequence[str] = ()) -> bool:
        """Send what was typed, or carry out a command; `False` leaves the text where it was typed."""
        command = read_command(text)
        if command and (self.ready is not None or command[0] in OWN_COMMANDS):
            return self.command(*command, attachments)
        if self.ready is None:
            # The worker may still ask whether to trust the directory.
            self._held.append((text, attachments))
            self.queued.append(text)
            return True
        if text or attachments:
            # It goes to the scrollback when the agent reads it.
            self.queued.append(text)
        self._begun = True
        self._send(do="send", text=text, attachments=list(attachments))
        return True

    def command(self, name: str, arguments: str = "", attachments: Sequence[str] = ()) -> bool:
        """Carry out a slash command, here or in the worker; what it sends has these attachments."""
        if name in self.commands:
            self._say("person", f"/{name} {arguments}".rstrip())
        if name in OWN_COMMANDS:
            self._own_command(name, arguments)
            return True
        if name not in self.commands:
            near = get_close_matches(name, self.commands, n=1)
            hint = f"; is it /{near[0]}?" if near else "; /help lists them"
            self._say("notice", f"There is no command /{name}{hint}")
            return False
        number = len(self._asked) + 1
        self._asked[number] = name, attachments
        self._send(do="command", id=number, name=name, arguments=arguments)
        return True

    @property
    def way_on(self) -> str:
        """The line that goes on with this session; empty where nothing was begun, or nothing is kept."""
        if not self._begun or not self._thread or not is_kept():
            return ""
        return f"deepagents --continue (or: deepagents --thread {one_line(self._thread)})"

    def lose_worker(self) -> None:
        """Note that the worker is gone; what it had not kept is typed again."""
        self.clock.count()
        self.working = False
        self.transcript.end_turn()
        self.questions.clear()
        self.picker = None
        # The rest waits in the record, and the next worker has it.
        self.refused += self.queued[self._kept :]
        self.queued, self._held, self._kept = [], [], 0

    def reopen(self, send: Callable[..., None]) -> None:
        """Go on with another worker."""
        self._send = send
        self.ready = None

    def stop(self) -> None:
        """Stop the present step; what waits for an answer is answered by it."""
        self.clock.count()
        self.questions = deque(each for each in self.questions if each.subject == "trust")
        if self.working:
            self._send(do="stop")

    def take_back(self) -> None:
        """Ask for what the agent has not read yet."""
        if self.ready is None:
            self.taken_back, self.queued, self._held = [*self.queued], [], []
        else:
            self._send(do="take_back")

    def press(self, key: str) -> tuple[str, Callable[[str], None]] | None:
        """Answer the question by a key; where that needs a text, return its label and what takes it."""
        question = self.question
        if question is None or key not in question.offered:
            return None
        if key == "n" and question.subject == "ask":
            return "Why (may be empty)?", self.refuse
        if key == "r":
            is_call = question.subject == "ask"
            return ("Reply in the tool's place:", self.respond) if is_call else ("Answer:", self.answer)
        match key:
            case "v":
                self._show_question()
            case "?":
                self.transcript.finished.append(question.explain(self._stop_key))
            case "a":
                self._choose_rule(question)
            case _ if chosen := question.answers.get(key):
                self.answer(str(chosen["value"]), str(chosen["label"]))
            case _:
                self._answer(question, key)
        return None

    def answer(self, text: str, shown: str | None = None) -> None:
        """Answer a question that a tool asked; `shown` is what the person saw for this answer."""
        if question := self.question:
            self._say("person", shown or text)
            self._send(do="answer", ask=question.id, text=text)
            self._answered()

    def refuse(self, reason: str) -> None:
        """Refuse the call, with a reason that may be empty."""
        if question := self.question:
            message = {"message": reason} if reason else {}
            self._say("notice", f"Refused: {reason}" if reason else "Refused.")
            self._decide(question, {"type": "reject", **message})

    def respond(self, text: str) -> None:
        """Give a text in the place of the call's result."""
        if question := self.question:
            self._say("notice", f"Replied: {text}")
            self._decide(question, {"type": "respond", "message": text})

    def edit(self, text: str) -> None:
        """Show what the call would do with this text."""
        question = self.question
        if question is None:
            return
        if question.subject == "write":
            edit = {**question.message["edit"], "text": text}
            self._ask(read_question({**question.message, "edit": edit}))
        else:
            self._send(do="preview", ask=question.id, text=text)

    def _answer(self, question: Pending, key: str) -> None:
        agreed = key == "y"
        match question.subject:
            case "trust":
                self._send(do="trust", answer="yes" if agreed else "no")
                self._answered()
            case "write":
                if agreed:
                    self._send(do="save", id=question.id, text=question.edited_text()[0])
                else:
                    self._say("notice", "Not written.")
                self._answered()
            case _ if agreed:
                self._decide(question, {"type": "approve"})
            case _:
                return

    def _choose_rule(self, question: Pending) -> None:
        rules = [Row(str(each["rule"]), one_line(str(each["label"]))) for each in question.message["rules"]]

        def choose_scope(rule: str) -> None:
            scopes = [Row(scope, text) for scope, text in SCOPES.items()]
            self.picker = Picker("For how long?", scopes, lambda scope: keep(rule, scope))

        def keep(rule: str, scope: str) -> None:
            self._decide(question, {"type": "approve"}, {"scope": scope, "rule": rule})

        self.picker = Picker("Always allow what?", rules, choose_scope)

    def _decide(
        self, question: Pending, decision: Mapping[str, Any], remember: Mapping[str, str] | None = None
    ) -> None:
        self._send(do="decide", ask=question.id, decision=decision, remember=remember)
        self._answered()

    def _answered(self) -> None:
        self.clock.count()
        self.questions.popleft()
        self.picker = None
        if self.question:
            self._show_question()

    def _ask(self, question: Pending) -> None:
        if line := question.message.get("line"):
            self.transcript.know_call(
                str(question.message["call_id"]), str(line), question.message.get("agent")
            )
        same = (question.subject, question.id)
        at = next((at for at, each in enumerate(self.questions) if (each.subject, each.id) == same), None)
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

    def _open(self, ready: Message) -> None:
        self.transcript.end_turn()
        # Another worker has opened the session that stands above.
        again = self.ready is None and self._thread == ready.get("thread")
        self.ready = ready
        self._enter(str(ready.get("thread", "")))
        self._begun = self._begun or bool(ready.get("resumed"))
        self.status |= {key: ready.get(key) for key in ("model", "mode", "branch", "name")}
        for past in () if again else ready.get("history", ()):
            self._say(_PAST.get(str(past.get("who")), "dim"), str(past.get("text", "")))
        self._say("dim", "\n".join(describe_session(ready)))
        for notice in ready.get("notices", ()):
            self._say("notice", str(notice))
        held, self._held, self.queued = self._held, [], []
        if ready.get("waiting") and not held:
            self._say("notice", "The last step was interrupted. Send an empty line to go on with it.")
        for text, attachments in held:
            if not self.submit(text, attachments):
                self.refused.append(text)
            # The rest is queued by the worker behind the first.
            self.working = self.working or not read_command(text)

    def _enter(self, thread: str) -> None:
        if thread != self._thread:
            # These are of the session before.
            self.transcript.plan = ()
            self.clock.begin_session()
        self._thread = thread

    def _queue(self, texts: list[str]) -> None:
        """Show as the person's what left the queue: the agent has read it."""
        for text in self.queued[: len(self.queued) - len(texts)]:
            self._say("person", text)
        self.queued = texts
        self._kept = len(texts)

    def _idle(self, message: Message) -> None:
        self.working = False
        self.transcript.end_turn()
        end, error = message.get("end"), message.get("error")
        # What keeps a text from being taken may end the turn as well, and is said once.
        if (end != "done" or error) and error != self._noted:
            kind: Kind = "error" if end == "failed" else "notice"
            words = {"stopped": "Stopped. What is done is kept.", "limited": "Stopped at a limit."}
            self._say(kind, str(error or words.get(str(end), f"The turn has ended: {end}")))

    def _result(self, message: Message) -> None:
        name, attachments = self._asked.get(int(message.get("id") or 0), ("", ()))
        if text := message.get("text"):
            self._say("markdown", str(text))
        if error := message.get("error"):
            self._say("notice", str(error))
        if ansi := message.get("ansi"):
            self._say("preformatted", str(ansi))
        if choices := message.get("choices"):
            self.picker = Picker(f"/{name}", read_rows(choices), lambda value: self.command(name, value))
        if message.get("edit"):
            self._ask(read_question(message))
        if send := message.get("send"):
            self.submit(f" {send}" if str(send).startswith("/") else str(send), attachments)

    def _own_command(self, name: str, arguments: str) -> None:
        match name:
            case "quit":
                self._leave(0)
            case "help":
                self.transcript.finished += show_help(self.commands)
            case _ if arguments in THEMES:
                self._set_theme(arguments)
            case _ if arguments:
                self._say("notice", f"{arguments!r} is no theme; write {', '.join(THEMES)}")
            case _:
                rows = [Row(each, each) for each in THEMES]
                self.picker = Picker("/theme", rows, lambda theme: self.command("theme", theme))

    def _say(self, kind: Kind, text: str) -> None:
        self.transcript.add(kind, text)
