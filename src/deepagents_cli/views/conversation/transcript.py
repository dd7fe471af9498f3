"""Keep what a conversation shows: blocks that are finished, and what still changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final, Literal, TypeAlias

from deepagents import events
from deepagents._values import field, recordclass, valueclass
from deepagents_cli.text import last_written, one_line
from deepagents_cli.views.conversation.streaming import MarkdownStream, Piece
from deepagents_cli.views.conversation.thinking import Thinking

Kind: TypeAlias = Literal[
    "markdown", "code", "raw", "plain", "person", "call", "failed_call", "agent", "output", "plan", "notice",
    "error", "title", "thought", "diff", "sh", "json", "preformatted", "dim", "terms",
]  # fmt: skip
_SHOWN_OTHERWISE: Final = frozenset({"write_todos", "read_todos", "present_plan"})
"""Tools whose calls are seen as a checklist or as a question."""
_KEPT_OUTPUT: Final = 5
_MOST_LINES: Final = 20
"""Of one piece of output."""
_MOST_SHOWN: Final = 400
"""Lines of what a command of the person has printed."""
_TAIL: Final = 4096
"""The most characters that are kept of what a command prints: more than any screen shows of it."""


@valueclass
class Block:
    """Something that is shown for good; `follows` the block before without a blank line."""

    kind: Kind
    text: str
    agent: str | None = None
    language: str | None = None
    follows: bool = False


@recordclass
class Call:
    """A call that runs; `tail` is the end of what its command has printed.

    `label` names a command in the background before each of its lines, `begun` holds the lines that are not
    ended yet, by the stream, and `named` tells whether the call was shown.
    """

    line: str
    agent: str | None
    since: float
    tail: str = ""
    begun: dict[str, str] = field(default_factory=dict[str, str])
    named: bool = False
    label: str = ""

    def lines(self) -> list[str]:
        """Return the last lines of the output that hold something."""
        return [each for each in map(last_written, self.tail.split("\n")) if each.strip()]

    def add(self, text: str) -> None:
        """Take a piece of output and keep the end of all."""
        self.tail = (self.tail + text[-_TAIL:])[-_TAIL:]

    def take_lines(self, text: str, stream: str) -> list[str]:
        """Take a piece of output and return the lines that it ends, of a flood the newest."""
        *lines, rest = (self.begun.get(stream, "") + text).split("\n")
        self.begun[stream] = rest[-_TAIL:]
        left_out = len(lines) - _MOST_LINES
        shown = [f"... {left_out:,} more lines", *lines[left_out:]] if left_out > 0 else lines
        return [last_written(each) for each in shown]


@recordclass
class Subagent:
    """A subagent at work, below another or below the main agent."""

    task: str
    parent: str | None
    since: float
    calls: int = 0
    last: str = ""


@recordclass
class Transcript:
    """Takes the events of runs; finished blocks wait in `finished` until they are taken.

    With `streams`, what commands print is finished line by line, and not only the end of it with the call.
    With `raw`, the answer is passed on as it was written.
    """

    clock: Callable[[], float] = time.monotonic
    finished: list[Block] = field(default_factory=list[Block])
    calls: dict[str, Call] = field(default_factory=dict[str, Call])
    background: dict[str, Call] = field(default_factory=dict[str, Call])
    subagents: dict[str, Subagent] = field(default_factory=dict[str, Subagent])
    own: Call | None = None
    """The command of the person that runs."""
    plan: tuple[tuple[str, str], ...] = ()
    thinking: Thinking = field(default_factory=Thinking)
    streams: bool = False
    raw: bool = False
    _plan_shown: tuple[tuple[str, str], ...] = ()
    _stream: MarkdownStream = field(default_factory=MarkdownStream)
    _has_raw: bool = False
    """Whether the block that is passed on has begun."""
    _written: str = ""
    _background: dict[str, str] = field(default_factory=dict[str, str])
    """The calls that have started commands in the background, in one line each."""
    _ended: set[str] = field(default_factory=set[str])
    """The commands in the background whose end was shown: it may be known before the next turn."""
    _stopped: set[str] = field(default_factory=set[str])
    """The calls that were shown as stopped; what the model is told about them later is for the model."""
    _failure: str = ""
    """How the main agent's model has failed, until it is known whether the turn ends by it."""

    def take(self, event: events.Event, line: str | None, details: Sequence[str] = ()) -> None:
        """Take an event; `line` is its call, result or notice in one line, and `details` its diff."""
        failure, self._failure = self._failure, ""
        # The line about the next try says why.
        if failure and not isinstance(event, events.ModelRetry):
            self.add("notice", failure)
        match event:
            case events.ToolCalled():
                self._called(event, line or event.name)
            case events.ToolFinished():
                self._finished(event, line, details)
            case events.PlanChanged(agent=None):
                self._plan_changed(event)
            case events.SubagentStarted() | events.SubagentFinished():
                self._subagent(event)
            case events.FinalAnswer():
                self._answered(event.text)
            case _:
                self._text(event, line)

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

    def name_call(self, call: Call) -> None:
        """Show once that a call runs, before it has ended."""
        if not call.named:
            call.named = True
            self.add("dim", f"running: {call.line}", call.agent)

    def end_text(self) -> None:
        """Finish the text that is being written, or what the model thinks."""
        self._finish_stream()
        self._thought(self.thinking.end())

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
        self._show_plan()
        if all(status == "completed" for status, _ in self.plan):
            self.plan = ()

    def begin_own(self, command: str, where: str = "") -> None:
        """Note that a command of the person runs; where, is known a moment later."""
        self.own = Call(one_line(f"! {command}"), None, self.clock(), label=where)
        if self.streams and where:
            self.add("dim", f"running ({where}): {self.own.line}")

    def print_own(self, text: str, stream: str) -> None:
        """Take what the command of the person has printed."""
        if self.own:
            self.own.add(text)
            if self.streams and (lines := self.own.take_lines(text, stream)):
                self.finished.append(Block("preformatted", "\n".join(lines), follows=True))

    def end_own(self, output: str, how: str, *, failed: bool) -> None:
        """Show what the command of the person has printed, within bounds, and how it has ended."""
        own, self.own = self.own, None
        if own is None:
            return
        where = f"{own.label}, " if own.label else ""
        self.add("failed_call" if failed else "call", f"{own.line}\n{where}{how}")
        if self.streams:
            # All but the last lines was shown as it came.
            shown = [last_written(each) for each in own.begun.values() if each]
        else:
            shown = [last_written(each) for each in output.split("\n")] if output else []
        if left_out := max(len(shown) - _MOST_SHOWN, 0):
            half = _MOST_SHOWN // 2
            shown = [*shown[:half], f"... {left_out:,} more lines", *shown[-half:]]
        if shown:
            self.finished.append(Block("preformatted", "\n".join(shown), follows=True))

    def _plan_changed(self, event: events.PlanChanged) -> None:
        self.plan = tuple((each.status, each.content) for each in event.todos)
        if self.streams:
            self._show_plan()

    def _show_plan(self) -> None:
        if self.plan != self._plan_shown:
            self._plan_shown = self.plan
            self.finished.append(Block("plan", "\n".join(f"{status} {text}" for status, text in self.plan)))

    def _text(self, event: events.Event, line: str | None) -> None:
        match event:
            case events.Token() | events.Reasoning():
                self._wrote(event)
            case events.ModelFailed(agent=None) if line:
                self.end_text()
                self._failure = line
            case events.CommandOutput():
                self._printed(event)
            case events.CommandEnded():
                self._command_ended(event)
            case _ if line:
                self.add("notice", line, getattr(event, "agent", None))
            case _:
                pass

    def _command_ended(self, event: events.CommandEnded) -> None:
        self._end_output(self.background.pop(event.command_id, None))
        if event.command_id in self._ended:
            return
        self._ended.add(event.command_id)
        text = f"{event.command_id} {event.command}\nended with exit code {event.exit_code}"
        self.add("failed_call" if event.exit_code else "call", text, event.agent)

    def _wrote(self, event: events.Token | events.Reasoning) -> None:
        if event.agent is not None:
            if running := self.subagents.get(event.agent):
                running.last = (running.last + event.text)[-_TAIL:]
        elif isinstance(event, events.Token):
            self._thought(self.thinking.end())
            self._written += event.text
            self._feed(event.text)
        else:
            if not self.thinking.tail:
                self._finish_stream()
            self._thought(self.thinking.take(event.text))

    def _thought(self, thought: tuple[str, bool] | None) -> None:
        if thought:
            self.finished.append(Block("thought", thought[0], follows=thought[1]))

    def _feed(self, text: str) -> None:
        if not self.raw:
            self._pieces(self._stream.feed(text))
        elif text := text if self._has_raw else text.lstrip("\n"):
            self.finished.append(Block("raw", text, follows=self._has_raw))
            self._has_raw = True

    def _finish_stream(self) -> None:
        self._has_raw = False
        self._pieces(self._stream.finish())

    def _pieces(self, pieces: list[Piece]) -> None:
        for piece in pieces:
            kind: Kind = "markdown" if piece.language is None else "code"
            block = Block(kind, piece.text, language=piece.language, follows=piece.continues)
            self.finished.append(block)

    def _answered(self, text: str) -> None:
        if not self._written.endswith(text):
            self.end_text()
            self._feed(text)
        self.end_text()
        self._written = ""

    def _called(self, event: events.ToolCalled, line: str) -> None:
        if event.agent is None:
            self.end_text()
        elif running := self.subagents.get(event.agent):
            running.calls += 1
            running.last = f"{line}\n"
        if event.name not in _SHOWN_OTHERWISE:
            self.calls[event.call_id] = Call(line, event.agent, self.clock())
            self._stopped.discard(event.call_id)
            if event.args.get("background"):
                self._background[event.call_id] = line

    def _finished(self, event: events.ToolFinished, line: str | None, details: Sequence[str]) -> None:
        call, failed = self.calls.pop(event.call_id, None), event.status == "error" or bool(event.exit_code)
        if call is None and (not failed or event.call_id in self._stopped):
            return
        printed = call.lines() if call else []
        if len(printed) > (0 if self.streams else 1) and event.status != "error":
            # The line would say again what was printed.
            line = f"exit code {event.exit_code}" if event.exit_code else None
        text = "\n".join(filter(None, [call.line if call else event.name, line]))
        self._end_output(call)
        self.add("failed_call" if failed else "call", text, event.agent)
        if details:
            self.finished.append(Block("diff", "\n".join(details), follows=True))
        if len(printed) > 1:
            self._keep_output(printed, event.agent)

    def _keep_output(self, printed: Sequence[str], agent: str | None) -> None:
        """Keep the last lines that a command has printed, where they were not shown before."""
        if printed and not self.streams:
            # How many lines there were is not known: of a long output not all pieces come.
            shown = ["...", *printed[-_KEPT_OUTPUT:]] if len(printed) > _KEPT_OUTPUT + 1 else printed
            self.finished.append(Block("output", "\n".join(shown), agent, follows=True))

    def _printed(self, event: events.CommandOutput) -> None:
        call = self.calls.get(event.call_id)
        if event.command_id:
            line = f"{event.command_id} {self._background.get(event.call_id, '')}".rstrip()
            new = Call(line, event.agent, self.clock(), label=f"{event.command_id}: ")
            call = self.background.setdefault(event.command_id, new)
        if call:
            call.add(event.text)
            if self.streams:
                self._output(call, call.take_lines(event.text, event.stream))

    def _output(self, call: Call, lines: Sequence[str]) -> None:
        if lines and not call.label:
            self.name_call(call)
        if lines:
            text = "\n".join(f"{call.label}{line}" for line in lines)
            self.finished.append(Block("output", text, call.agent, follows=True))

    def _end_output(self, call: Call | None) -> None:
        """Show what is left of last lines that no newline has ended."""
        if call and self.streams:
            self._output(call, [last_written(each) for each in call.begun.values() if each])

    def _subagent(self, event: events.SubagentStarted | events.SubagentFinished) -> None:
        label = event.label or event.name
        if isinstance(event, events.SubagentStarted):
            if event.agent is None:
                self.end_text()
            self.subagents[label] = begun = Subagent(one_line(event.task), event.agent, self.clock())
            if self.streams:
                self.add("dim", f"running: {label} {begun.task}", event.agent)
            return
        done = self.subagents.pop(label, None)
        text = f"{label} {done.task if done else ''}\n{one_line(event.text)}"
        self.add("failed_call" if event.status == "error" else "agent", text, event.agent)
