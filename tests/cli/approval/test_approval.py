"""A person decides about calls that change something, at a terminal."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from deepagents.testing import ScriptedModel, call
from tests.cli.children import Script
from tests.cli.conftest import Child, Command, Nursery
from tests.cli.scenarios import (
    SENTENCES,
    edits_a_file,
    writes_a_file,
    writes_a_file_after_a_while,
    writes_other_line_ends,
    writes_two_files,
    writes_two_files_as_the_local_model,
    writes_without_content,
)

pytestmark = pytest.mark.slow

QUESTION = r"\[y\]es.*\] \? $"


def at_question(nursery: Nursery, script: Script, *argv: str, **environment: str) -> Child:
    """Run a command at a terminal until a person is asked."""
    child = nursery.at_terminal(script, *argv, **environment)
    child.wait_for(QUESTION)
    return child


def test_yes_lets_the_call_run(nursery: Nursery, directory: Path) -> None:
    child = nursery.at_terminal(writes_a_file, "write it")

    asked = child.wait_for(QUESTION)
    assert "The agent wants to write new.md" in asked
    assert "+hello" in asked
    assert not (directory / "new.md").exists()
    child.type("y")

    assert child.end() == 0
    assert (directory / "new.md").read_text() == "hello\n"
    assert f"Created file {directory}/new.md" in child.output


def test_no_keeps_the_file_and_tells_the_model_why(nursery: Nursery, directory: Path) -> None:
    child = nursery.at_terminal(edits_a_file, "edit it")

    asked = child.wait_for(QUESTION)
    assert "  -second line\n  +2nd line" in asked
    child.type("n")
    child.wait_for("Why")
    child.type("leave it as it is")

    assert child.end() == 0
    assert (directory / "notes.md").read_text() == "first line\nsecond line\n"
    assert "leave it as it is" in child.output.split("Why")[1].partition("\n")[2]


def test_a_reply_takes_the_place_of_the_result(nursery: Nursery, directory: Path) -> None:
    child = at_question(nursery, writes_a_file, "write it")
    child.type("r")
    child.wait_for("Reply")
    child.type("use another name")

    assert child.end() == 0
    assert not (directory / "new.md").exists()
    assert child.output.count("use another name") >= 2


def test_without_an_editor_lines_are_typed_in_place_and_the_new_change_is_shown(
    nursery: Nursery, directory: Path
) -> None:
    child = at_question(nursery, writes_a_file, "write it")
    child.type("e")
    child.wait_for("single dot")
    for line in ("changed", "twice", "."):
        child.type(line)
    assert "  +changed\n  +twice\n" in child.wait_for(QUESTION)
    assert not (directory / "new.md").exists()
    child.type("y")

    assert child.end() == 0
    assert (directory / "new.md").read_text() == "changed\ntwice\n"


def test_a_question_mark_explains_the_choices(nursery: Nursery, directory: Path) -> None:
    child = at_question(nursery, writes_a_file, "write it")
    child.type("?")

    assert re.search("^n +refuse it; the model reads your reason$", child.wait_for(QUESTION), re.MULTILINE)
    child.type("y")
    assert child.end() == 0


def test_content_can_be_edited_in_an_editor(nursery: Nursery, directory: Path) -> None:
    child = at_question(nursery, writes_a_file, "write it", EDITOR="sed -i s/hello/edited/")
    child.type("e")
    assert "+edited" in child.wait_for(QUESTION)
    child.type("y")

    assert child.end() == 0
    assert (directory / "new.md").read_text() == "edited\n"


def test_a_call_that_lacks_an_argument_is_not_asked_about(cli: Command) -> None:
    ended = cli.run("write it", model=writes_without_content())

    assert ended.code == 0


def test_an_editor_that_fails_changes_nothing_and_the_question_comes_again(
    nursery: Nursery, directory: Path
) -> None:
    child = at_question(nursery, writes_a_file, "write it", EDITOR="false")
    child.type("e")
    child.wait_for(r"Not taken: the editor 'false'(.|\n)*\? $")
    child.type("y")

    assert child.end() == 0
    assert (directory / "new.md").read_text() == "hello\n"


def test_always_asks_no_more_about_that_tool(nursery: Nursery, directory: Path) -> None:
    child = at_question(nursery, writes_two_files, "write them")
    child.type("a")
    assert "2. changes of all files in the directory" in child.wait_for("Type a number")
    child.type("2")
    assert "1. in this session" in child.wait_for("Type a number")
    child.type("1")

    assert child.end() == 0
    assert (directory / "one.md").exists()
    assert (directory / "two.md").exists()


def test_another_answer_is_asked_again(nursery: Nursery, directory: Path) -> None:
    child = at_question(nursery, writes_a_file, "write it")
    for unclear in ("x", "abort", "not sure", "yikes"):
        child.type(unclear)
        child.wait_for(QUESTION)
    child.type("Yes")

    assert child.end() == 0
    assert (directory / "new.md").exists()


def test_the_end_of_input_stops_and_leaves_the_question_open(nursery: Nursery, directory: Path) -> None:
    child = at_question(nursery, writes_a_file, "write it")
    child.type("\x04")

    assert child.end() == 130
    assert "--continue" in child.output
    assert not (directory / "new.md").exists()

    again = nursery.at_terminal(writes_a_file, "--continue")
    assert "write new.md" in again.wait_for(QUESTION)


def test_with_nobody_to_ask_a_change_is_refused(cli: Command, directory: Path) -> None:
    model = ScriptedModel(call("write_file", file_path="new.md", content="x"), "I would have written new.md.")

    ended = cli.run("write it", model=model)

    assert ended.code == 3
    assert ended.err == (
        "deepagents: 1 call was refused: there is no terminal to ask for approval; allow changes with --yes\n"
    )
    assert not (directory / "new.md").exists()
    assert "nobody can be asked" in model.asked[-1].last


def test_reading_needs_nobody(cli: Command) -> None:
    ended = cli.run("read it", model=ScriptedModel(call("read_file", file_path="notes.md"), "Read."))

    assert ended.code == 0


def test_yes_to_all_lets_every_call_run(cli: Command, directory: Path) -> None:
    delete = call("delete", file_path="notes.md")

    ended = cli.run("delete it", "--yes", model=ScriptedModel(delete, "Deleted."))

    assert ended.code == 0
    assert list(directory.iterdir()) == []


def test_a_subagent_asks_as_the_main_agent_does(cli: Command, directory: Path) -> None:
    model = ScriptedModel(
        call("task", description="write", subagent_type="general-purpose"),
        call("write_file", file_path="new.md", content="x"),
        "I could not.",
        "It could not.",
    )

    ended = cli.run("delegate", model=model)

    assert ended.code == 3
    assert not (directory / "new.md").exists()


def test_the_local_model_gets_no_answer_for_all(nursery: Nursery, directory: Path) -> None:
    child = nursery.at_terminal(writes_two_files_as_the_local_model, "write them")

    assert "[a]lways" not in child.wait_for(QUESTION)
    child.type("a")
    child.wait_for(QUESTION)
    child.type("y")
    child.wait_for(QUESTION)
    child.type("n")
    child.wait_for("Why")
    child.type("")

    assert child.end() == 0
    assert (directory / "one.md").exists()
    assert not (directory / "two.md").exists()


def test_an_interrupt_at_the_question_stops_and_leaves_it_open(nursery: Nursery, directory: Path) -> None:
    child = at_question(nursery, writes_a_file, "write it")
    child.wait_until_it_waits()

    child.signal(signal.SIGINT)

    assert child.end() == 130
    assert "Go on with: deepagents --continue" in child.output
    assert not (directory / "new.md").exists()


def test_with_json_the_question_is_asked_at_the_terminal_too(nursery: Nursery, directory: Path) -> None:
    child = at_question(nursery, writes_a_file, "write it", "--json")

    child.type("y")

    assert child.end() == 0
    assert (directory / "new.md").exists()


def test_a_sentence_answers_nothing(nursery: Nursery, directory: Path) -> None:
    child = at_question(nursery, writes_a_file, "write it")
    for sentence in SENTENCES:
        child.type(sentence)
        child.wait_for(f"not an answer.*\n{QUESTION}")
    child.type("a")
    child.wait_for("Type a number")
    child.type("1")
    child.wait_for("For how long(.|\n)*Type a number")
    child.type("don't")
    child.wait_for("Type a number")
    child.type("")
    child.wait_for(QUESTION)
    child.type("NO")
    child.wait_for("Why")
    child.type("")

    assert child.end() == 0
    assert not (directory / "new.md").exists()


def test_what_was_typed_before_the_question_does_not_answer_it(nursery: Nursery, directory: Path) -> None:
    child = nursery.at_terminal(writes_a_file_after_a_while, "write it")
    child.wait_for("Thinking")
    child.type("y")
    child.type("oka", end="")
    (directory / "typed").touch()
    assert "Typed before the question, and not taken: y\n" in child.wait_for(QUESTION)
    child.type("y")
    child.wait_for(f"not an answer.*\n{QUESTION}")
    assert not (directory / "new.md").exists()
    child.type("n")
    child.wait_for("Why")
    child.type("")

    assert child.end() == 0
    assert not (directory / "new.md").exists()


def test_a_change_of_line_ends_alone_is_said_to_be_one(nursery: Nursery, directory: Path) -> None:
    child = nursery.at_terminal(writes_other_line_ends, "write it")

    assert "at most how lines end" in child.wait_for(QUESTION)
    child.type("y")
    assert child.end() == 0
