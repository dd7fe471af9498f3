"""Keep what a conversation shows: blocks that are finished, and what still changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from deepagents_cli.text import one_line
from deepagents_cli.views.chat.streaming import MarkdownStream, Piece

Kind: TypeAlias = Literal[
    "markdown", "code", "plain", "person", "call", "failed_call", "agent", "output", "plan", "notice",
    "error", "title", "diff", "sh", "json", "preformatted", "dim", "terms",
]  # fmt: skip
_SHOWN_OTHERWISE: Final = frozenset({"write_todos", "read_todos", "present_plan"})
"""Tools whose calls are seen as a checklist or as a question."""
_KEPT_OUTPUT: Final = 5
_TAIL: Final = 4096
"""The most characters that are kept of what a command prints: more than any screen shows of it."""


@dataclass(frozen=True, slots=True)
class Block:
    """Something that is shown for good; `follows` the block before without a blank line."""

    kind: Kind
    text: str
    agent: str | None = None
    language: str | None = None
    follows: bool = False


@dataclass(slots=True)
class Call:
    """A call that runs; `tail` is the end of what its command has printed."""

    line: str
    agent: str | None
    since: float
    tail: str = ""

    def lines(self) -> list[str]:
        """Return the last lines of the output that hold something."""
        lines = [each.rstrip("\r").rpartition("\r")[2] for each in self.tail.split("\n")]
        return [each for each in lines if each.strip()]

    def add(self, text: str) -> None:
        """Take a piece of output and keep the end of all."""
        self.tail = (self.tail + text[-_TAIL:])[-_TAIL:]


@dataclass(slots=True)
class Subagent:
    """A subagent at work, below another or below the main agent."""

    task: str
    parent: str | None
    since: float
    calls: int = 0
    last: str = ""


@dataclass(slots=True)
class Transcript:
    """Takes the events of runs; finished blocks wait in `finished` until they are taken."""

    clock: Callable[[], float] = time.monotonic
    finished: list[Block] = field(default_factory=list[Block])
    calls: dict[str, Call] = field(default_factory=dict[str, Call])
    background: dict[str, Call] = field(default_factory=dict[str, Call])
    subagents: dict[str, Subagent] = field(default_factory=dict[str, Subagent])
    plan: tuple[tuple[str, str], ...] = ()
    thinking: str = ""
    _plan_shown: tuple[tuple[str, str], ...] = ()
    _stream: MarkdownStream = field(default_factory=MarkdownStream)
    _written: str = ""
    _background: dict[str, str] = field(default_factory=dict[str, str])
    """The calls that have started commands in the background, in one line each."""
    _stopped: set[str] = field(default_factory=set[str])
    """The calls that were shown as stopped; what the model is told about them later is for the model."""
    _failure: str = ""
    """How the main agent's model has failed, until it is known whether the turn ends by it."""

    def take(self, event: Mapping[str, Any], line: str | None, details: Sequence[str] = ()) -> None:
        """Take an event; `line` is its call, result or notice in one line, and `details` its diff."""
        kind = str(event.get("type"))
        failure, self._failure = self._failure, ""
        # The line about the next try says why.
        if failure and kind != "model_retry":
            self.add("notice", failure)
        match kind:
            case "tool_called":
                self._called(event, line)
            case "tool_finished":
                self._finished(event, line, details)
            case "plan_changed" if event.get("agent") is None:
                self.plan = tuple((str(each["status"]), str(each["content"])) for each in event["todos"])
            case "subagent_started" | "subagent_finished":
                self._subagent(event)
            case "final_answer":
                self._answered(str(event.get("text", "")))
            case "command_output" | "command_ended":
                self._command(kind, event)
            case _:
                self._text(kind, event, line)

    def add(self, kind: Kind, text: str, agent: str | None = None) -> None:
        """Add a finished block."""
        self.finished.append(Block(kind, text, agent))

    def take_finished(self) -> list[Block]:
        """Return the blocks that were finished since the last call."""
        taken, self.finished = self.finished, []
        return taken

    def open_piece(self, lines: int) -> Piece | None:
        """Return the end of the text that is being written."""
        return self._stream.open_piece(lines)

    def know_call(self, number: str, line: str, agent: str | None) -> None:
        """Note a call that waits, and that an earlier process may have begun."""
        self.calls.setdefault(number, Call(line, agent, self.clock()))

    def end_text(self) -> None:
        """Finish the text that is being written."""
        self._pieces(self._stream.finish())
        self.thinking = ""

    def end_turn(self) -> None:
        """Finish everything that was open: nothing runs any more but commands in the background."""
        self.end_text()
        self._written = self._failure = ""
        for call in self.calls.values():
            self.add("failed_call", f"{call.line}\nstopped", call.agent)
            self._keep_output(call.lines(), call.agent)
        self._stopped.update(self.calls)
        for label, each in self.subagents.items():
            self.add("failed_call", f"{label} {each.task}\nstopped", each.parent)
        self.calls.clear()
        self.subagents.clear()
        if self.plan != self._plan_shown:
            self._plan_shown = self.plan
            self.finished.append(Block("plan", "\n".join(f"{status} {text}" for status, text in self.plan)))
        if all(status == "completed" for status, _ in self.plan):
            self.plan = ()

    def _text(self, kind: str, event: Mapping[str, Any], line: str | None) -> None:
        if kind == "token":
            self._token(event)
        elif kind == "reasoning" and event.get("agent") is None:
            self.thinking = (self.thinking + str(event.get("text", "")))[-_TAIL:]
        elif line and kind == "model_failed" and event.get("agent") is None:
            self.end_text()
            self._failure = line
        elif line:
            self.add("notice", line, event.get("agent"))

    def _command(self, kind: str, event: Mapping[str, Any]) -> None:
        if kind == "command_output":
            self._printed(event)
            return
        self.background.pop(str(event.get("command_id")), None)
        text = (
            f"{event.get('command_id')} {event.get('command')}\nended with exit code {event.get('exit_code')}"
        )
        self.add("failed_call" if event.get("exit_code") else "call", text, event.get("agent"))

    def _token(self, event: Mapping[str, Any]) -> None:
        text = str(event.get("text", ""))
        if (agent := event.get("agent")) is not None:
            if running := self.subagents.get(agent):
                running.last = (running.last + text)[-_TAIL:]
            return
        self.thinking = ""
        self._written += text
        self._pieces(self._stream.feed(text))

    def _pieces(self, pieces: list[Piece]) -> None:
        for piece in pieces:
            kind: Kind = "markdown" if piece.language is None else "code"
            block = Block(kind, piece.text, language=piece.language, follows=piece.continues)
            self.finished.append(block)

    def _answered(self, text: str) -> None:
        if not self._written.endswith(text):
            self.end_text()
            self._pieces(self._stream.feed(text))
        self.end_text()
        self._written = ""

    def _called(self, event: Mapping[str, Any], line: str | None) -> None:
        agent = event.get("agent")
        if agent is None:
            self.end_text()
        if running := self.subagents.get(agent or ""):
            running.calls += 1
            running.last = f"{line or event.get('name')}\n"
        if event.get("name") not in _SHOWN_OTHERWISE:
            shown = line or str(event.get("name"))
            number = str(event.get("call_id"))
            self.calls[number] = Call(shown, agent, self.clock())
            self._stopped.discard(number)
            args: Mapping[str, Any] = event.get("args") or {}
            if args.get("background"):
                self._background[number] = shown

    def _finished(self, event: Mapping[str, Any], line: str | None, details: Sequence[str]) -> None:
        number = str(event.get("call_id"))
        call, exit_code = self.calls.pop(number, None), event.get("exit_code")
        failed = event.get("status") == "error" or bool(exit_code)
        if call is None and (not failed or number in self._stopped):
            return
        printed = call.lines() if call else []
        if len(printed) > 1 and event.get("status") != "error":
            # The line would say again what stands below it.
            line = f"exit code {exit_code}" if exit_code else None
        what = call.line if call else str(event.get("name"))
        text = "\n".join(filter(None, [what, line]))
        self.add("failed_call" if failed else "call", text, event.get("agent"))
        if details:
            self.finished.append(Block("diff", "\n".join(details), follows=True))
        if len(printed) > 1:
            self._keep_output(printed, event.get("agent"))

    def _keep_output(self, printed: Sequence[str], agent: str | None) -> None:
        """Keep the last lines that a command has printed."""
        if printed:
            # How many lines there were is not known: of a long output not all pieces come.
            shown = ["...", *printed[-_KEPT_OUTPUT:]] if len(printed) > _KEPT_OUTPUT + 1 else printed
            self.finished.append(Block("output", "\n".join(shown), agent, follows=True))

    def _printed(self, event: Mapping[str, Any]) -> None:
        if command := event.get("command_id"):
            line = f"{command} {self._background.get(str(event.get('call_id')), '')}".rstrip()
            call = self.background.setdefault(str(command), Call(line, event.get("agent"), self.clock()))
        else:
            call = self.calls.get(str(event.get("call_id")))
        if call:
            call.add(str(event.get("text", "")))

    def _subagent(self, event: Mapping[str, Any]) -> None:
        label, parent = str(event.get("label") or event.get("name")), event.get("agent")
        if event.get("type") == "subagent_started":
            if parent is None:
                self.end_text()
            self.subagents[label] = Subagent(one_line(str(event.get("task", ""))), parent, self.clock())
            return
        done = self.subagents.pop(label, None)
        failed = event.get("status") == "error"
        text = f"{label} {done.task if done else ''}\n{one_line(str(event.get('text', '')))}"
        self.add("failed_call" if failed else "agent", text, parent)
