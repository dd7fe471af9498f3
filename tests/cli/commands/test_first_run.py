"""The first run does a real job on a copy, shows what changed, and is honest about it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from deepagents.testing import ScriptedModel, call
from deepagents_cli.commands.first_run import Example, find_example
from tests.cli import openai_server
from tests.cli.conftest import Command
from tests.cli.openai_server import MODEL
from tests.cli.tmux import Tmux, needs_tmux

pytestmark = pytest.mark.slow

EXAMPLE = find_example()


PLAN = [{"content": "Turn debug off", "status": "in_progress"}]


def does_the_job() -> list[Any]:
    """Plan, change both files as they must become, run the check, and say so after each message."""
    after = EXAMPLE.home / "after"
    return [
        call("write_todos", todos=PLAN),
        "That is the plan.",
        call("read_file", file_path="/app.ini"),
        call("edit_file", file_path="/app.ini", old_string="debug = true", new_string="debug = false"),
        "Debug is off.",
        call("write_file", file_path="/CHANGES.md", content=(after / "CHANGES.md").read_text()),
        "It is written.",
        call("execute", command="sh check.sh"),
        "It is done.",
    ]


def test_a_job_well_done_shows_plan_questions_command_and_diff(cli: Command) -> None:
    ended = cli("first-run", model=ScriptedModel(*does_the_job()))

    assert ended.code == 0
    assert [step.text in ended.out for step in EXAMPLE.steps] == [True] * 4
    assert "[>] Turn debug off" in ended.out
    assert ended.out.count("since there is no terminal to ask at") == 3
    assert "app.ini is safe: debug is off." in ended.out
    assert "\n@@ " in ended.out.split("What changed on disk:")[1]
    assert "nothing else was changed." in ended.out


def test_the_end_says_what_to_type_next(cli: Command) -> None:
    ended = cli("first-run", model=ScriptedModel(*does_the_job()))

    typed = ended.out.split("What to type next:\n")[1].split()[0]
    assert Path(typed).name == "deepagents"


def test_a_job_not_done_is_tried_once_more_and_then_said_so(cli: Command) -> None:
    ended = cli("first-run", model=ScriptedModel("It is done, believe me.", "Done, I said."))

    assert ended.code == 1
    assert ended.out.count("(nothing)") == 2
    assert ended.out.count("Not done: write_todos did not succeed") == 2
    assert ended.out.count("Trying once more on a fresh copy.") == 1


def test_the_second_try_starts_from_the_files_as_they_were(cli: Command) -> None:
    spoils = [
        call("write_todos", todos=PLAN),
        "Planned.",
        call("write_file", file_path="/extra.txt", content="x"),
    ]

    ended = cli("first-run", model=ScriptedModel(*spoils, *["Done."] * 3, *does_the_job()))

    assert ended.code == 0
    first, second = ended.out.split("Trying once more")
    assert "+++ b/extra.txt" in first
    assert "extra.txt" not in second


@needs_tmux
def test_a_person_at_a_terminal_is_asked_and_a_no_is_no_reason_to_try_again(tmp_path: Path) -> None:
    answers = [
        openai_server.call("write_todos", todos=PLAN),
        "That is the plan.",
        openai_server.call("edit_file", file_path="/app.ini", old_string="true", new_string="false"),
        "Then I leave it.",
        *["As you like."] * 2,
    ]
    command = [sys.executable, "-m", "deepagents_cli", "first-run", "--model", f"local-server:{MODEL}"]
    with openai_server.serving(*answers) as server:
        environment = {"HOME": str(tmp_path), "DEEPAGENTS_LOCAL_SERVER": server.address, "NO_COLOR": "1"}
        with Tmux(command, rows=60, directory=tmp_path, environment=environment) as terminal:
            terminal.wait_for(r"\[y\]es")
            terminal.type("n")
            terminal.keys("Enter")
            terminal.wait_for(r"Why \(may be empty\)")
            terminal.keys("Enter")
            terminal.wait_for_end()
            shown = terminal.screen(history=True)

    assert "Not done: execute did not succeed" in shown
    assert "Trying once more" not in shown


def test_the_files_that_we_ship_are_never_touched(cli: Command) -> None:
    before = {path: path.read_bytes() for path in EXAMPLE.home.rglob("*") if path.is_file()}

    cli("first-run", model=ScriptedModel(*does_the_job()))

    assert {path: path.read_bytes() for path in EXAMPLE.home.rglob("*") if path.is_file()} == before


def test_a_named_model_that_is_not_there_is_an_error_and_nothing_is_fetched(cli: Command) -> None:
    ended = cli("first-run", "--model", "nobody:nothing")

    assert ended.code == 2
    assert "'nobody:nothing'" in ended.err


def test_an_error_of_the_model_ends_the_run(cli: Command) -> None:
    ended = cli("first-run", model=ScriptedModel(ConnectionError("gone")))

    assert ended.code == 1
    assert ended.err == "deepagents: ConnectionError: gone\n"


@pytest.fixture
def example(tmp_path: Path) -> Example:
    home = tmp_path / "example"
    for folder, setting in [("before", "debug = true"), ("after", "debug = false")]:
        (home / folder / "sub").mkdir(parents=True)
        (home / folder / "app.ini").write_text(f"{setting}\n")
        (home / folder / "sub" / "note.md").write_text("left alone\n")
    (home / "steps.toml").write_text('[[steps]]\ntext = "Turn debug off."\ntools = []\n')
    return Example(home)


@pytest.fixture
def place(example: Example, tmp_path: Path) -> Path:
    example.copy_to(tmp_path / "copy")
    return tmp_path / "copy"


def test_nothing_done_is_a_fault(example: Example, place: Path) -> None:
    assert example.find_fault(place) == "app.ini is not as it should be"
    assert example.diff(place) == []


def test_the_right_change_is_none(example: Example, place: Path) -> None:
    (place / "app.ini").write_text("debug = false")

    assert example.find_fault(place) == ""
    assert example.diff(place)[-3:-1] == ["-debug = true", "+debug = false"]


def test_a_file_too_many_or_too_few_is_a_fault(example: Example, place: Path) -> None:
    (place / "app.ini").write_text("debug = false\n")
    (place / "extra.txt").write_text("x")
    assert example.find_fault(place) == "extra.txt was not asked for"

    (place / "extra.txt").unlink()
    (place / "sub" / "note.md").unlink()
    assert example.find_fault(place) == "sub/note.md is missing"


def test_the_example_that_we_ship_is_whole_and_asks_for_a_change(tmp_path: Path) -> None:
    example = find_example()
    example.copy_to(tmp_path / "copy")

    assert [step.tools[-1] for step in example.steps] == ["write_todos", "edit_file", "write_file", "execute"]
    assert example.find_fault(tmp_path / "copy") != ""
    assert example.find_fault(example.home / "after") == ""
