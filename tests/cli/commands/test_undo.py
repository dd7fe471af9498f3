"""The last task in a directory is taken back, and sessions go back to before any message."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from deepagents.testing import ScriptedModel, call
from tests.cli.approval.test_sandbox import needs_sandbox
from tests.cli.conftest import Command
from tests.undo.workshop import Neighbour, held

pytestmark = pytest.mark.slow


def write(name: str, text: str) -> ScriptedModel:
    """A model that writes a file and is done."""
    return ScriptedModel(call("write_file", file_path=name, content=text), "Done.")


@pytest.fixture
def undo(cli: Command, directory: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command in a directory where two tasks were done."""
    monkeypatch.chdir(directory)
    cli("run", "Write one", "--yes", "--thread", "first", model=write("a.md", "one\n"))
    cli("run", "Write two", "--yes", "--thread", "second", model=write("a.md", "two\n"))
    return cli


def test_the_last_task_is_taken_back_and_then_the_one_before(undo: Command, directory: Path) -> None:
    taken = undo("undo", "--yes")
    assert (taken.code, taken.err) == (0, "")
    assert taken.out.splitlines()[1:3] == [
        "- Gets back what it held: `a.md`",
        "Back to before message 1: the conversation and 1 file.",
    ]
    assert ": Write two" in taken.out
    assert (directory / "a.md").read_text() == "one\n"

    assert "- Goes away, since it was made later: `a.md`" in undo("undo", "--yes").out
    assert not (directory / "a.md").exists()
    none = undo("sessions", "rewind", "first")
    assert none.err == "deepagents: no message of yours in this session is there to go back to\n"
    nothing = undo("undo", "--yes")
    assert (nothing.code, nothing.out) == (1, "")
    assert nothing.err == f"deepagents: there is nothing to take back: no task was done in '{directory}'\n"


def test_without_a_terminal_the_plan_is_shown_and_nothing_is_done(undo: Command, directory: Path) -> None:
    shown = undo("undo")
    assert shown.code == 2
    assert "- Gets back what it held: `a.md`" in shown.out
    assert shown.err == "deepagents: there is no terminal to ask on; agree to what is shown with --yes\n"
    assert (directory / "a.md").read_text() == "two\n"


def test_a_task_says_what_was_not_recorded_and_undo_does_not_claim_it(
    undo: Command, directory: Path, state: Path
) -> None:
    neighbour = Neighbour(state / "undo")
    ended = undo("run", "Write three", "--yes", "--thread", "third", model=write("a.md", "three\n"))
    neighbour.let_go()
    assert ended.code == 0
    assert ended.err.count("What is changed cannot be taken back here: ") == 1
    assert "cannot be used: database is locked." in ended.err

    taken = undo("undo", "--yes")
    assert "a step of this thread could not be recorded (database is locked), and what it" in taken.out
    assert "could not be recorded): `a.md`" in taken.out
    assert (directory / "a.md").read_text() == "three\n"


