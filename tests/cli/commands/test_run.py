"""A run from its first line to its exit code."""

from __future__ import annotations

from pathlib import Path

from deepagents.testing import ScriptedModel, call, calls
from tests.cli.conftest import Command


def test_an_agent_works_on_real_files_and_shows_how(cli: Command, directory: Path) -> None:
    plan = [{"content": "mend the second line", "status": "in_progress"}]
    model = ScriptedModel(
        call("write_todos", todos=plan),
        calls(("ls", {"path": "."}), ("read_file", {"file_path": "notes.md"})),
        call("edit_file", file_path="notes.md", old_string="second", new_string="2nd"),
        "The second line is mended.",
        # A to-do is open, so it is asked whether this is the end: nobody is there to say "go on".
        "It is mended, and that was all.",
    )

    ended = cli.run("mend it", "--yes", model=model)

    assert ended.code == 0
    assert (directory / "notes.md").read_text() == "first line\n2nd line\n"
    for shown in ("  [>] mend the second line", "\n✓ edit_file notes.md\n", "\nThe second line is mended.\n"):
        assert shown in ended.out
    assert "asked whether this is the end: a to-do is open\n" in ended.out
    assert "\nIt is mended, and that was all.\n" in ended.out


def test_threads_are_kept_in_one_place_that_others_cannot_read(cli: Command, state: Path) -> None:
    cli.run("hello", model=ScriptedModel("Hello."))

    assert {path.name for path in state.iterdir()} == {"threads.sqlite", "threads.lock", "undo"}
    assert state.stat().st_mode & 0o077 == 0


def test_nothing_is_left_in_the_directory(cli: Command, directory: Path) -> None:
    cli.run("hello", model=ScriptedModel("Hello."))

    assert [path.name for path in directory.iterdir()] == ["notes.md"]


def test_the_directory_is_absolute_and_there(cli: Command, directory: Path) -> None:
    ended = cli("run", "hi", "--json", "--dir", f"{directory}/x/..", model=ScriptedModel("Hello."))

    assert ended.of_kind("run_started")[0]["directory"] == str(directory)


def test_a_directory_that_is_none_is_named(cli: Command) -> None:
    ended = cli("run", "go", "--dir", "nowhere", model=ScriptedModel())

    assert (ended.code, ended.err) == (1, "deepagents: 'nowhere' is not a directory\n")
