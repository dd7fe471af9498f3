"""A person is asked, in each mode, and decides; the model reads what was decided."""

from __future__ import annotations

import re

import pytest

from tests.cli.approval.test_sandbox import needs_sandbox
from tests.cli.openai_server import call
from tests.cli.terminal.person import QUESTION, Person
from tests.cli.tmux import needs_tmux

pytestmark = [needs_tmux, pytest.mark.slow]
WHY = "No English here, since none of those who read this file has ever learnt any of it: write it in Latin."


def test_yes_makes_the_change_that_was_shown(person: Person) -> None:
    person.asks("Greet.", call("write_file", file_path="yes.md", content="hello\n"), "Greeted.")
    person.sees(r"^The agent wants to write yes.md\n  --- /dev/null\n(.*\n)+  \+hello\n")
    assert not (person.directory / "yes.md").exists()
    person.answers("y")

    person.sees("^✓ write_file yes.md\n\nGreeted.")
    assert (person.directory / "yes.md").read_text() == "hello\n"


def test_no_is_told_to_the_model_with_the_whole_reason(person: Person) -> None:
    person.asks("Greet.", call("write_file", file_path="no.md", content="hello\n"), "Not greeted.")
    person.answers("n")
    person.sees("^Why")
    person.enters(WHY)

    shown = person.sees("^Not greeted.")
    assert f"Refused: {WHY}" in " ".join(shown.split())
    assert WHY in person.server.requests[-1].last
    assert not (person.directory / "no.md").exists()


def test_a_change_is_edited_in_place_and_shown_again(person: Person) -> None:
    person.asks("Greet.", call("write_file", file_path="edited.md", content="hello"), "Greeted well.")
    person.answers("e")
    person.sees("Ctrl-S takes it")
    person.terminal.type(", world")
    person.presses("C-s")
    person.sees(r"^  \+hello, world")
    person.answers("y")

    person.sees("^✓ write_file edited.md\n\nGreeted well.")
    assert (person.directory / "edited.md").read_text() == "hello, world"


@needs_sandbox
def test_a_reply_takes_the_place_of_the_result(person: Person) -> None:
    person.asks("Which version?", call("execute", command="cat VERSION"), "It is 7.")
    shown = person.sees("wants to run")
    assert not re.search("^. execute", shown, re.MULTILINE), "it seems to run"
    person.answers("r")
    person.sees("^Reply in the tool's place")
    person.enters("version 7")

    person.sees("^It is 7.")
    assert person.server.requests[-1].last == "version 7"


@needs_sandbox
def test_always_holds_for_the_next_call_until_it_is_taken_back(person: Person) -> None:
    person.asks("Print.", call("execute", command="echo one"), "One.")
    person.answers("a")
    person.sees("^Always allow what")
    person.presses("Enter")
    person.sees("^For how long")
    person.presses("Down", "Enter")
    person.sees("^One.")
    person.asks("Once more.", call("execute", command="echo one"), "One again.")
    person.sees("^One again.")
    settings = person.home.home / "settings.toml"
    assert "command: echo one" in settings.read_text()

    person.enters("/permissions")
    person.sees("^> keep all  remove none")
    person.presses("Down")
    person.sees("^> command: echo one  .*remove")
    person.presses("Enter")
    person.sees("^It is asked about again.")
    assert "echo one" not in settings.read_text()
    person.asks("A third time.", call("execute", command="echo one"), "Three.")
    person.answers("y")
    person.sees("^Three.")


