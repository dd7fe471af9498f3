"""What checkers complain of after a change reaches the model: once, and only what is new."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.types import Command

from deepagents import FilesystemPermission, SubAgent, create_deep_agent
from deepagents.backends import LocalSandbox, LocalShellBackend, StateBackend
from deepagents.errors import ConfigError
from deepagents.middleware import EditCheck, EditCheckMiddleware, FilesystemMiddleware
from deepagents.testing import Asked, ScriptedModel, assert_prefix_kept, call, calls
from deepagents.undo import FileHistory
from tests.backends.sandboxes import rooted
from tests.conftest import CallMode
from tests.middleware.checked import LOOK, THREAD, Work, write

BIN = Path(sys.executable).parent
RUFF = f"{BIN}/ruff check --no-cache --output-format=concise"
BAD = "grep -nHr -e bad -e ugly --include '*.txt' . | sed 's/:bad/: error: bad/; s/:ugly/: warning: ugly/'"
"""Complains of each line that begins with one of two words."""


@pytest.fixture
def work(tmp_path: Path, call_mode: CallMode) -> Work:
    """An agent whose check complains of a word."""
    return Work(tmp_path, call_mode, words=BAD)


def test_a_mistake_is_shown_once_and_no_more_when_it_is_mended(tmp_path: Path, call_mode: CallMode) -> None:
    (tmp_path / "old.py").write_text("import os\n")
    work = Work(tmp_path, call_mode, ruff=RUFF)
    wrong, right = write("/new.py", "import sys\n"), write("/new.py", "print(1)\n")

    shown = work.turn(wrong, LOOK, LOOK, right, LOOK, "Done.")

    assert len(shown) == 1
    assert "ruff: 1 new\n  new.py:1:8: F401 [*] `sys` imported but unused" in shown[0]
    assert "old.py" not in shown[0]
    assert_prefix_kept(work.asked)


def test_a_complaint_whose_line_moved_is_not_new(work: Work) -> None:
    (work.directory / "a.txt").write_text("good\nbad\n")

    shown = work.turn(
        call("read_file", file_path="/a.txt"),
        call("edit_file", file_path="/a.txt", old_string="good", new_string="good\ngood\ngood"),
        LOOK,
        call("edit_file", file_path="/a.txt", old_string="bad", new_string="bad\nbad"),
        LOOK,
        "Done.",
    )

    assert [each.splitlines()[1:] for each in shown] == [
        ["words: 1 new", "  ./a.txt:5: error: bad [or in line 4, which says the same]"]
    ]


def test_errors_come_first_and_of_many_complaints_some(work: Work) -> None:
    shown = work.turn(LOOK, write("/a.txt", "ugly\n" * 30 + "bad\n"), LOOK, "Done.")

    lines = shown[0].splitlines()
    assert lines[1:3] == ["words: 31 new", "  ./a.txt:31: error: bad"]
    assert len(lines) == 23
    assert lines[-1] == "  ... and 11 lines more"


def test_what_was_mended_and_comes_back_is_shown_again(work: Work) -> None:
    bad, good = write("/a.txt", "bad\n"), write("/a.txt", "good\n")
    assert len(work.turn(LOOK, bad, LOOK, good, LOOK, bad, LOOK, "Done.")) == 2


def test_what_is_known_at_the_end_of_a_turn_is_not_new_in_the_next(work: Work) -> None:
    assert len(work.turn(LOOK, write("/a.txt", "bad\n"), LOOK, "Done.")) == 1
    assert work.turn(LOOK, write("/b.txt", "good\n"), LOOK, "Done.", text="More.") == []
    assert len(work.turn(LOOK, write("/c.txt", "bad\n"), LOOK, "Done.", text="And more.")) == 1


def test_edits_in_a_row_are_not_interrupted_by_mistakes_that_they_mend(work: Work) -> None:
    steps = [write("/a.txt", "bad\n" * each) for each in (1, 2, 3)]
    assert work.turn(LOOK, *steps, write("/a.txt", "good\n"), LOOK, "Done.") == []


def test_an_edit_that_was_refused_changes_nothing(work: Work) -> None:
    work.checks["words"] = f"echo run >> runs; {BAD}"
    (work.directory / "a.txt").write_text("bad\n")
    refused = call("edit_file", file_path="/a.txt", old_string="not there", new_string="bad")
    assert work.turn(refused, LOOK, "Done.") == []
    assert (work.directory / "runs").read_text() == "run\n"


def test_a_first_change_before_the_check_has_looked_shows_what_the_changed_file_has(work: Work) -> None:
    (work.directory / "a.txt").write_text("bad\n")
    (work.directory / "other.txt").write_text("bad\n")
    work.checks["words"] = f"while [ ! -e go ]; do sleep 0.05; done; {BAD}"
    go = call("execute", command="touch go")
    first = write("/b.txt", "bad\n")

    # Only from the second reply on is there time for a check.
    with ScriptedModel(first, go, *map(work.thinks, (LOOK, first, LOOK, "Done."))) as model:
        work.run(model, {"messages": [HumanMessage("Go on.")]})

    lines = work.shown()[0].splitlines()
    assert lines[1].startswith("words: 1 new; it had not ended before the first change")
    assert lines[2:] == ["  ./b.txt:1: error: bad"]
    assert len(work.shown()) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("sleep 1000", "it ended with exit code 124: Error: Command timed out after 2 seconds"),
        ("yes 'a.txt:1:1: error: flood'", "it printed more than 90,000 bytes"),
        ("sh -c 'kill -9 $$'", "it ended with exit code 137"),
        ("kill -9 $$", "it ended with exit code"),
        # As bash says it, with a number that is another one each time.
        ('echo "sh: line 5: $$ Killed"; exit 137', "exit code 137: sh: line 5:"),
        ("sh -c 'echo a.txt:1:1: bad; kill -SEGV $$'", "exit code 139: Segmentation fault"),
        ("echo 'TypeError: no such rule' >&2; exit 3", "exit code 3: TypeError: no such rule"),
    ],
)
def test_a_broken_check_is_named_once_and_off_for_the_turn(
    tmp_path: Path, call_mode: CallMode, command: str, why: str
) -> None:
    seconds = 2 if "sleep" in command else 60
    work = Work(
        tmp_path, call_mode, broken=EditCheck(f"echo run >> runs; {command}", seconds=seconds), words=BAD
    )

    shown = work.turn(LOOK, write("/a.txt", "bad\n"), LOOK, write("/b.txt", "bad\n"), LOOK, "Done.")

    assert ["broken is off for now" in each for each in shown] == [True, False, False]
    assert why in shown[0]
    assert [each.splitlines()[-1] for each in shown[1:]] == [
        "  ./a.txt:1: error: bad",
        "  ./b.txt:1: error: bad",
    ]
    assert (tmp_path / "runs").read_text() == "run\n"
    assert work.turn(LOOK, "Done.", text="More.") == []
    assert (tmp_path / "runs").read_text() == "run\nrun\n"
    assert [why in each for each in work.warned] == [True]


def test_no_step_waits_for_a_check_that_hangs_and_the_end_of_the_turn_ends_it(
    tmp_path: Path, call_mode: CallMode
) -> None:
    work = Work(tmp_path, call_mode, hanging=EditCheck("echo $$ >> pids; exec sleep 1000", seconds=900))
    steps = [write(f"/{each}.txt", "text") for each in range(5)]

    begun = monotonic()
    with ScriptedModel(*steps, "Done.") as model:
        work.run(model, {"messages": [HumanMessage("Go on.")]})

    assert monotonic() - begun < 60
    assert work.shown() == []
    ended = [work.backend.poll_command(f"command-{each}", wait=60).exit_code for each in (1, 2)]
    assert None not in ended


def test_a_check_whose_program_is_not_there_is_no_news_for_the_model(
    tmp_path: Path, call_mode: CallMode
) -> None:
    work = Work(tmp_path, call_mode, absent="no-such-program --check")
    assert work.turn(LOOK, write("/a.txt", "bad\n"), LOOK, "Done.") == []
    assert ["no-such-program: not found" in each for each in work.warned] == [True]


def test_a_check_of_other_files_does_not_run(work: Work) -> None:
    work.checks["words"] = EditCheck(f"echo run >> runs; {BAD}", files=["src/**/*.txt"])
    assert work.turn(LOOK, write("/a.txt", "bad\n"), LOOK, "Done.") == []
    assert (work.directory / "runs").read_text() == "run\n"
    assert work.turn(LOOK, write("/src/a.txt", "good\n"), LOOK, "Done.", text="More.") == []
    assert (work.directory / "runs").read_text() == "run\nrun\nrun\n"


def test_what_a_command_did_to_a_changed_file_is_looked_at(work: Work) -> None:
    work.checks["words"] = f"echo run >> runs; {BAD}"
    spoil = call("execute", command="echo bad >> a.txt")
    shown = work.turn(LOOK, write("/a.txt", "good\n"), LOOK, spoil, LOOK, "Done.")
    assert [each.splitlines()[-1] for each in shown] == ["  ./a.txt:2: error: bad"]

    (work.directory / "runs").unlink()
    look = call("execute", command="cat a.txt")
    work.turn(LOOK, write("/b.txt", "good\n"), look, look, look, "Done.", text="More.")
    assert (work.directory / "runs").read_text() == "run\nrun\n"


def test_a_patch_and_a_deletion_are_changes_too(work: Work) -> None:
    (work.directory / "a.txt").write_text("bad\n")
    work.checks["words"] = f"echo run >> runs; {BAD}"
    assert work.turn(LOOK, call("delete", file_path="/a.txt"), LOOK, "Done.") == []
    assert (work.directory / "runs").read_text() == "run\nrun\n"


def test_what_a_subagent_changed_is_looked_at_when_it_returns(work: Work) -> None:
    helper: SubAgent = {"name": "helper", "description": "Helps.", "system_prompt": "Help."}
    task = call("task", subagent_type="helper", description="Write /a.txt")
    shown = work.turn(LOOK, task, write("/a.txt", "bad\n"), "Written.", LOOK, "Done.", subagents=[helper])
    assert [each.splitlines()[-1] for each in shown] == ["  ./a.txt:1: error: bad"]


def test_with_patience_the_model_goes_on_where_its_last_change_broke_something(work: Work) -> None:
    work.patience = 60
    bad = write("/a.txt", "bad\n")

    shown = work.turn(LOOK, bad, "Done.", write("/a.txt", "good\n"), "Mended.")
    assert len(shown) == 1
    assert work.result["messages"][-1].text == "Mended."

    worse = [write("/a.txt", "bad\n" * each) for each in (2, 3, 4)]
    assert len(work.turn(worse[0], "1", worse[1], "2", worse[2], "3", text="More.")) == 2


def test_a_backend_whose_commands_block_is_checked_too(work: Work) -> None:
    work.backend, work.patience = rooted(work.directory), 60
    with ScriptedModel(write("/a.txt", "bad\n"), "Done.", write("/a.txt", "good\n"), "Mended.") as model:
        work.run(model, {"messages": [HumanMessage("Go on.")]})
    assert [each.splitlines()[-1] for each in work.shown()] == ["  ./a.txt:1: error: bad"]


def test_a_backend_whose_commands_block_ends_what_takes_too_long(work: Work) -> None:
    work.backend, work.patience = rooted(work.directory), 60
    work.checks["words"] = EditCheck("sleep 1000", seconds=1)
    with ScriptedModel(write("/a.txt", "bad\n"), "Done.") as model:
        work.run(model, {"messages": [HumanMessage("Go on.")]})
    assert ["the check words is off until the next message" in each for each in work.warned] == [True]


def test_an_agent_of_langchain_is_checked_too(work: Work) -> None:
    files = FilesystemMiddleware(backend=work.backend)
    checks = EditCheckMiddleware({"words": BAD}, backend=work.backend, patience=60)
    with ScriptedModel(write("/a.txt", "bad\n"), "Done.", "It stays.") as model:
        work.result = work.call_mode.invoke(
            create_agent(model, middleware=[files, checks]), {"messages": "Go on."}
        )
    assert [each.splitlines()[-1] for each in work.shown()] == ["  ./a.txt:1: error: bad"]

    lost = create_agent(ScriptedModel(), middleware=[files, EditCheckMiddleware({"words": BAD})])
    with pytest.raises(ConfigError, match="needs backend= outside of create_deep_agent"):
        work.call_mode.invoke(lost, {"messages": "Go on."})


def test_checks_run_where_the_file_tools_have_their_files(work: Work) -> None:
    work.beside = [FilesystemMiddleware(backend=work.backend)]
    work.gives_backend = False

    shown = work.turn(LOOK, write("/a.txt", "bad\n"), LOOK, "Done.")

    assert "./a.txt:1: error: bad" in shown[0]


@pytest.mark.parametrize(
    ("before", "after", "new"),
    [
        ("/p/a.py\n  /p/a.py:1:5 - error: Old", "/p/a.py\n  /p/a.py:7:5 - error: Old", []),
        ("a.ts(1,2): error TS1: Old", "a.ts(9,9): error TS1: Old\na.ts(1,2): error TS2: New",
         ["  a.ts(1,2): error TS2: New"]),
        ("", "b.py:3: note: Hint\nb.py:3:1: W1 Odd\nb.py:2:1: error: Bad\n    why\n    how\n    and so on",
         ["  b.py:2:1: error: Bad", "    why", "    how", "  b.py:3:1: W1 Odd", "  b.py:3: note: Hint"]),
        ("a.py:9:1: F811 `x` from line 3 again", "a.py:12:1: F811 `x` from line 6 again", []),
        ("", "/p/a.js\n  3:5   error  'x' is not used  no-unused\n\n1 problem (1 error)",
         ["  /p/a.js:3:5: error  'x' is not used  no-unused"]),
        ("", "src/a file.rs:2:5: error[E0425]: nothing of that name\nFound 1 error in 0:01:12: bad",
         ["  src/a file.rs:2:5: error[E0425]: nothing of that name"]),
        ("", "\x1b[31ma.go:3:5: \x1b[0mundefined: \x07x", ["  a.go:3:5: undefined: \\x07x"]),
    ],
)  # fmt: skip
def test_complaints_of_many_programs_are_read(
    tmp_path: Path, call_mode: CallMode, before: str, after: str, new: list[str]
) -> None:
    work = Work(tmp_path, call_mode, program="cat output.log; exit 1")
    (tmp_path / "output.log").write_text(before or "a.md:1:1: Old")
    shown = work.turn(LOOK, write("/output.log", f"{after}\n"), LOOK, "Done.")
    assert [line for each in shown for line in each.splitlines()[2:]] == new


def test_news_that_the_model_did_not_get_comes_again(work: Work) -> None:
    work.turn(LOOK, "Ready.")
    script = map(work.thinks, (LOOK, write("/a.txt", "bad\n"), LOOK, ConnectionError("gone")))
    with pytest.raises(ConnectionError), ScriptedModel(*script) as model:
        work.run(model, {"messages": [HumanMessage("More.")]})

    with ScriptedModel("Done.") as model:
        work.run(model, None)
    assert len(work.shown("More.")) == 1


def test_what_was_there_before_is_known_beyond_a_question_to_a_person(work: Work) -> None:
    (work.directory / "old.txt").write_text("bad\n")
    script = map(work.thinks, (write("/a.txt", "bad\n"), LOOK, "Done."))
    asks: Any = {"interrupt_on": {"write_file": True}}
    with ScriptedModel(*script) as model:
        work.run(model, {"messages": [HumanMessage("Go on.")]}, **asks)
        work.run(model, Command(resume={"decisions": [{"type": "approve"}]}), **asks)
    assert [each.splitlines()[1:] for each in work.shown()] == [["words: 1 new", "  ./a.txt:1: error: bad"]]


def test_another_process_goes_on_with_what_it_can_know(work: Work) -> None:
    (work.directory / "a.txt").write_text("bad\n")
    asks: Any = {"interrupt_on": {"write_file": True}}
    script = map(work.thinks, (write("/b.txt", "bad\n"), LOOK, write("/c.txt", "bad\n"), LOOK, "Done."))
    approve: Any = Command(resume={"decisions": [{"type": "approve"}]})
    with ScriptedModel(*script) as model:
        work.run(model, {"messages": [HumanMessage("Go on.")]}, **asks)
        work.middleware = None
        work.run(model, approve, **asks)
        work.run(model, approve, **asks)

    first, second = (each.splitlines() for each in work.shown())
    assert "may be older" in first[1]
    assert first[2:] == ["  ./b.txt:1: error: bad"]
    assert second[1:] == ["words: 1 new", "  ./c.txt:1: error: bad"]


def test_a_check_that_a_change_made_worthless_is_ended(work: Work) -> None:
    work.checks["words"] = f"echo $$ >> begun; if [ -e a.txt ] && [ ! -e b.txt ]; then sleep 1000; fi; {BAD}"

    def write_meanwhile(_: Asked) -> AIMessage:
        while len((work.directory / "begun").read_text().split()) < 2:
            sleep(0.01)
        return write("/b.txt", "bad\n")

    script = [*map(work.thinks, (LOOK, write("/a.txt", "good\n"))), write_meanwhile]
    with ScriptedModel(*script, *map(work.thinks, (LOOK, "Done."))) as model:
        work.run(model, {"messages": [HumanMessage("Go on.")]})

    assert [each.splitlines()[-1] for each in work.shown()] == ["  ./b.txt:1: error: bad"]
    assert len((work.directory / "begun").read_text().split()) == 3


# Formatters.


@pytest.fixture
def formatted(tmp_path: Path, call_mode: CallMode) -> Work:
    """An agent whose files are formatted."""
    line = f"{BIN}/ruff format --quiet --no-cache {{files}}"
    return Work(tmp_path, call_mode, format=EditCheck(line, files=["*.py"], formats=True, seconds=60))


def test_a_formatted_file_can_be_written_and_edited_again(formatted: Work) -> None:
    formatted.turn(
        calls(
            ("write_file", {"file_path": "/a.py", "content": "x = {'a':1}\n"}),
            ("write_file", {"file_path": "/notes of mine.py", "content": "y = {'a':1}\n"}),
            ("write_file", {"file_path": "/a.md", "content": "x = {'a':1}\n"}),
        ),
        call("edit_file", file_path="/a.py", old_string='{"a": 1}', new_string="{'b':2}"),
        write("/a.py", "z = 1\n"),
        "Done.",
    )

    shown = formatted.results()
    assert ["[format then formatted" in each for each in shown] == [True, True, False, True, False]
    assert f"formatted {formatted.directory}/a.py: its lines may differ" in shown[0]
    assert (formatted.directory / "notes of mine.py").read_text() == 'y = {"a": 1}\n'
    assert (formatted.directory / "a.md").read_text() == "x = {'a':1}\n"
    assert (formatted.directory / "a.py").read_text() == "z = 1\n"
    assert not any("Error" in each for each in shown)


def test_a_file_that_a_formatter_refuses_stays(formatted: Work) -> None:
    broken = write("/a.py", "def (\n")
    assert formatted.turn(broken, write("/a.py", "x = {'a':1}\n"), "Done.") == []
    assert ["[format then" in each for each in formatted.results()] == [False, True]


class Neighbour(AgentMiddleware[Any, Any, Any]):
    """Stands for a program that changes a file right after the agent did."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        result = handler(request)
        self._file.write_text("theirs = {'a':1}\n")
        return result

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        result = await handler(request)
        self._file.write_text("theirs = {'a':1}\n")
        return result


