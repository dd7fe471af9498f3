"""Every slash command, typed by a person; a command that gets no story here fails the last test."""

from __future__ import annotations

import re
from collections.abc import Callable
from threading import Event
from typing import TypeVar

import pytest

from deepagents_cli.session.slash import COMMANDS
from deepagents_cli.views.conversation.commands import OWN_COMMANDS
from tests.cli.approval.test_sandbox import needs_sandbox
from tests.cli.openai_server import Reply, call
from tests.cli.terminal.person import IDLE, Person
from tests.cli.tmux import needs_tmux

Story = TypeVar("Story", bound=Callable[..., None])
pytestmark = [needs_tmux, pytest.mark.slow]
_told: set[str] = set()


def tells(*names: str) -> Callable[[Story], Story]:
    """Note which commands a story is about."""
    _told.update(names)
    return lambda story: story


@tells("help")
def test_help_lists_every_command_and_key(person: Person) -> None:
    person.enters("/help")

    person.sees("^Ctrl-C twice")
    shown = person.terminal.screen(history=True)
    listed = set(re.findall(r"^/(\S+) ", shown, re.MULTILINE))
    assert listed == {*OWN_COMMANDS, *COMMANDS, "greet"}


def test_a_command_sends_the_files_that_were_typed_behind_it_and_no_others(person: Person) -> None:
    (person.directory / "guests.md").write_text("Ada\nsee @.env\n")
    (person.directory / ".env").write_text("KEY=1")
    person.server.then("Hello.")
    person.enters("/greet @guests.md")
    person.sees("^Hello")

    text, file = person.server.requests[-1].messages[-1]["content"]
    assert text["text"] == "Greet @guests.md."
    assert "see @.env" in file["text"]
    (person.directory / ".env").unlink()


@tells("result")
def test_result_shows_all_of_what_a_call_has_returned(person: Person) -> None:
    person.enters("/result")
    person.sees("^nothing was returned or thought yet")
    person.asks("Read.", call("read_file", file_path="notes.md"), "Read.")
    person.sees("^Read.$")
    person.enters("/result 0")
    person.sees("^read_file notes.md\n.*first line")
    person.presses("q")

    person.sees(IDLE)


@tells("effort")
def test_the_effort_is_picked_and_stands_in_the_status_line(person: Person) -> None:
    person.enters("/effort")
    person.sees("^> default +now\n  low\n  medium\n  high$")
    person.presses("Down", "Enter")
    person.sees("^From now on local-server:scripted reasons with effort low")
    person.sees(r"^local-server:scripted \(low\) ")
    person.asks("Hi.", "Hello.")
    person.sees("^Hello.")
    assert person.server.requests[-1].body["reasoning_effort"] == "low"
    person.enters("/effort most")
    person.sees("'most' is not an effort of local-server:scripted; write low, medium, high")
    person.enters("/effort default")
    person.sees(r"^local-server:scripted · ")


@tells("model")
def test_another_model_is_picked(person: Person) -> None:
    person.server.models.append("other")
    person.enters("/model")
    person.sees("^  anthropic:.* set ANTHROPIC_API_KEY")
    person.terminal.type("other")
    person.sees_gone("anthropic:")
    person.presses("Enter")
    person.sees("^From now on local-server:other answers")
    person.sees("^local-server:other · topic")

    person.asks("Hi.", "Hello from the other one.")
    person.sees("^Hello from the other one")
    person.sees_gone("Esc stops")
    assert person.server.requests[-1].body["model"] == "other"
    person.enters("/model local-server:scripted")
    person.sees("^From now on local-server:scripted")


@tells("mode")
def test_a_mode_is_picked(person: Person) -> None:
    person.enters("/mode")
    person.sees("^> ask ")
    person.presses("Down", "Enter")

    person.sees("^Mode auto: edits and confined commands go through")
    person.sees("· auto$")