@needs_sandbox
def test_always_holds_as_far_and_as_long_as_is_chosen(person: Person) -> None:
    def allows(rule: str, rule_rows: int, scope_rows: int) -> None:
        person.answers("a")
        person.sees(rf"^Always allow what(.*\n)+. {rule}")
        person.presses(*["Down"] * rule_rows, "Enter")
        person.sees("^For how long")
        person.presses(*["Down"] * scope_rows, "Enter")

    person.asks("List.", call("execute", command="ls notes.md"), "Listed.")
    allows("commands that begin with `ls`", 1, 0)
    person.sees("^Listed.")
    person.asks(
        "Write.",
        call("execute", command="ls AGENTS.md"),
        call("write_file", file_path="soups/one.md", content="hot\n"),
        call("write_file", file_path="soups/two.md", content="cold\n"),
        call("write_file", file_path="menu.md", content="soups\n"),
        "Written.",
    )
    allows("changes below soups/", 1, 1)
    person.sees("^The agent wants to write menu.md")
    allows("changes of menu.md", 0, 2)
    shown = person.sees("^Written.")
    assert re.search("^✓ execute ls AGENTS.md", shown, re.MULTILINE)
    assert re.search("^✓ write_file soups/two.md", shown, re.MULTILINE)

    person.enters("/permissions")
    person.sees(
        "^  commands: ls  this session; remove\n"
        f"  edits: {person.directory}/soups  in this directory; remove\n"
        f"  edit: {person.directory}/menu.md  everywhere; remove$"
    )
    kept = (person.home.home / "settings.toml").read_text()
    assert "commands: ls" not in kept
    for _ in range(3):
        person.presses("Down", "Enter")
        person.sees("^It is asked about again.")
        person.presses("C-l")
        person.sees_gone("^It is asked about again.")
        person.enters("/permissions")
        person.sees("^> keep all|^No call is allowed for good")
    assert "soups" not in (person.home.home / "settings.toml").read_text()


def test_a_change_that_cannot_be_made_is_not_asked_about(person: Person) -> None:
    edit = call("edit_file", file_path="notes.md", old_string="not in it", new_string="x")
    person.asks("Change it.", edit, "I cannot.")

    shown = person.sees("^I cannot.")
    assert "wants to" not in shown
    assert shown.count("String not found in file") == 1


@needs_sandbox
def test_auto_asks_about_secrets_and_about_nothing_else_here(person: Person) -> None:
    person.enters("/mode auto")
    person.sees("^Mode auto")
    person.asks(
        "Work.",
        call("write_file", file_path="auto.md", content="by itself\n"),
        call("execute", command="cat auto.md"),
        call("write_file", file_path=".env", content="KEY=1\n"),
        "Worked.",
    )
    shown = person.sees("wants to write .env")
    assert "✓ execute cat auto.md" in shown
    person.answers("n")
    person.sees("^Why")
    person.presses("Enter")

    person.sees("^Worked.")
    assert not (person.directory / ".env").exists()


def test_a_plan_is_made_changed_approved_and_carried_out(person: Person) -> None:
    person.enters("/mode plan")
    person.sees("^Mode plan")
    person.asks(
        "Plan a greeting.",
        call("write_file", file_path="plan.md", content="too early\n"),
        call("present_plan", plan="## Plan\n\n1. Write `plan.md`.\n\n<!-- and more -->"),
        call("present_plan", plan="## Plan\n\n1. Write `plan.md` in Latin."),
        call("write_file", file_path="plan.md", content="salve\n"),
        "Carried out.",
    )
    shown = person.sees(r"^\[1\] Carry it out, asking \[2\] Carry it out \[3\] Keep planning \[r\]eply")
    assert "✗ write_file plan.md" in shown
    assert "\nPlan\n\n 1 Write plan.md.\n\n<!-- and more -->\n" in shown
    person.enters("r")
    person.sees("^Answer:")
    person.enters("In Latin.")
    person.sees("1 Write plan.md in Latin.")
    person.sees(r"^\[1\]")
    person.enters("?")
    person.sees("^2 +Carry it out: edits and confined commands need no approval")
    person.enters("2")

    person.sees("^Carried out.")
    person.sees("· auto$")
    assert (person.directory / "plan.md").read_text() == "salve\n"
    assert not any("✓ present_plan" in line for line in person.terminal.screen().splitlines())


def test_full_asks_about_nothing(person: Person) -> None:
    person.enters("/mode full")
    person.sees("^Mode full")
    person.asks("Work.", call("write_file", file_path=".env", content="KEY=1\n"), "All done.")
    person.sees("^All done.")

    assert (person.directory / ".env").read_text() == "KEY=1\n"
    (person.directory / ".env").unlink()


def test_esc_at_a_question_refuses_and_stops(person: Person) -> None:
    person.asks("Greet.", call("write_file", file_path="esc.md", content="hello\n"))
    person.sees(QUESTION)
    person.presses("Escape")
    person.sees("^Stopped. What is done is kept.")
    person.asks("Go on.", "Without it.")

    person.sees("^Without it.")
    assert not (person.directory / "esc.md").exists()
