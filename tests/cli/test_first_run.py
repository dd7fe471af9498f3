"""The first run does a real job on a copy, shows what changed, and is honest about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deepagents.testing import ScriptedModel, call
from deepagents_cli.first_run import Example, find_example
from tests.cli.conftest import Command

EXAMPLE = find_example()


def does_the_job() -> list[Any]:
    """Write every file as it must be, and say so."""
    home = EXAMPLE.home / "after"
    changed = [
        path
        for path in sorted(home.rglob("*"))
        if path.is_file()
        and path.read_text() != (EXAMPLE.home / "before" / path.relative_to(home)).read_text()
    ]
    writes = [
        call("write_file", file_path=f"/{path.relative_to(home)}", content=path.read_text())
        for path in changed
    ]
    return [*writes, "It is done."]


def test_a_job_well_done_ends_with_the_diff_and_zero(cli: Command) -> None:
    ended = cli("first-run", model=ScriptedModel(*does_the_job()))

    assert ended.code == 0
    assert EXAMPLE.task in ended.out
    assert "It is done." in ended.out
    assert "\n@@ " in ended.out.split("What changed on disk:")[1]
    assert ended.out.rstrip().endswith("nothing else was changed.")


def test_a_job_not_done_is_tried_once_more_and_then_said_so(cli: Command) -> None:
    ended = cli("first-run", model=ScriptedModel("It is done, believe me.", "Done, I said."))

    assert ended.code == 1
    assert ended.out.count("(nothing)") == 2
    assert ended.out.count("Not done: ") == 2
    assert ended.out.count("Trying once more on a fresh copy.") == 1


def test_the_second_try_starts_from_the_files_as_they_were(cli: Command) -> None:
    spoils = [call("write_file", file_path="/extra.txt", content="x"), "Done."]

    ended = cli("first-run", model=ScriptedModel(*spoils, *does_the_job()))

    assert ended.code == 0
    first, second = ended.out.split("Trying once more")
    assert "+++ b/extra.txt" in first
    assert "extra.txt" not in second


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
    (home / "task.txt").write_text("Turn debug off.\n")
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

    assert example.task
    assert example.find_fault(tmp_path / "copy") != ""
    assert example.find_fault(example.home / "after") == ""