def test_what_somebody_else_changed_before_the_formatter_did_is_not_overwritten(formatted: Work) -> None:
    formatted.beside = [Neighbour(formatted.directory / "a.py")]
    formatted.turn(write("/a.py", "mine = 1\n"), write("/a.py", "mine = 2\n"), "Done.")
    assert "[format then formatted" in formatted.results()[0]
    assert "[stale_version]" in formatted.results()[1]


def test_undo_takes_an_edit_back_with_what_the_formatter_did(formatted: Work, tmp_path: Path) -> None:
    formatted.directory = tmp_path / "project"
    formatted.directory.mkdir()
    file = formatted.directory / "a.py"
    file.write_text("before = {'a':1}\n")
    formatted.backend = LocalShellBackend(formatted.directory)
    history = FileHistory(tmp_path / "history")
    formatted.turn(
        call("read_file", file_path="/a.py"), write("/a.py", "x = {'a':1}\n"), "Done.", file_history=history
    )
    assert file.read_text() == 'x = {"a": 1}\n'

    agent = create_deep_agent(
        ScriptedModel(), backend=formatted.backend, checkpointer=formatted.saver, file_history=history
    )
    plan = history.plan(agent, [*agent.get_state_history(THREAD)][-1].config)
    assert [change.path.name for change in plan.restored] == ["a.py"]
    history.rewind(agent, plan)
    assert file.read_text() == "before = {'a':1}\n"