@tells("memory", "skills", "agents", "tools", "permissions", "settings", "doctor")
def test_what_counts_here_is_listed(person: Person) -> None:
    shown = ""
    for command, expected in {
        "memory": rf"{person.directory}/AGENTS.md, \d+ bytes",
        "skills": r"cook [^•]*cook/SKILL.md",
        "agents": "taster Tastes dishes.",
        "tools": "write_file: asks",
        "permissions": "^No call is allowed for good",
        "settings": "^Yours are in .*settings.toml",
        "doctor": "A task can run here",
    }.items():
        person.enters(f"/{command}")
        shown = person.sees(expected)
    assert "others can read" not in shown
    assert "no terminal" not in shown


@tells("remember")
def test_a_note_is_written_where_the_person_says_after_it_was_shown(person: Person) -> None:
    person.enters("/remember Test first.")
    person.sees("^> home ")
    person.presses("Down", "Enter")
    person.sees(r"^Write .*/kitchen/AGENTS.md\?\n- Write short lines.\n- Test first.")
    person.answers("y")

    person.sees("^Written: ")
    assert (person.directory / "AGENTS.md").read_text() == "- Write short lines.\n- Test first.\n"


@tells("new", "rename", "sessions", "resume", "fork", "export")
def test_sessions_are_named_copied_written_and_opened_again(person: Person) -> None:
    person.asks("Count to one.", "One.")
    person.sees("^One.")
    person.asks("And to two.", "One, two.")
    person.sees("^One, two.")
    person.enters("/rename counting")
    person.sees("^› /rename counting\n\nThis session is now called counting")

    person.enters("/fork")
    person.sees(r"^> 4\. One, two\.")
    person.terminal.type("2. One.")
    person.sees_gone(r"^> 4\.")
    person.presses("Enter")
    person.sees("^This is a copy up to message 2")
    person.asks("And to three?", "Three.")
    person.sees("^Three.")
    assert person.server.requests[-1].texts("user") == ["Count to one.", "And to three?"]

    person.enters("/export talk.md")
    person.sees("^And to three")
    person.answers("y")
    person.sees(r"^Written: .*talk\.md")
    assert "And to three?" in (person.directory / "talk.md").read_text()
    person.enters("/export AGENTS.md")
    person.sees(r"^Write .*AGENTS\.md\? It replaces\s+the\s+[\d,]+\s+bytes\s+that\s+are\s+there\.")
    person.answers("n")

    person.begins_anew()
    person.enters("/resume counting")
    person.sees("^› And to two.\n\nOne, two.")
    person.begins_anew()
    person.enters("/sessions")
    person.sees(r"^> .*counting.*  \d{4}-\d\d-\d\d \d\d:\d\d$")
    person.presses("Enter")
    person.sees("^› Count to one.\n\nOne.")


@needs_sandbox
@tells("bg")
def test_a_command_in_the_background_is_read_and_wakes_the_agent_when_it_ends(person: Person) -> None:
    person.enters("/mode auto")
    person.sees("^Mode auto")
    command = "echo served; touch log; until test -e over; do sleep 0.1; done; exit 3"
    waits = call("execute", command="until test -e log; do sleep 0.05; done; sleep 0.3")
    person.asks("Serve.", call("execute", command=command, background=True), waits, "It runs.")
    person.sees(r"^It runs\.")
    person.enters("/bg")
    person.sees(r"^command-\w+-\d+  runs for \d+ s  echo served; touch .*\n    served$")
    person.enters("/bg read")
    person.sees(r"^> command-.* echo served;.*  runs for \d+ s$")
    person.presses("Enter")
    person.sees(r"^served\nIt runs\.$")
    person.terminal.type("half a line")
    person.server.then("It has ended, badly.")
    (person.directory / "over").touch()

    shown = person.sees(r"^It has ended, badly\.")
    assert len(re.findall(r"^✗ command-\S+ echo served;.*ended with exit code 3", shown, re.MULTILINE)) == 1
    person.sees("^› half a line")
    assert "\nserved\n" in person.server.requests[-1].last
    person.presses("C-c")
    for name in ("over", "log"):
        (person.directory / name).unlink()


