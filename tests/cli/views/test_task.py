"""One task as text for people and as lines for programs."""

from __future__ import annotations

import asyncio
import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import get_args

import pytest

from deepagents.events import (
    AnswerBroken,
    ApprovalGiven,
    ApprovalNeeded,
    CacheBroken,
    CommandEnded,
    CommandOutput,
    ContextCompacted,
    Custom,
    Event,
    FinalAnswer,
    HostRefused,
    LimitNear,
    LimitReached,
    ModelFailed,
    ModelRetry,
    PlanChanged,
    QuestionAsked,
    Reasoning,
    RunFailed,
    RunStarted,
    RunStopped,
    SubagentFinished,
    SubagentStarted,
    TaskChanged,
    Todo,
    Token,
    ToolCalled,
    ToolFinished,
    ToolProgress,
    Usage,
)
from deepagents_cli.protocol import Happened, Idle
from deepagents_cli.session.display.lines import line_of
from deepagents_cli.views.conversation.transcript import Transcript
from deepagents_cli.views.task import TaskView, write_json
from tests.cli.conftest import Command
from tests.cli.scenarios import greets, writes_a_file

EACH: tuple[Event, ...] = (
    RunStarted("t1"), RunStopped("t1"), RunFailed("OSError", "no disk"), FinalAnswer("Done."),
    Token("Hello"), Reasoning("Hm"), ModelFailed("OverloadedError", agent="helper"), ContextCompacted(),
    CacheBroken("messages", 3, None, 9),
    LimitNear("tokens", 10, 9), LimitReached("tokens", 10, 10), Usage(1, 2),
    ToolCalled("ls", {}, "2"), ToolFinished("1", "execute", "success", "done"),
    ToolProgress("1", "mcp__one__dig", 1.0, 3.0),
    PlanChanged((Todo("a", "pending"),)),
    Custom({"type": "rubric_evaluation_end", "result": "satisfied"}),
    CommandOutput("1", "compiling\n"), CommandEnded("1", "command-1", "make", 0),
    HostRefused("1", "a:80 is refused"),
    SubagentStarted("helper", "dig", "3", "helper"),
    SubagentFinished("helper", "3", "success", "dug", "helper"),
    TaskChanged("task-1", "helper", "success"),
    ModelRetry("the model is overloaded", 8.0, 4, 8), AnswerBroken("length"),
    ApprovalNeeded(()), QuestionAsked("i1", "Which?"), ApprovalGiven("i1", "ls", "approve"),
)  # fmt: skip
SILENT = {
    "task": {
        CacheBroken: "/cost has the total",
        ToolProgress: "the line of the call says that it runs",
        Usage: "is added up in the last line",
        RunStopped: "the command says it", RunFailed: "the command says it",
        ApprovalNeeded: "the question shows it", QuestionAsked: "the question shows it",
        ApprovalGiven: "the question showed it",
    },
    "transcript": {
        CacheBroken: "/cost has the total",
        ToolProgress: "the line of the call says that it runs",
        RunStarted: "the message `Working` says it", RunStopped: "the message `Idle` says it",
        RunFailed: "the message `Failed` says it", Usage: "the status line has it",
        ApprovalNeeded: "the question shows it", QuestionAsked: "the question shows it",
        ApprovalGiven: "the question showed it",
    },
}  # fmt: skip
"""What each view does not show as it comes, and why not."""
START = RunStarted("t1", "go", "some:model", "/files")


def printed(*events: Event, encoding: str = "utf-8") -> str:
    """What a person sees of some events in a pipe, between the first line and the last."""
    written = io.BytesIO()
    with redirect_stdout(io.TextIOWrapper(written, encoding=encoding)) as out:
        asyncio.run(show(*events))
        out.flush()
    _, *middle, blank, last = written.getvalue().decode(encoding).splitlines()
    assert (blank, "0.0 s" in last) == ("", True)
    return "\n".join(middle)


async def show(*events: Event) -> None:
    view = TaskView("text", Path("/files"))
    with view.attached(lambda message: None) as over:
        for event in (START, *events):
            view.take(Happened(event, line_of(event, "/files")))
        view.take(Idle("done"))
        await over
    view.finish(lambda: "")


def kept(*events: Event) -> tuple[object, ...]:
    """What the conversation on a terminal shows of some events."""
    transcript = Transcript(clock=lambda: 0.0)
    for event in events:
        transcript.take(event, line_of(event, "/files"))
    running = [each.tail for each in transcript.calls.values()], sorted(transcript.subagents)
    return transcript.finished, running, transcript.plan, transcript.thinking.tail, transcript.open_piece(9)