@needs_sandbox
def test_what_a_hook_at_the_end_formats_goes_back_with_the_task(
    cli: Command, directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(directory)
    (tmp_path / "settings.toml").write_text(
        """hooks.end_of_turn = ["sed -i s/one/ONE/ a.md; touch made.md"]"""
    )
    cli("run", "Write one", "--yes", model=write("a.md", "one\n"))
    cli("run", "Write more", "--yes", "--continue", model=write("b.md", "one\n"))
    assert (directory / "a.md").read_text() == "ONE\n"

    taken = cli("undo", "--yes")
    assert "- Goes away, since it was made later: `b.md`\n" in taken.out
    taken = cli("undo", "--yes")
    assert "- Goes away, since it was made later: `a.md`, `made.md`\n" in taken.out
    assert [each.name for each in directory.glob("*.md")] == ["notes.md"]


def test_a_file_that_is_busy_is_named_beside_those_that_went_back(undo: Command, directory: Path) -> None:
    both = ScriptedModel(
        call("write_file", file_path="b.md", content="2\n"),
        call("write_file", file_path="c.md", content="2\n"),
        "Done.",
    )
    undo("run", "Write both", "--yes", "--thread", "third", model=both)
    with held(directory / "b.md"):
        taken = undo("undo", "--yes")
    assert "Changed: `c.md`.\n" in taken.out
    assert "Could not be changed: `b.md`; to try again, go forth and back once more.\n" in taken.out
    assert (directory / "b.md").exists()


def test_a_file_that_was_edited_by_hand_stays_and_is_named(undo: Command, directory: Path) -> None:
    (directory / "a.md").write_text("by hand\n")

    taken = undo("undo", "--yes", "--dir", str(directory))
    assert "- Stays as it is (changed by others since): `a.md`" in taken.out
    assert "Stays as it was: `a.md`." in taken.out
    assert (directory / "a.md").read_text() == "by hand\n"


def test_a_session_goes_back_to_before_any_message_or_one_half_of_it(undo: Command, directory: Path) -> None:
    undo("run", "And more", "--continue", "--yes", model=write("b.md", "more\n"))
    listed = undo("sessions", "rewind", "Write two").out.splitlines()
    assert [line.partition(",")[0] for line in listed] == ["1", "5"]
    assert listed[1].endswith(": And more (1 file +1 -0)")

    assert undo("sessions", "rewind", "Write two", "--to", "5", "--only", "conversation", "--yes").code == 0
    assert (directory / "b.md").exists()
    done = undo("sessions", "rewind", "Write two", "--to", "1", "--only", "files", "--yes")
    assert "Back to before message 1: 2 files.\n" in done.out
    assert [each.read_text() for each in (directory / "a.md",)] == ["one\n"]
    assert "And more" not in undo("sessions", "show", "Write two").out
    wrong = undo("sessions", "rewind", "Write two", "--to", "7", "--yes")
    assert wrong.err == "deepagents: '7' is not the number of a message of yours; these are 1\n"


def test_what_a_task_changed_elsewhere_goes_back_where_that_is_named_again(
    cli: Command, directory: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    model = ScriptedModel(call("write_file", file_path=f"{other}/a.md", content="x\n"), "Done.")
    cli.run("Write", "--yes", "--write", str(other), model=model)

    shown = cli("undo", "--dir", str(directory))
    assert f"Stays as it is (it is protected, or a rule forbids to change it): `{other}/a.md`" in shown.out
    taken = cli("undo", "--yes", "--dir", str(directory), "--write", str(other))
    assert (taken.code, (other / "a.md").exists()) == (0, False)


def test_a_session_that_a_run_works_in_does_not_go_back(undo: Command, state: Path) -> None:
    # In a process of its own: a process does not keep itself out.
    holding = (
        "import sys; from pathlib import Path; from deepagents_cli.session.threads.sessions import Sessions\n"
        f"with Sessions(Path({str(state)!r})).hold('second'): print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", holding], stdin=-1, stdout=-1) as holder:
        assert holder.stdout
        holder.stdout.readline()
        held = undo("undo", "--yes")
        holder.communicate()
    assert held.code == 1
    assert "is in use by another run" in held.err


def test_a_removed_session_drops_its_records_unless_a_fork_needs_them(
    undo: Command, directory: Path, state: Path
) -> None:
    undo("sessions", "fork", "Write two")
    undo("sessions", "delete", "Write one", "Write two")
    assert _threads(state) == {"second"}

    taken = undo("undo", "--yes")
    assert "Write two" in taken.out
    assert (directory / "a.md").read_text() == "one\n"


def test_a_task_says_where_commands_are_not_covered(
    cli: Command, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(directory))

    ended = cli.run("Write", "--yes", model=write("a.md", "x\n"))
    assert ended.err.count("What commands change cannot be taken back here: ") == 1
    assert cli("undo", "--yes", "--dir", str(directory)).code == 0
    assert not (directory / "a.md").exists()


def _threads(state: Path) -> set[str]:
    """Return whose records are kept; those of one that was removed have a number behind its name."""
    with closing(sqlite3.connect(state / "undo" / "files.db")) as database:
        rows = database.execute("SELECT DISTINCT thread FROM seen")
        return {thread.partition("\n")[0] for (thread,) in rows}
