"""The check of the first run is strict: the right change, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepagents_cli.first_run import Example, find_example


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
