"""Show the events of a run: as text that a person can follow, or as JSON lines for programs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any, Final

from rich.console import Console

from deepagents.events import (
    ApprovalGiven,
    CommandEnded,
    CommandOutput,
    Event,
    FinalAnswer,
    PlanChanged,
    RunFailed,
    RunStarted,
    SubagentFinished,
    SubagentStarted,
    Todo,
    Token,
    ToolCalled,
    ToolFinished,
    Usage,
)
from deepagents_cli.session.lines import call_line, count_of, result_line
from deepagents_cli.session.notices import notice_line
from deepagents_cli.session.usage import Spending
from deepagents_cli.terminal import style_text
from deepagents_cli.text import clean, one_line
from deepagents_cli.views.chat.startup import is_ascii

_PLANNING: Final = frozenset({"write_todos", "read_todos"})
_MIN_RESULT: Final = 24
_MOST_LINES: Final = 20
_MOST_OF_A_LINE: Final = 1000
_TODO_MARKS: Final = {"completed": "[x]", "in_progress": "[>]"}
_TODO_STYLES: Final = {"completed": "green", "in_progress": "bold"}


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


class Printer:
    """Writes a run to a console as it happens.

    A tool call is one line, and its result follows on that line when nothing came between. The main agent's
    text is streamed; a subagent's is shown when it is whole, behind the subagent's name.
    """

    def __init__(self, console: Console, spending: Spending | None = None) -> None:
        self._console = console
        self._spending = spending or Spending()
        self._begun = False
        self._directory = ""
        self._written = ""
        self._open: ToolCalled | None = None
        self._column = 0
        self._after_line = True
        self._subagent_text: dict[str, str] = {}
        self._calls: dict[str, ToolCalled] = {}
        self._started_lines: dict[tuple[str, str], str] = {}
        self._refused: dict[str, str] = {}
        self._plans: dict[str | None, tuple[Todo, ...]] = {}
        self._marks = (
            {"success": "✓", "error": "✗"} if has_unicode(console) else {"success": "ok", "error": "!!"}
        )
        self._arrow = "→" if has_unicode(console) else ">"
        self._shows: Mapping[type[Any], Callable[[Any], None]] = {
            RunStarted: self._run_started,
            Token: self._token,
            ToolCalled: self._tool_called,
            CommandOutput: self._command_output,
            CommandEnded: self._command_ended,
            ToolFinished: self._tool_finished,
            ApprovalGiven: self._approval_given,
            PlanChanged: self._plan_changed,
            SubagentStarted: self._subagent_started,
            SubagentFinished: self._subagent_finished,
            Usage: self._spending.count,
            FinalAnswer: self._final_answer,
            RunFailed: lambda event: self.end_line(),
        }

    def __call__(self, event: Event) -> None:
        """Show one event."""
        if show := self._shows.get(type(event)):
            show(event)
        elif notice := notice_line(event):
            self._notice(getattr(event, "agent", None), notice)

    def _notice(self, agent: str | None, text: str) -> None:
        self.end_line()
        self._line(_indent(agent), text, "yellow")

    def end_line(self) -> None:
        """End the line that is being written."""
        if self._column:
            self._console.out("", highlight=False)
        self._open, self._column, self._after_line = None, 0, True

    def close(self) -> None:
        """End the last line and show what the run took."""
        if not self._begun:
            return
        self.end_line()
        self._console.out("", highlight=False)
        self._line("", self._spending.describe(), "dim")

    def _run_started(self, event: RunStarted) -> None:
        self._begun, self._directory = True, event.directory or ""
        parts = [event.model, f"thread {event.thread}", "resumed" if event.resumed else None]
        parts.append(one_line(self._directory))
        self._line("", (" · " if has_unicode(self._console) else " - ").join(filter(None, parts)), "dim")

    def _token(self, event: Token) -> None:
        if event.agent is not None:
            self._subagent_text[event.agent] = self._subagent_text.get(event.agent, "") + event.text
            return
        if self._open is not None:
            self.end_line()
        self._written += event.text
        self._write(event.text)

    def _write(self, text: str) -> None:
        text = clean(text)
        if not self._column:
            text = self._open_paragraph(text)
        if text:
            self._console.out(text, end="", highlight=False)
            self._console.file.flush()
            self._column = 0 if text.endswith("\n") else 1

    def _open_paragraph(self, text: str) -> str:
        text = text.lstrip("\n") if self._after_line else text
        if text and self._after_line:
            self._console.out("", highlight=False)
            self._after_line = False
        return text

    def _tool_called(self, event: ToolCalled) -> None:
        self._flush_subagent_text(event.agent)
        self._calls[event.call_id] = event
        if event.name in _PLANNING:
            return
        self.end_line()
        self._open, self._column = event, self._start_line(event)

    def _approval_given(self, event: ApprovalGiven) -> None:
        if event.decision == "reject" and event.tool_call_id:
            self._refused[event.tool_call_id] = event.message or "no reason was given"

    def _refusal(self, event: ToolFinished, reason: str) -> None:
        """Show that a call was refused, and all of the reason, on as many lines as it takes."""
        call = self._calls.pop(event.call_id, None)
        line = call_line(event.name, call.args if call else {}, directory=self._directory)
        self.end_line()
        self._line(f"{_indent(event.agent)}{self._marks['error']} ", f"refused: {line}", "red")
        self._console.print(
            style_text(f"{_indent(event.agent)}    {one_line(reason)}", "red"), soft_wrap=True
        )

    def _tool_finished(self, event: ToolFinished) -> None:
        if (reason := self._refused.pop(event.call_id, None)) is not None and event.status == "error":
            self._refusal(event, reason)
            return
        call = self._calls.pop(event.call_id, None)
        self._end_output(_output_indent(event.agent, None), event.call_id)
        if event.name in _PLANNING and event.status == "success":
            return
        result = result_line(event.name, event.status, event.text, exit_code=event.exit_code)
        style = "red" if event.status == "error" else "dim"
        mark = self._marks[event.status]
        if call is not None and call is self._open:
            self._finish_call(call, mark, result, style)
            return
        indent = f"{_indent(event.agent)}{mark} "
        name = style_text(
            call_line(call.name, call.args, directory=self._directory) if call is not None else event.name
        )
        # A long command must not hide how it ended.
        room = self._console.width - len(indent) - 2 - min(len(result), 2 * _MIN_RESULT)
        name.truncate(max(room, _MIN_RESULT), overflow="ellipsis")
        self.end_line()
        self._line(indent, f"{name.plain}  {result}".rstrip(), style)

    def _command_output(self, event: CommandOutput) -> None:
        """Show the lines that a command has printed whole; what follows comes with the next piece."""
        key = (event.command_id or event.call_id, event.stream)
        *lines, self._started_lines[key] = (self._started_lines.get(key, "") + event.text).split("\n")
        self._started_lines[key] = self._started_lines[key][-_MOST_OF_A_LINE:]
        left_out = len(lines) - _MOST_LINES
        if left_out > 0:
            lines = [f"... {count_of(left_out, 'line')} more", *lines[left_out:]]
        self._output_lines(_output_indent(event.agent, event.command_id), lines)

    def _command_ended(self, event: CommandEnded) -> None:
        self._end_output(_output_indent(event.agent, event.command_id), event.command_id)
        self.end_line()
        text = f"{event.command_id} has ended with exit code {event.exit_code}: {one_line(event.command)}"
        mark = self._marks["error" if event.exit_code else "success"]
        self._line(f"{_indent(event.agent)}{mark} ", text, "red" if event.exit_code else "dim")

    def _end_output(self, indent: str, of: str) -> None:
        """Show what is left of a last line that no newline has ended."""
        for stream in ("stdout", "stderr"):
            if rest := self._started_lines.pop((of, stream), ""):
                self._output_lines(indent, [rest])

    def _output_lines(self, indent: str, lines: Sequence[str]) -> None:
        if lines:
            self.end_line()
        for line in lines:
            # A progress bar writes its line again and again; a terminal shows the last of it.
            shown = line.rstrip("\r").rpartition("\r")[2]
            self._line(indent, shown.expandtabs(), "dim")

    def _finish_call(self, call: ToolCalled, mark: str, result: str, style: str) -> None:
        """Show a result behind its call, or below it where the line has no room left."""
        room = self._console.width - self._column - len(mark) - 3
        fits = room >= min(_MIN_RESULT, len(result))
        tail = style_text(f"  {mark}", "green" if style == "dim" else style)
        if result and fits:
            cut = style_text(f" {result}", style)
            cut.truncate(room, overflow="ellipsis")
            tail += cut
        self._console.print(tail, soft_wrap=True)
        self._open, self._column = None, 0
        if result and not fits:
            self._line(f"{_indent(call.agent)}    ", result, style)

    def _plan_changed(self, event: PlanChanged) -> None:
        if self._plans.get(event.agent) == event.todos:
            return
        self._plans[event.agent] = event.todos
        self.end_line()
        indent = _indent(event.agent)
        self._line(indent, "Plan", "bold")
        for todo in event.todos:
            step = f"{_TODO_MARKS.get(todo.status, '[ ]')} {one_line(todo.content)}"
            self._line(f"{indent}  ", step, _TODO_STYLES.get(todo.status, ""))

    def _subagent_started(self, event: SubagentStarted) -> None:
        self._flush_subagent_text(event.agent)
        self.end_line()
        self._line(
            f"{_indent(event.agent)}{self._arrow} ", f"{event.name}: {one_line(event.task)}", "magenta"
        )

    def _subagent_finished(self, event: SubagentFinished) -> None:
        self.end_line()
        self._subagent_text.pop(event.label, None)
        style = "red" if event.status == "error" else "magenta"
        text = f"{event.name}: {one_line(event.text)}"
        self._line(f"{_indent(event.agent)}{self._marks[event.status]} ", text, style)

    def _final_answer(self, event: FinalAnswer) -> None:
        if not self._written.endswith(event.text):
            self.end_line()
            self._write(event.text)
        self.end_line()
        self._written = ""

    def _flush_subagent_text(self, agent: str | None) -> None:
        text = self._subagent_text.pop(agent, "").strip() if agent is not None else ""
        if text:
            self.end_line()
            self._line(_indent(agent), one_line(text), "italic")

    def _start_line(self, event: ToolCalled) -> int:
        """Show a call, and return how much of the line it takes."""
        name, _, rest = call_line(event.name, event.args, directory=self._directory).partition(" ")
        text = style_text(f"{_indent(event.agent)}{self._arrow} ", "dim")
        text += style_text(name, "cyan not dim")
        text += style_text(f" {rest}" if rest else "", "not dim")
        text.truncate(max(self._console.width - 4, 20), overflow="ellipsis")
        self._console.print(text, end="", no_wrap=True, overflow="ellipsis", crop=True)
        self._console.file.flush()
        return min(text.cell_len, self._console.width)

    def _line(self, indent: str, text: str, style: str) -> None:
        self._console.print(
            style_text(indent, "dim") + style_text(text, style),
            no_wrap=True,
            overflow="ellipsis",
            crop=True,
        )


def _indent(agent: str | None) -> str:
    return f"  {one_line(agent)} | " if agent is not None else ""


def _output_indent(agent: str | None, command_id: str | None) -> str:
    return f"{_indent(agent)}    {f'{one_line(command_id)}: ' if command_id else ''}"


def has_unicode(console: Console) -> bool:
    """Tell whether a console has every character."""
    return (console.encoding or "").lower().replace("-", "").startswith("utf") and not is_ascii(os.environ)
