"""Events as text that a person can follow."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final, get_args

from rich.console import Console

from deepagents.events import (
    Custom,
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
from deepagents_cli.modes.format import Notice, call_line, graded_line, notice_line, result_line, todo_line
from deepagents_cli.terminal import clean, one_line, style_text

_PLANNING: Final = frozenset({"write_todos", "read_todos"})
_MIN_RESULT: Final = 24
_TODO_STYLES: Final = {"completed": "green", "in_progress": "bold"}


class Printer:
    """Writes a run to a console as it happens.

    A tool call is one line, and its result follows on that line when nothing came between. The main agent's
    text is streamed; a subagent's is shown when it is whole, behind the subagent's name.
    """

    def __init__(self, console: Console, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._started_at = clock()
        self._begun = False
        self._written = ""
        self._open: ToolCalled | None = None
        self._column = 0
        self._after_line = True
        self._subagent_text: dict[str, str] = {}
        self._calls: dict[str, ToolCalled] = {}
        self._plans: dict[str | None, tuple[Todo, ...]] = {}
        self._used = [0, 0]
        self._marks = (
            {"success": "✓", "error": "✗"} if _has_unicode(console) else {"success": "ok", "error": "!!"}
        )
        self._arrow = "→" if _has_unicode(console) else ">"
        self._shows: Mapping[type[Any], Callable[[Any], None]] = {
            RunStarted: self._run_started,
            Token: self._token,
            ToolCalled: self._tool_called,
            ToolFinished: self._tool_finished,
            PlanChanged: self._plan_changed,
            SubagentStarted: self._subagent_started,
            SubagentFinished: self._subagent_finished,
            Usage: self._usage,
            FinalAnswer: self._final_answer,
            Custom: self._custom,
            RunFailed: self._run_failed,
            **dict.fromkeys(get_args(Notice), self._notice),
        }

    def __call__(self, event: Event) -> None:
        """Show one event."""
        show = self._shows.get(type(event))
        if show is not None:
            show(event)

    def pause(self) -> None:
        """End the line that is being written, because a question follows."""
        self._break()

    def close(self) -> None:
        """End the last line and show what the run took."""
        if not self._begun:
            return
        self._break()
        self._console.out("", highlight=False)
        sent, written = self._used
        tokens = f"{sent:,} tokens in, {written:,} out, " if sent or written else ""
        self._line("", f"{tokens}{self._clock() - self._started_at:.1f} s", "dim")

    def _run_started(self, event: RunStarted) -> None:
        self._begun = True
        parts = [event.model, f"thread {event.thread}", "resumed" if event.resumed else None, event.directory]
        self._line("", " · ".join(filter(None, parts)), "dim")

    def _token(self, event: Token) -> None:
        if event.agent is not None:
            self._subagent_text[event.agent] = self._subagent_text.get(event.agent, "") + event.text
            return
        if self._open is not None:
            self._break()
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
        self._break()
        self._open, self._column = event, self._start_line(event)

    def _tool_finished(self, event: ToolFinished) -> None:
        call = self._calls.pop(event.call_id, None)
        if event.name in _PLANNING and event.status == "success":
            return
        result = result_line(event.name, event.status, event.text)
        style = "red" if event.status == "error" else "dim"
        mark = self._marks[event.status]
        if call is not None and call is self._open:
            self._finish_call(call, mark, result, style)
            return
        name = call_line(call.name, call.args) if call is not None else event.name
        self._break()
        self._line(f"{_indent(event.agent)}{mark} ", f"{name}  {result}".rstrip(), style)

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
        self._break()
        indent = _indent(event.agent)
        self._line(indent, "Plan", "bold")
        for todo in event.todos:
            self._line(f"{indent}  ", todo_line(todo), _TODO_STYLES.get(todo.status, ""))

    def _subagent_started(self, event: SubagentStarted) -> None:
        self._flush_subagent_text(event.agent)
        self._break()
        self._line(
            f"{_indent(event.agent)}{self._arrow} ", f"{event.name}: {one_line(event.task)}", "magenta"
        )

    def _subagent_finished(self, event: SubagentFinished) -> None:
        self._break()
        self._subagent_text.pop(event.label, None)
        style = "red" if event.status == "error" else "magenta"
        text = f"{event.name}: {one_line(event.text)}"
        self._line(f"{_indent(event.agent)}{self._marks[event.status]} ", text, style)

    def _usage(self, event: Usage) -> None:
        self._used[0] += event.input_tokens
        self._used[1] += event.output_tokens

    def _final_answer(self, event: FinalAnswer) -> None:
        if not self._written.endswith(event.text):
            self._break()
            self._write(event.text)
        self._break()
        self._written = ""

    def _custom(self, event: Custom) -> None:
        verdict = graded_line(event.data)
        if verdict is not None:
            self._break()
            self._line(_indent(event.agent), verdict, "yellow")

    def _notice(self, event: Notice) -> None:
        self._break()
        self._line(_indent(event.agent), notice_line(event), "yellow")

    def _run_failed(self, event: RunFailed) -> None:
        self._break()

    def _flush_subagent_text(self, agent: str | None) -> None:
        text = self._subagent_text.pop(agent, "").strip() if agent is not None else ""
        if text:
            self._break()
            self._line(_indent(agent), one_line(text), "italic")

    def _start_line(self, event: ToolCalled) -> int:
        """Show a call, and return how much of the line it takes."""
        name, _, rest = call_line(event.name, event.args).partition(" ")
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

    def _break(self) -> None:
        if self._column:
            self._console.out("", highlight=False)
        self._open, self._column, self._after_line = None, 0, True


def _indent(agent: str | None) -> str:
    return f"  {one_line(agent)} | " if agent is not None else ""


def _has_unicode(console: Console) -> bool:
    return (console.encoding or "").lower().replace("-", "").startswith("utf")
