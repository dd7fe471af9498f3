"""Ctrl-O shows all of what a call has returned, and leaves what is being typed alone."""

from __future__ import annotations

import pytest

from tests.cli.approval.test_sandbox import needs_sandbox
from tests.cli.openai_server import OpenAIServer, call
from tests.cli.terminal.person import IDLE, Home, Person
from tests.cli.tmux import needs_tmux

pytestmark = [needs_tmux, pytest.mark.slow]


def test_ctrl_o_shows_whole_results_and_goes_back_through_earlier_ones(person: Person) -> None:
    (person.directory / "long.txt").write_text("".join(f"row {number}\n" for number in range(1, 301)))
    person.asks(
        "Read both.",
        call("read_file", file_path="notes.md"),
        call("read_file", file_path="long.txt", limit=300),
        "Read.",
    )
    person.sees("^Read.")
    person.terminal.type("half a sentence")
    person.presses("C-o")
    shown = person.sees("(?s)^read_file long.txt$.*2 of 2; q leaves")
    assert "half a sentence" not in shown
    person.presses("End")
    person.sees(r"\brow 300$")
    person.presses("C-o")
    person.sees("^read_file notes.md$(.*\n)+.*second line$")
    person.presses("C-o")
    person.sees("nothing older is kept")
    person.presses("Right")
    person.sees("^read_file long.txt$")
    person.presses("q")

    shown = person.sees("^› half a sentence$")
    assert "row 300" not in shown, "the scrollback has none of it"
    person.presses("C-u")
    person.sees(IDLE)


@needs_sandbox
def test_a_result_that_was_too_large_for_the_model_is_shown_whole(person: Person) -> None:
    person.enters("/mode auto")
    person.sees("^Mode auto")
    person.asks("Count.", call("execute", command="seq 30000"), "Counted.")
    person.sees("^Counted.")
    assert "too large" in person.server.requests[-1].last
    person.presses("C-o")
    person.sees("^execute seq 30000$")
    person.presses("G")
    person.sees("^29999\n30000$")
    person.presses("g")
    person.sees("^1\n2$")
    person.presses("Escape")

    person.sees(IDLE)


def test_results_of_a_session_that_is_opened_again_are_there(home: Home, server: OpenAIServer) -> None:
    with home.sit_down("--thread", "again") as person:
        person.asks("Read.", call("read_file", file_path="notes.md"), "Done.")
        person.sees("^Done.")
        person.presses("C-d")
        person.terminal.wait_for_end()
    with home.sit_down("--thread", "again", "--plain") as person:
        person.sees("^Ready.")
        person.enters("/result")
        person.sees("^read_file notes.md\n(.*\n)*.*second line")
        person.enters("/result 1")
        person.sees("^Nothing was returned or thought that long ago.")
        person.enters("/result last")
        person.sees("^'last' is not a number")


def test_a_question_that_comes_meanwhile_is_told_of(person: Person) -> None:
    person.asks("Read.", call("read_file", file_path="notes.md"), "Done.")
    person.sees("^Done.")
    person.asks("Write.", call("write_file", file_path="new.md", content="hello\n"), "Written.")
    person.presses("C-o")
    person.sees("a question waits for you")
    person.presses("q")
    person.answers("y")

    person.sees("^Written.")


def test_what_a_command_of_the_person_has_printed_is_there(person: Person) -> None:
    person.enters("!seq 60")
    person.sees("^60$")
    person.sees(IDLE)
    person.presses("C-o")
    person.sees("^!seq 60$(.*\n)*.*\n1\n2\n3$")
    person.presses("q")

    person.sees(IDLE)