@pytest.mark.parametrize("event", EACH, ids=lambda event: event.type)
def test_each_event_is_shown_or_listed_as_silent(event: Event) -> None:
    before = ToolCalled("execute", {"command": "make"}, "1")

    assert (printed(before, event) == printed(before)) == (type(event) in SILENT["task"])
    assert (kept(before, event) == kept(before)) == (type(event) in SILENT["transcript"])


def test_no_event_is_forgotten() -> None:
    assert sorted(each.type for each in get_args(Event)) == sorted(each.type for each in EACH)


def test_what_a_command_prints_stands_below_its_call() -> None:
    shown = printed(
        ToolCalled("execute", {"command": "make"}, "1"),
        CommandOutput("1", "compiling a\ncompil"),
        CommandOutput("1", "warning:\n    indented\n\tmore\n", "stderr"),
        CommandOutput("1", "ing b\n10 %\r20 %\r\nlinking"),
        CommandOutput("1", "  broken", "stderr"),
        ToolFinished("1", "execute", "success", "compiling a"),
    )

    assert shown.splitlines() == [
        "running: execute make", "    compiling a", "    warning:", "        indented", "            more",
        "    compiling b", "    20 %", "    linking", "      broken", "✓ execute make",
    ]  # fmt: skip


def test_what_a_command_in_the_background_prints_has_its_name() -> None:
    shown = printed(
        ToolCalled("execute", {"command": "serve", "background": True}, "1"),
        ToolFinished("1", "execute", "success", "Started in the background: command-1."),
        CommandOutput("1", "listening\nwait", command_id="command-1"),
        CommandOutput("1", "ing", command_id="command-1"),
        CommandEnded("1", "command-1", "serve", 3),
    )

    assert shown.splitlines() == [
        "✓ execute serve  Started in the background: command-1.",
        "    command-1: listening", "    command-1: waiting", "✗ command-1 serve  ended with exit code 3",
    ]  # fmt: skip


def test_a_refused_host_is_shown_in_a_line() -> None:
    sentence = "evil.example:443 is refused: it is not allowed"
    shown = printed(ToolCalled("execute", {"command": "curl"}, "1"), HostRefused("1", sentence))

    assert sentence in shown.splitlines()


def test_a_long_command_does_not_hide_how_it_ended() -> None:
    shown = printed(
        ToolCalled("execute", {"command": "c" * 200}, "1"),
        ToolFinished("1", "execute", "error", "Error: it did not work at all, sorry"),
    )

    first, second = shown.splitlines()
    assert first.startswith("✗ execute ccc")
    assert len(first) <= 120
    assert second == "    Error: it did not work at all, sorry"


def test_of_a_flood_the_newest_lines_are_shown() -> None:
    flood = "".join(f"line {number}\n" for number in range(1000))
    shown = printed(ToolCalled("execute", {"command": "yes"}, "1"), CommandOutput("1", flood)).splitlines()

    assert shown[1] == "    ... 980 more lines"
    assert "    line 999" in shown


def test_a_call_and_its_result_share_a_line() -> None:
    shown = printed(
        ToolCalled("grep", {"pattern": "needle", "path": "/hay"}, "1"),
        ToolFinished("1", "grep", "success", "/hay/a: needle\n/hay/b: needle"),
    )

    assert shown == "✓ grep needle /hay  2 lines"


def test_results_of_parallel_calls_name_their_call() -> None:
    shown = printed(
        ToolCalled("ls", {"path": "/"}, "1"),
        ToolCalled("read_file", {"file_path": "/a"}, "2"),
        ToolFinished("2", "read_file", "error", "Error: no such file [file_not_found]"),
        ToolFinished("1", "ls", "success", "/b\n/c"),
    )

    assert shown.splitlines() == ["✗ read_file /a  Error: no such file [file_not_found]", "✓ ls /  2 entries"]


def test_a_long_result_is_cut_to_the_width() -> None:
    shown = printed(
        ToolCalled("execute", {"command": "make"}, "1"),
        ToolFinished("1", "execute", "success", "x" * 200),
    )

    assert shown.startswith("✓ execute make  xxx")
    assert shown.endswith("…")
    assert len(shown) <= 120


def test_a_command_that_failed_is_marked_with_its_exit_code_and_how_its_output_begins() -> None:
    shown = printed(
        ToolCalled("execute", {"command": "make"}, "1"),
        ToolFinished("1", "execute", "error", "no rule\nExit code: 2", exit_code=2),
    )

    assert shown.strip() == "✗ execute make  exit code 2: no rule"