@tells("clear")
def test_the_screen_is_cleared_for_a_new_session_and_the_old_one_is_kept(person: Person) -> None:
    person.asks("Call it Bertha.", "Bertha it is.")
    person.sees("^Bertha it is.")
    person.sees_gone("Esc stops")
    person.enters("/clear")
    person.sees_gone("Bertha")
    # For a moment the screen holds nothing at all.
    assert "Bertha" not in person.sees("scripted in ")
    person.asks("What is it called?", "I do not know.")
    person.sees("^I do not know.")
    assert person.server.requests[-1].texts("user") == ["What is it called?"]

    person.sees_gone("Esc stops")
    person.enters("/resume Call it Bertha.")
    person.sees("^› Call it Bertha.\n\nBertha it is.")
    person.server.then(Reply("Once upon a time", hold=Event()))
    person.enters("Go on.")
    person.sees("^Once$")
    person.enters("/clear")
    assert "Bertha" in person.sees("^The agent is working; stop it with Esc to begin a new session")
    person.presses("Escape")
    person.sees("^Stopped. What is done is kept.")


@tells("diff", "context", "cost", "compact")
def test_what_was_done_and_used_is_shown_and_made_smaller(person: Person) -> None:
    (person.directory / "notes.md").write_text("first line\nsecond line\n")
    person.enters("/mode auto")
    person.sees("^Mode auto")
    person.asks(
        "Change the notes.",
        call("edit_file", file_path="notes.md", old_string="second", new_string="another"),
        Reply("Written.", usage=(50_000, 500)),
    )
    person.sees("^Written.")
    person.enters("/diff")
    person.sees(r"-second line\n *\+another line")
    person.enters("/cost")
    person.sees(r" main +scripted +[\d,]+ +0 +[\d,]+ +\$0\.0000")
    for text in ("How are you?", "Really?"):
        person.asks(text, f"Yes: {text}")
        person.sees(f"^Yes: {re.escape(text)}")
    person.sees_gone("Esc stops")
    person.server.then("They changed the notes.")
    person.enters("/compact")
    person.sees("messages were replaced by a summary")
    person.enters("/context")
    person.sees(r"^your messages +█+·+ +\d+ ")

    person.asks("Are you there?", "I am.")
    person.sees("^I am.")
    assert "They changed the notes." in str(person.server.requests[-1].messages)
    assert "Change the notes." not in person.server.requests[-1].texts("user")


@tells("init", "review")
def test_work_that_has_a_name_is_sent_to_the_agent(person: Person) -> None:
    person.server.then("An AGENTS.md is there.", "Nothing is wrong.", "Good day, Ada.")
    person.enters("/init in Latin")
    person.sees("^An AGENTS.md is there.")
    assert re.search(r"write AGENTS\.md .* in Latin$", person.server.requests[-1].last)
    person.enters("/review")
    person.sees("^Nothing is wrong.")
    assert "not committed" in person.server.requests[-1].last
    person.enters("/greet Ada")
    person.sees("^Good day, Ada.")
    assert person.server.requests[-1].last == "Greet Ada."


@tells("theme")
def test_a_theme_without_colours_has_none(person: Person) -> None:
    person.enters("/theme")
    person.sees("^> light")
    person.presses("Down", "Down", "Enter")
    person.sees("^› /theme none")
    person.enters("/theme pink")
    person.sees("^'pink' is not a theme; write light, dark, none")
    person.asks("Colours?", "None, `none`.")
    person.sees("^None, none.")
    assert not re.search(r"\x1b\[[0-9;]*(3[0-7]|9[0-7])m", person.terminal.screen(colours=True))
    person.enters("/theme dark")
    person.sees(IDLE)


def test_every_command_has_a_story() -> None:
    # Some have stories of their own: who has quit tells nothing more (test_leaving.py), a conversation with
    # servers begins with a question (test_mcp_servers.py), a worktree needs a repository (test_worktrees.py),
    # and what goes back is broken first (test_undo.py).
    apart = {"quit", "mcp", "worktree", "rewind", "undo", "redo"}
    assert {*OWN_COMMANDS, *COMMANDS} - _told == apart