def test_a_formatter_that_hangs_is_ended_and_off_for_the_turn(formatted: Work) -> None:
    formatted.checks["format"] = EditCheck("echo x >> runs; sleep 1000; {files}", formats=True, seconds=2)
    formatted.turn(write("/a.py", "x = 1\n"), write("/b.py", "x = 1\n"), "Done.")
    assert (formatted.directory / "runs").read_text() == "x\n"
    assert "it took longer than 2 seconds" in formatted.warned[0]
    assert "format is off for now" in formatted.shown()[0]


# What is not possible.


def test_a_check_is_bound_by_the_rules_of_the_agent(tmp_path: Path, call_mode: CallMode) -> None:
    work = Work(tmp_path, call_mode, peek="cat secret.txt 2>/dev/null || echo a.txt:1:1: error: nothing")
    (tmp_path / "secret.txt").write_text("a.txt:1:1: error: the secret\n")
    work.backend = LocalSandbox(tmp_path)
    rule = FilesystemPermission(["read", "write"], [f"{tmp_path}/secret.txt"], "deny")
    (tmp_path / "before").touch()
    work.checks["peek"] = f"[ -e before ] || {{ {work.checks['peek']}; }}"
    shown = work.turn(
        LOOK,
        call("delete", file_path=f"{tmp_path}/before"),
        LOOK,
        "Done.",
        permissions=[rule],
    )
    assert [each.splitlines()[-1] for each in shown] == ["  a.txt:1:1: error: nothing"]


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (lambda: EditCheckMiddleware({}), "checks is empty"),
        (lambda: EditCheckMiddleware({"a": " "}), "needs a command"),
        (lambda: EditCheckMiddleware({"a": "ruff check {files}"}), "leave it out, or add formats=True"),
        (lambda: EditCheck("ruff format .", formats=True), "must stand for the files"),
        (lambda: EditCheck("ruff check", seconds=0), "must be positive, got 0"),
        (lambda: EditCheck("ruff check", files="*.py"), r"write \['\*\.py'\]"),
        (lambda: EditCheck("ruff check", files=["../*.py"]), "'ruff check': "),
        (lambda: EditCheckMiddleware({"a": "a"}, patience=-1), "must not be negative"),
        (
            lambda: EditCheckMiddleware({"a": "a"}, backend=StateBackend()),
            "runs commands, and this backend runs none",
        ),
        (
            lambda: create_deep_agent(ScriptedModel(), middleware=[EditCheckMiddleware({"a": "a"})]),
            "runs commands, and this backend runs none",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_the_way_out(made: Callable[[], Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        made()
