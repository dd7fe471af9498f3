"""A person takes back what an agent has broken: the files, the conversation, or both."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cli.approval.test_sandbox import needs_sandbox
from tests.cli.openai_server import MODEL, OpenAIServer, call
from tests.cli.terminal.person import FILES, Home, Person
from tests.cli.tmux import needs_tmux

pytestmark = [needs_tmux, pytest.mark.slow]
_FILES: Mapping[str, str] = {
    **FILES,
    "a.py": "one = 1\n",
    "b.py": "two = 2\n",
    "c.py": "three = 3\n",
    "mine.md": "by the agent\n",
}


@needs_sandbox
def test_esc_esc_brings_back_what_an_edit_a_command_and_a_subagent_broke(
    tmp_path: Path, server: OpenAIServer
) -> None:
    home = Home(tmp_path, server, _FILES)
    before = _read(home.directory)
    with home.sit_down("--mode", "auto") as person:
        person.sees("scripted in\\b")
        person.asks("Say hello.", "Hello.")
        person.sees("^Hello.")
        person.sees_gone("Esc stops")
        _break_all(person)
        assert _read(home.directory).keys() > before.keys()

        (home.directory / "mine.md").write_text("by hand\n")
        person.presses("Escape")
        person.sees("^Esc again: go back to before one of your messages")
        person.presses("Escape")
        person.sees(r"^> 3\. Break all of it\.  \d\d:\d\d, 5 files \+\d+ -\d+\n  1\. Say hello\.")
        person.presses("Enter")
        person.sees("^> both  conversation and files")
        person.presses("Enter")
        shown = person.sees("^> do it")
        assert "• Gets back what it held: a.py, b.py, c.py" in shown
        assert "• Goes away, since it was made later: new.txt" in shown
        assert "• Stays as it is (changed by others since): mine.md" in shown
        assert (home.directory / "a.py").read_text() == "broken\n"
        person.presses("Enter")

        person.sees("^Back to before message 3: the conversation and 4 files. Stays as it was: mine.md.")
        person.sees("^› Break all of it.$")
        assert _read(home.directory) == before | {"mine.md": "by hand\n"}
        person.presses("C-u")
        person.asks("What did I say?", "Hello?")
        person.sees("^Hello\\?")
        sent = [each["content"] for each in server.requests[-1].messages if each["role"] == "user"]
        assert sent == ["Say hello.", "What did I say?"]

        _go_forth_and_look_again(person)


def test_the_last_task_is_taken_back_after_the_person_has_read_what_will_happen(
    tmp_path: Path, server: OpenAIServer
) -> None:
    home = Home(tmp_path, server, _FILES)
    with home.sit_down(shell=True) as person:
        program = f"{home.python} -m deepagents_cli"
        person.sees(r"^\$")
        person.asks(
            f"{program} 'Break a.py' --auto --model local-server:{MODEL}",
            call("write_file", file_path="a.py", content="broken\n"),
            "Done.",
        )
        person.sees("^Done.")
        person.sees("tokens in")
        person.enters(f"{program} undo")
        person.sees(r"^- Gets back what it held: `a.py`\n(.*\n)*Do it\? \[y\]es, \[n\]o")
        assert (home.directory / "a.py").read_text() == "broken\n"
        person.enters("perhaps")
        person.sees(r"\[n\]o perhaps\nDo it\?")
        person.enters("y")
        person.sees("^Back to before message 1: the conversation and 1 file.")
        assert (home.directory / "a.py").read_text() == "one = 1\n"


def _go_forth_and_look_again(person: Person) -> None:
    person.sees_gone("Esc stops")
    person.enters("/redo")
    person.sees("^> do it")
    person.presses("Enter")
    person.sees("^Forth again.* message 3: the conversation and 4 files.")
    assert (person.directory / "a.py").read_text() == "broken\n"
    assert (person.directory / "mine.md").read_text() == "by hand\n"

    # One Esc stops what runs, and does not count as the first of two.
    person.enters("!echo begun; sleep 600")
    person.sees("^ *begun")
    person.presses("Escape")
    person.sees("stopped by the person|stopped$")
    assert "Esc again" not in person.terminal.screen()

    person.enters("/undo")
    person.sees("^> do it")
    person.presses("Down", "Enter")
    person.sees("^Nothing has changed.")
    assert (person.directory / "a.py").read_text() == "broken\n"


def _break_all(person: Person) -> None:
    person.asks(
        "Break all of it.",
        call("edit_file", file_path="a.py", old_string="one = 1", new_string="broken"),
        call("execute", command="echo broken > b.py; echo x > new.txt; echo more >> mine.md"),
        call("task", description="Break c.py", subagent_type="general-purpose"),
        call("write_file", file_path="c.py", content="broken\n"),
        "It is broken.",
        "All broken.",
    )
    person.sees("^All broken.")
    person.sees_gone("Esc stops")


def _read(directory: Path) -> dict[str, str]:
    files = (each for each in directory.rglob("*") if each.is_file())
    return {str(each.relative_to(directory)): each.read_text() for each in files}