def test_a_plan_is_a_checklist_and_shown_when_it_changes() -> None:
    plan = PlanChanged((Todo("look", "completed"), Todo("act", "in_progress"), Todo("rest", "pending")))
    writing = [
        ToolCalled("write_todos", {"todos": []}, "1"),
        ToolFinished("1", "write_todos", "success", "ok"),
    ]

    assert printed(*writing, plan, plan).splitlines() == ["  [x] look", "  [>] act", "  [ ] rest"]


def test_the_answer_is_written_as_it_comes_after_an_empty_line() -> None:
    shown = printed(Token("\n\nAll "), Token("is\n"), Token("well."), FinalAnswer("All is\nwell."))

    assert shown == "\nAll is\nwell."


def test_an_answer_that_was_not_streamed_is_shown() -> None:
    assert printed(FinalAnswer("All is well.")) == "\nAll is well."


def test_a_subagent_works_behind_its_name() -> None:
    shown = printed(
        SubagentStarted("helper", "find\nthe needle", "1", "helper"),
        Token("I will look.", agent="helper"),
        ToolCalled("ls", {"path": "/"}, "2", agent="helper"),
        ToolFinished("2", "ls", "success", "/a", agent="helper"),
        ModelFailed("TimeoutError", agent="helper"),
        SubagentFinished("helper", "1", "success", "Found it.", "helper"),
    )

    assert shown.splitlines() == [
        "running: helper find the needle",
        "helper | ✓ ls /  /a",
        "helper | the model failed: TimeoutError",
        "✓ helper find the needle  Found it.",
    ]


def test_where_colours_are_forced_errors_are_red(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = [ToolCalled("ls", {"path": "/"}, "1"), ToolFinished("1", "ls", "error", "Error: no")]

    assert "\x1b" not in printed(*failed)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[31m" in printed(*failed)


def test_an_output_without_unicode_gets_plain_marks() -> None:
    shown = printed(
        ToolCalled("ls", {"path": "/"}, "1"), ToolFinished("1", "ls", "success", "/a"), encoding="ascii"
    )

    assert shown == "ok ls /  /a"


def test_an_answer_that_was_sent_back_stands_apart_and_the_last_is_shown_once() -> None:
    def graded(result: str) -> Custom:
        return Custom({"type": "rubric_evaluation_end", "result": result, "explanation": "Too long."})

    shown = printed(
        *(Token("Long."), Custom({"of": "no interest"}), graded("needs_revision")),
        *(Token("Short."), graded("satisfied"), FinalAnswer("Short.")),
    )

    assert shown.splitlines() == [
        *("", "Long.", "", "graded: needs revision"),
        *("", "Short.", "", "graded: satisfied"),
    ]


def test_an_answer_that_came_after_other_words_and_whole_is_shown() -> None:
    assert printed(Token("I will look."), FinalAnswer("Here.")).split() == ["I", "will", "look.", "Here."]


def test_what_happens_to_a_run_is_told_in_a_line() -> None:
    shown = printed(
        ContextCompacted(),
        ModelFailed("TimeoutError", agent="helper"),
        LimitNear("model_calls", 10, 8),
        LimitReached("seconds", 60, 60.5),
        TaskChanged("t", "researcher", "running"),
    )

    assert shown.splitlines()[-5:] == [
        "older messages were summed up",
        "helper | the model failed: TimeoutError",
        "limit of model calls is near: 8 of 10",
        "limit of seconds is reached: 60.5 of 60",
        "researcher, elsewhere: running",
    ]


def test_each_event_is_one_line_of_json() -> None:
    out = io.StringIO()

    write_json(Token("a\nb\u2028c"), out)
    write_json(ToolCalled("t", {"odd": object()}, "1"), out)

    first, second = out.getvalue().splitlines()
    assert json.loads(first) == {"type": "token", "version": 1, "text": "a\nb\u2028c", "agent": None}
    assert json.loads(second)["args"]["odd"].startswith("<object")


def test_with_json_nothing_else_is_on_standard_output(cli: Command) -> None:
    ended = cli.run("write", "--json", "--yes", model=writes_a_file())

    kinds = [event["type"] for event in ended.events]
    assert kinds == [
        "run_started",
        "tool_called",
        "approval_needed",
        "approval_given",
        "tool_finished",
        "token",
        "token",
        "token",
        "final_answer",
    ]
    assert ended.err == ""


def test_with_json_a_refusal_is_told_apart(cli: Command) -> None:
    ended = cli.run("write", "--json", model=writes_a_file())

    assert [event["decision"] for event in ended.of_kind("approval_given")] == ["reject"]
    assert ended.code == 3


def test_the_first_line_says_where_and_with_what(cli: Command) -> None:
    first = cli.run("hello", model=greets()).out.splitlines()[0]

    assert first.startswith("scripted:scripted · thread ")
