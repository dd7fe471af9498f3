"""What runs have left is listed, searched, shown, named, removed, exported and forked."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from deepagents.testing import ScriptedModel, call
from tests.cli.conftest import Command

pytestmark = pytest.mark.slow


@pytest.fixture
def sessions(cli: Command, directory: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command in a directory with two sessions, of which the first has two turns."""
    monkeypatch.chdir(directory)
    reads = call("read_file", file_path="notes.md")
    cli("run", "Read the notes", "--thread", "first", model=ScriptedModel(reads, "Two lines."))
    cli("run", "Say good morning", "--thread", "second", model=ScriptedModel("Good morning."))
    cli("run", "And in French?", "--thread", "first", model=ScriptedModel("Deux lignes."))
    return cli


def listed(cli: Command, *argv: str) -> list[str]:
    """The names of the sessions that a command lists."""
    return [line.rsplit("  ", 1)[1] for line in cli("sessions", *argv).out.splitlines()]


def test_sessions_are_listed_by_their_first_task_those_used_last_first(sessions: Command) -> None:
    assert listed(sessions) == ["Read the notes", "Say good morning"]
    assert listed(sessions, "list", "--dir", "/") == []
    assert listed(sessions, "list", "--dir", "/", "--all") == ["Read the notes", "Say good morning"]


@pytest.mark.parametrize(("text", "found"), [("deux", ["Read the notes"]), ("GOOD", ["Say good morning"])])
def test_a_text_is_searched_in_names_and_messages(sessions: Command, text: str, found: list[str]) -> None:
    assert listed(sessions, "search", text) == found


def test_a_session_is_shown_as_it_went(sessions: Command) -> None:
    shown = sessions("sessions", "show", "first").out

    places = [
        shown.index(each)
        for each in (
            "# Read the notes",
            "## 1. Person\n\nRead the notes",
            "## 2. Agent\n\n- `read_file notes.md`",
            "## 3. Result\n\n```\n",
            "first line",
            "## 4. Agent\n\nTwo lines.",
            "## 6. Agent\n\nDeux lignes.",
        )
    ]
    assert places == sorted(places)


def test_a_session_is_exported_with_all_that_its_messages_hold(sessions: Command) -> None:
    exported = json.loads(sessions("sessions", "export", "fir", "--json").out)

    assert (exported["id"], exported["name"]) == ("first", "Read the notes")
    assert [each["type"] for each in exported["messages"]] == ["human", "ai", "tool", "ai", "human", "ai"]
    assert sessions("sessions", "export", "first").out.startswith("# Read the notes\n")


def test_another_name_is_kept_and_found(sessions: Command) -> None:
    assert sessions("sessions", "rename", "second", "greetings").code == 0

    assert listed(sessions) == ["Read the notes", "greetings"]
    assert "Good morning." in sessions("sessions", "show", "greetings").out


def test_a_name_is_never_empty_and_an_id_counts_before_it(sessions: Command) -> None:
    assert sessions("sessions", "rename", "second", "first").code == 0
    assert "Deux lignes." in sessions("sessions", "show", "first").out

    ended = sessions("sessions", "rename", "second", " ")

    assert (ended.code, ended.err) == (
        2,
        "deepagents: ' ' is not a name; write one with a letter or a digit\n",
    )
    assert listed(sessions) == ["Read the notes", "first"]


def test_a_session_goes_on_by_its_name(sessions: Command) -> None:
    goes_on = ScriptedModel("Guten Morgen.")
    ended = sessions("run", "-q", "In German?", "--thread", "Say good morning", model=goes_on)
    sessions("sessions", "rename", "first", "Say good morning")
    unclear = sessions("run", "And?", "--thread", "Say good morning", model=ScriptedModel())

    assert ended.out == "Guten Morgen.\n"
    assert "Guten Morgen." in sessions("sessions", "show", "second").out
    assert "'Say good morning' names 2 sessions (second, first)" in unclear.err
    assert len(listed(sessions)) == 2


def test_names_that_two_sessions_have_need_an_id(sessions: Command) -> None:
    sessions("sessions", "rename", "second", "Read the notes")

    ended = sessions("sessions", "show", "Read the notes")

    assert ended.err == ("deepagents: 'Read the notes' names 2 sessions (first, second); give the whole id\n")


def test_a_removed_session_is_gone_with_its_messages(sessions: Command, state: Path) -> None:
    ended = sessions("sessions", "delete", "second")

    assert ended.out == "removed second  Say good morning\n"
    assert listed(sessions) == ["Read the notes"]
    assert b"Good morning." not in (state / "threads.sqlite").read_bytes()


def test_a_name_that_is_none_removes_nothing(sessions: Command) -> None:
    ended = sessions("sessions", "delete", "second", "third")

    assert (ended.code, ended.err) == (
        1,
        "deepagents: there is no session 'third'; `deepagents sessions` lists them\n",
    )
    assert len(listed(sessions)) == 2


def test_a_session_that_a_run_works_in_is_copied_and_not_removed(sessions: Command, state: Path) -> None:
    # In a process of its own: a process does not keep itself out.
    holding = (
        "import sys; from pathlib import Path; from deepagents_cli.session.threads.sessions import Sessions\n"
        f"with Sessions(Path({str(state)!r})).hold('second'): print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", holding], stdin=-1, stdout=-1) as holder:
        assert holder.stdout
        holder.stdout.readline()
        ended = sessions("sessions", "delete", "second", "first")
        copied = sessions("sessions", "fork", "second")
        refused = sessions.run("Go on.", "--thread", "second", model=ScriptedModel())
        holder.communicate()

    assert ended.code == 1
    assert "in use by a run, and kept: second" in ended.err
    assert "removed first" in ended.out
    assert refused.err.endswith("work in a copy (deepagents sessions fork second), or begin a new session\n")
    assert "Good morning." in sessions("sessions", "show", copied.out.strip()).out
    assert listed(sessions) == ["Say good morning (fork)", "Say good morning"]


def test_old_sessions_are_removed_and_the_oldest_beyond_a_size(sessions: Command) -> None:
    assert sessions("sessions", "prune").code == 2
    assert sessions("sessions", "prune", "--older", "1").out == ""

    assert sessions("sessions", "prune", "--keep", "1").out == ""
    assert len(listed(sessions)) == 2


def test_a_fork_goes_on_from_an_earlier_message_and_leaves_the_session_as_it_is(sessions: Command) -> None:
    copy = sessions("sessions", "fork", "first", "--at", "4").out.strip()

    answer = sessions(
        "run", "-q", "And in German?", "--thread", copy, model=ScriptedModel(lambda asked: "Zwei Zeilen.")
    )

    assert answer.out == "Zwei Zeilen.\n"
    shown = sessions("sessions", "show", copy).out
    assert "## 6. Agent\n\nZwei Zeilen." in shown
    assert "Deux" not in shown
    assert "Deux lignes." in sessions("sessions", "show", "first").out
    assert sessions("sessions", "fork", "first", "--at", "99").code == 1
