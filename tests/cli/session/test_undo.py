"""What was changed is shown, counted, and taken back to before any message: files, conversation, or both."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from deepagents.events import ToolFinished
from deepagents_cli.protocol import Ask, Happened, Idle, Invoke, Notice, Queued, Ran, Run, Stop
from tests.cli.approval.test_sandbox import needs_sandbox
from tests.cli.openai_server import OpenAIServer, call
from tests.cli.session.conftest import StartWorker, Worker
from tests.waiting import until

pytestmark = pytest.mark.slow


def test_a_call_shows_what_it_changed_and_no_secret(
    worker: Worker, server: OpenAIServer, directory: Path, tmp_path: Path
) -> None:
    (directory / "old").mkdir()
    (directory / "old" / "list.md").write_text("bread\n")
    (directory / ".env").write_text("KEY=hunter2\n")
    (tmp_path / "outside").write_text("password=hunter2\n")
    (directory / "link").symlink_to(tmp_path / "outside")
    server.then(
        call("edit_file", file_path="notes.md", old_string="first", new_string="1st"),
        call("task", description="Write new.md", subagent_type="general-purpose"),
        call("write_file", file_path="new.md", content="hello\n"),
        "It is written.",
        call("delete", file_path="old"),
        call("edit_file", file_path=".env", old_string="hunter2", new_string="hunter3"),
        call("write_file", file_path="link", content="x"),
        "Done.",
    )
    worker.open(mode="full")
    worker.say("Change things.")

    shown = [_finished(worker, name).details for name in ("edit_file", "write_file", "delete", "edit_file")]
    assert shown[0][-3:] == ["-first line", "+1st line", " second line"]
    assert shown[1][-1] == "+hello"
    assert shown[2][-1] == "-bread"
    assert shown[3] == [".env: a secret, no text, or too large to be shown"]
    worker.wait(Idle)
    assert not any("hunter" in str(each.details) for each in worker.all(Happened))


@needs_sandbox
def test_what_the_agent_its_subagents_and_commands_changed_is_known_also_by_the_next_worker(
    worker: Worker, start: StartWorker, server: OpenAIServer, directory: Path
) -> None:
    (directory / ".env").write_text("KEY=hunter2\n")
    server.then(
        call("edit_file", file_path="notes.md", old_string="first", new_string="1st"),
        call("task", description="Write new.md", subagent_type="general-purpose"),
        call("write_file", file_path="new.md", content="hello\n"),
        "It is written.",
        "One.",
        call("execute", command="echo third line >> notes.md; echo KEY=2 > .env; ln -s new.md link; mkdir d"),
        "Two.",
    )
    worker.open(mode="full")
    worker.turn("Change things.")
    worker.turn("And more.")
    worker.kill()

    again = start()
    again.open(resume=True)
    whole = again.command("diff").text
    assert whole.startswith("```diff\n")
    for change in ("-first line\n+1st line", "+third line", "+hello", ".env: looks like a secret, changed"):
        assert change in whole
    assert "hunter2" not in whole
    second = again.command("diff", again.command("rewind").choices[0].value).text
    assert "+third line" in second
    assert "link: link, made" in second
    assert "d: directory, made" in second
    assert "1st line" not in second.replace(" 1st line", "")
    assert "+hello" not in second


def test_a_person_goes_back_to_before_a_message_and_forth_again(
    worker: Worker, server: OpenAIServer, directory: Path
) -> None:
    worker.open(mode="full")
    server.then(call("write_file", file_path="a.md", content="one\n"), "One.")
    worker.turn("Write one.")
    server.then(call("write_file", file_path="a.md", content="two\nthree\n"), "Two.")
    worker.turn("Write two.")

    rows = worker.command("rewind").choices
    assert [row.label for row in rows] == ["5. Write two.", "1. Write one."]
    assert [row.detail.partition(", ")[2] for row in rows] == ["1 file +2 -1", "1 file +1 -0"]
    ways = worker.command("rewind", rows[0].value).choices
    assert [row.label for row in ways] == ["both", "conversation", "files", "summary"]
    shown = worker.command("rewind", ways[0].value)
    assert "Gets back what it held: `a.md`" in shown.text
    assert (directory / "a.md").read_text() == "two\nthree\n"

    done = worker.command("rewind", shown.choices[0].value)
    assert done.text == "Back to before message 5: the conversation and 1 file. /redo takes it back."
    assert done.typed == "Write two."
    assert (directory / "a.md").read_text() == "one\n"
    server.then("Where were we?")
    worker.turn("Go on.")
    assert [each["content"] for each in _texts(server)] == ["Write one.", "One.", "Go on."]

    shown = worker.command("redo")
    assert "Gets back what it held: `a.md`" in shown.text
    assert "Forth again" in worker.command("redo", shown.choices[0].value).text
    assert (directory / "a.md").read_text() == "two\nthree\n"
    server.then("Yes.")
    worker.turn("All there?")
    assert [each["content"] for each in _texts(server)][2:] == ["Write two.", "Two.", "All there?"]


def test_what_was_said_after_going_back_is_not_lost_by_going_forth(
    worker: Worker, server: OpenAIServer, directory: Path
) -> None:
    worker.open(mode="full")
    server.then("Hello.")
    worker.turn("Hi.")
    worker.command("undo", worker.command("undo").choices[0].value)
    server.then(call("write_file", file_path="a.md", content="x\n"), "Done.")
    worker.turn("Write a.")

    done = worker.command("redo", worker.command("redo").choices[0].value)
    assert done.text.endswith("/redo brings back what was said since.")
    assert [row.label for row in worker.command("rewind").choices] == ["1. Hi."]
    worker.command("redo", worker.command("redo").choices[0].value)
    assert [row.label for row in worker.command("rewind").choices] == ["1. Write a."]
    assert (directory / "a.md").exists()


@needs_sandbox
def test_no_name_of_a_file_and_no_message_steers_the_terminal(worker: Worker, server: OpenAIServer) -> None:
    worker.open(mode="full")
    server.then(call("execute", command="printf 'a\\033b' > \"$(printf 'x\\033[2Jy')\""), "Done.")
    worker.turn("Write \x1b[2J.")

    shown = [
        worker.command("rewind").choices[0].label,
        worker.command("undo").text,
        worker.command("diff").text,
    ]
    assert all("\\x1b[2J" in each for each in shown)
    assert not any("\x1b" in each for each in shown)


def test_messages_are_taken_back_one_after_the_other_up_to_the_first(
    worker: Worker, start: StartWorker, server: OpenAIServer, directory: Path
) -> None:
    worker.open(mode="full")
    for name in ("a", "b"):
        server.then(call("write_file", file_path=f"{name}.md", content="x\n"), "Done.")
        worker.turn(f"Write {name}.")

    for name in ("b", "a"):
        shown = worker.command("undo")
        assert f"Goes away, since it was made later: `{name}.md`" in shown.text
        worker.command("undo", shown.choices[0].value)
        assert not (directory / f"{name}.md").exists()
    assert "No message of yours in this session" in _refused(worker, "undo")
    worker.kill()

    # Nothing is left that could go on, and going back can be taken back by the next process too.
    again = start()
    assert not again.open(resume=True).waiting
    for name in ("a", "b"):
        again.command("redo", again.command("redo").choices[0].value)
        assert (directory / f"{name}.md").read_text() == "x\n"
    assert len(again.command("rewind").choices) == 2
    assert _refused(again, "redo") == "This session did not go back, so there is nothing to take back."


def test_what_was_taken_back_when_the_process_was_killed_goes_forth_again(
    worker: Worker, start: StartWorker, server: OpenAIServer, directory: Path
) -> None:
    worker.open(mode="full")
    for text in ("one\n", "two\n"):
        server.then(call("write_file", file_path="a.md", content=text), "Done.")
        worker.turn(f"Write {text}.")
    order = worker.command("undo").choices[0].value
    worker.send(Invoke(1_000, "undo", order))
    until((directory / "a.md").read_text, lambda text: text == "one\n")
    worker.kill()

    again = start()
    assert not again.open(resume=True).waiting
    assert len(again.command("rewind").choices) == 1
    again.command("redo", again.command("redo").choices[0].value)
    assert (directory / "a.md").read_text() == "two\n"
    assert len(again.command("rewind").choices) == 2


def test_files_or_the_conversation_go_back_alone(
    worker: Worker, server: OpenAIServer, directory: Path
) -> None:
    worker.open(mode="full")
    server.then(call("write_file", file_path="a.md", content="one\n"), "One.")
    worker.turn("Write one.")

    worker.command("rewind", worker.command("rewind", "1 files").choices[0].value)
    assert not (directory / "a.md").exists()
    server.then("I see.")
    worker.turn("Look.")
    texts = [each["content"] for each in _texts(server)]
    assert texts[:2] == ["Write one.", "One."]
    assert "took these files back" in texts[-1]
    assert "a.md" in texts[-1]
    assert [row.label for row in worker.command("rewind").choices] == ["5. Look.", "1. Write one."]

    worker.command("redo", worker.command("redo").choices[0].value)
    shown = worker.command("rewind", "1 conversation")
    assert "The files stay as they are." in shown.text
    worker.command("rewind", shown.choices[0].value)
    assert (directory / "a.md").read_text() == "one\n"


def test_a_plan_can_be_refused_and_only_what_was_shown_is_done(
    worker: Worker, server: OpenAIServer, directory: Path
) -> None:
    worker.open(mode="full")
    server.then(call("write_file", file_path="a.md", content="one\n"), "One.")
    worker.turn("Write one.")

    shown = worker.command("undo")
    assert worker.command("undo", shown.choices[1].value).text == "Nothing has changed."
    # What was refused, or never shown, is shown first.
    again = worker.command("rewind", shown.choices[0].value)
    assert again.choices
    (directory / "a.md").write_text("by hand\n")
    assert "has changed since the plan was made" in _refused(worker, "rewind", "1 both yes")
    shown = worker.command("undo")
    assert "Stays as it is (changed by others since): `a.md`" in shown.text
    assert "Stays as it was: `a.md`." in worker.command("undo", shown.choices[0].value).text
    assert (directory / "a.md").read_text() == "by hand\n"


def test_a_plan_that_is_older_than_the_thread_is_refused_and_leaves_nothing_to_redo(
    worker: Worker, server: OpenAIServer
) -> None:
    worker.open(mode="full")
    server.then("Hello.", "Yes.")
    worker.turn("Hi.")
    shown = worker.command("undo")
    worker.turn("Are you there?")

    assert "has gone on since the plan was made" in _refused(worker, "rewind", shown.choices[0].value)
    assert _refused(worker, "redo") == "This session did not go back, so there is nothing to take back."
    assert [row.label for row in worker.command("rewind").choices] == ["3. Are you there?", "1. Hi."]


def test_one_goes_back_to_before_a_text_that_the_agent_read_in_the_middle_of_its_work(
    worker: Worker, server: OpenAIServer, directory: Path
) -> None:
    worker.open()
    server.then(
        call("write_file", file_path="a.md", content="a\n"),
        call("write_file", file_path="b.md", content="b\n"),
        "Both.",
    )
    worker.say("Write a.")
    asked = worker.wait(Ask)
    worker.say("And b.")
    worker.wait(Queued, texts=["And b."])
    worker.decide(asked, "approve")
    worker.decide(worker.wait(Ask), "approve")
    worker.wait(Idle)

    rows = worker.command("rewind").choices
    assert [row.label for row in rows] == ["4. And b.", "1. Write a."]
    assert [row.detail.partition(", ")[2] for row in rows] == ["1 file +1 -0", "1 file +1 -0"]
    worker.command("rewind", worker.command("rewind", "4 both").choices[0].value)
    assert (directory / "a.md").exists()
    assert not (directory / "b.md").exists()
    server.then("Only a.")
    worker.turn("What is there?")
    assert [each["content"] for each in _texts(server)] == ["Write a.", "What is there?"]


def test_messages_that_the_agent_read_at_once_go_back_together_as_they_were_typed(
    worker: Worker, server: OpenAIServer
) -> None:
    worker.open()
    server.then(call("write_file", file_path="a.md", content="a\n"), "All.")
    worker.say("Write a.")
    asked = worker.wait(Ask)
    worker.say("Look at @notes.md", "notes.md")
    worker.say("And b.")
    worker.wait(Queued, texts=["Look at @notes.md", "And b."])
    worker.decide(asked, "approve")
    worker.wait(Idle)
    assert "first line" in _texts(server)[1]["content"][-1]["text"]

    rows = worker.command("rewind").choices
    assert [row.label for row in rows] == ["4. Look at @notes.md And b.", "1. Write a."]
    shown = worker.command("undo")
    assert worker.command("undo", shown.choices[0].value).typed == "Look at @notes.md\nAnd b."
    server.then("Only a.")
    worker.turn("What is there?")
    assert [each["content"] for each in _texts(server)] == ["Write a.", "What is there?"]


@needs_sandbox
def test_what_a_command_of_the_person_printed_is_not_taken_back_with_the_text_behind_it(
    worker: Worker, start: StartWorker, server: OpenAIServer
) -> None:
    worker.open(mode="full")
    worker.send(Run("echo loud and clear"))
    worker.wait(Ran)
    server.then("I see.", "I still see.", "Yes.")
    worker.turn("Look.")
    worker.command("undo", worker.command("undo").choices[0].value)
    worker.kill()

    again = start()
    again.open(resume=True)
    again.turn("Look again.")
    assert ["loud and clear" in each for each in server.requests[-1].texts("user")] == [True, False]
    again.command("undo", again.command("undo").choices[0].value)
    again.command("redo", again.command("redo").choices[0].value)
    again.turn("Do you?")
    texts = server.requests[-1].texts("user")
    assert ["loud and clear" in each for each in texts] == [True, False, False], "it is told once"


@needs_sandbox
def test_a_command_that_still_runs_in_the_background_is_named(worker: Worker, server: OpenAIServer) -> None:
    worker.open(mode="full")
    server.then(call("execute", command="sleep 100; echo x >> a.md", background=True), "Started.")
    worker.turn("Start it.")

    shown = worker.command("undo")
    assert "- Still runs, and may change files: `sleep 100; echo x >> a.md`; `/bg stop` ends it" in shown.text
    worker.command("bg", "stop 1")
    assert "Still runs" not in worker.command("undo").text


def test_a_message_whose_call_waited_for_an_answer_is_taken_back_and_forth(
    worker: Worker, server: OpenAIServer, directory: Path
) -> None:
    worker.open()
    server.then("Hello.")
    worker.turn("Hi.")
    server.then(call("write_file", file_path="a.md", content="a\n"))
    worker.say("Write a.")
    worker.wait(Ask)
    worker.send(Stop())
    worker.wait(Idle)

    assert "No file changes." in worker.command("undo").text
    worker.command("undo", "3 both yes")
    server.then("Yes.")
    worker.turn("Are you there?")
    assert [each["content"] for each in _texts(server)] == ["Hi.", "Hello.", "Are you there?"]

    worker.command("redo", worker.command("redo").choices[0].value)
    # What waited for an answer waits for it again.
    worker.say("")
    server.then("Written.")
    worker.decide(worker.wait(Ask), "approve")
    worker.wait(Idle)
    assert (directory / "a.md").read_text() == "a\n"


def test_what_was_said_before_a_message_becomes_a_summary(worker: Worker, server: OpenAIServer) -> None:
    worker.open(mode="full")
    for number in range(3):
        server.then(f"Answer {number}.")
        worker.turn(f"Question {number}.")

    server.then("The summary.")
    assert worker.command("rewind", "3 summary").text.startswith("2 messages were replaced by a summary")
    server.then("Yes.")
    worker.turn("Is it there?")
    texts = [each["content"] for each in _texts(server)]
    assert "The summary." in texts[0]
    assert texts[-4:] == ["Answer 1.", "Question 2.", "Answer 2.", "Is it there?"]


def test_a_row_of_a_message_of_an_earlier_day_has_that_day_and_fits_a_terminal(
    worker: Worker, start: StartWorker, server: OpenAIServer, state: Path
) -> None:
    worker.open(mode="full")
    server.then(call("write_file", file_path="a.md", content="x\n" * 1000), "Done.")
    worker.turn("Write a file of a thousand lines, and all of them alike, and call it a.md, please.")
    worker.kill()
    # The time stands in the checkpoint, as the text that it was saved as.
    with closing(sqlite3.connect(state / "threads.sqlite")) as database, database:
        for thread, number, saved in database.execute(
            "SELECT thread_id, checkpoint_id, checkpoint FROM checkpoints"
        ).fetchall():
            changed = re.sub(rb"\d{4}-\d\d-\d\dT", b"2025-03-14T", saved)
            database.execute(
                "UPDATE checkpoints SET checkpoint = ? WHERE thread_id = ? AND checkpoint_id = ?",
                (changed, thread, number),
            )

    again = start()
    again.open(resume=True)
    row = again.command("rewind").choices[0]
    assert re.fullmatch(r"03-1[345] \d\d:\d\d, 1 file \+1000 -0", row.detail)
    assert len(f"> {row.label}  {row.detail}") < 80


def test_nothing_goes_back_while_the_agent_works(worker: Worker, server: OpenAIServer) -> None:
    server.then(call("write_file", file_path="a.md", content="x"), "Done.")
    worker.open()
    worker.say("Write.")
    worker.wait(Happened)

    for name in ("rewind", "undo", "redo"):
        assert _refused(worker, name).startswith("The agent is working; stop it with Esc to go ")


def test_a_wrong_message_or_way_is_named(worker: Worker, server: OpenAIServer) -> None:
    worker.open()
    assert "No message of yours in this session" in _refused(worker, "rewind")
    server.then("Hello.")
    worker.turn("Hi.")

    assert _refused(worker, "rewind", "2").startswith(
        "'2' is not the number of a message of yours; these are 1"
    )
    assert _refused(worker, "rewind", "1 all").startswith("'all' is none of both, conversation, ")
    assert worker.command("diff").text == "The agent has changed nothing in this session."
    assert worker.command("diff", "1").text == "The agent has changed nothing there."


def test_where_commands_are_not_covered_one_sentence_says_so(
    worker: Worker, directory: Path, tmp_path: Path
) -> None:
    (tmp_path / "home").symlink_to(directory)
    worker.open()

    assert worker.wait(Notice).text == (
        f"What commands change cannot be taken back here: {directory} is the home directory or above it, and "
        "is not looked at whole."
    )


@needs_sandbox
@pytest.mark.parametrize("broken", [True, False])
def test_a_person_is_told_once_when_a_session_is_not_covered_any_more(
    worker: Worker, server: OpenAIServer, state: Path, *, broken: bool
) -> None:
    server.then("Hello.")
    worker.open(mode="full")
    worker.turn("Hi.")
    if broken:
        with closing(sqlite3.connect(state / "undo" / "files.db")) as database, database:
            database.execute("DROP TABLE steps")
    count = 1 if broken else 50_001
    server.then(call("execute", command=f"mkdir many; cd many; touch $(seq {count})"), "Made.", "Sure.")
    worker.turn("Make files.")

    # A broken history is told of in the middle of the turn.
    told = (worker.all(Notice) if broken else [worker.wait(Notice)])[0].text
    what = "What is changed" if broken else "What commands change"
    assert told.startswith(f"{what} cannot be taken back here: ")
    worker.turn("Sure?")
    worker.command("context")
    assert [each.text for each in worker.all(Notice)] == [told]


@needs_sandbox
def test_what_is_too_much_to_compare_is_counted(worker: Worker, server: OpenAIServer) -> None:
    worker.open(mode="full")
    server.then(call("execute", command="for i in $(seq 600); do seq 20 > $i.txt; done"), "Done.")
    worker.turn("Write many.")

    assert worker.command("rewind").choices[0].detail.endswith(", 600 files")
    shown = worker.command("diff").text.splitlines()
    assert 5_000 < len(shown) < 5_010
    assert re.fullmatch(r"\.\.\. more lines, and \d+ more files", shown[-2])
    plan = worker.command("undo")
    assert ", 580 more" in plan.text
    assert "the conversation and 600 files" in worker.command("undo", plan.choices[0].value).text


def test_a_person_turns_it_off(worker: Worker, server: OpenAIServer, state: Path, tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text("undo = false\n")
    worker.open(mode="full")
    server.then(call("write_file", file_path="a.md", content="x"), "Done.")
    worker.turn("Write.")

    assert _refused(worker, "undo").startswith("Undo is turned off in your settings (undo = false)")
    assert not (state / "undo").exists()


def test_a_fork_goes_back_to_before_messages_of_its_source(
    worker: Worker, server: OpenAIServer, directory: Path
) -> None:
    worker.open(mode="full")
    for name in ("a", "b"):
        server.then(call("write_file", file_path=f"{name}.md", content="x\n"), "Done.")
        worker.turn(f"Write {name}.")
    worker.command("fork", "4")

    assert [row.label for row in worker.command("rewind").choices] == ["1. Write a."]
    shown = worker.command("undo")
    assert "`a.md`" in shown.text
    assert "`b.md`" not in shown.text
    worker.command("undo", shown.choices[0].value)
    assert [each.name for each in directory.glob("?.md")] == ["b.md"]


def _refused(worker: Worker, name: str, arguments: str = "") -> str:
    result = worker.command(name, arguments)
    assert result.error, result
    return result.error


def _texts(server: OpenAIServer) -> list[dict[str, Any]]:
    messages = server.requests[-1].messages
    return [
        each
        for each in messages
        if each["role"] != "system" and not each.get("tool_calls") and each["role"] != "tool"
    ]


def _finished(worker: Worker, name: str) -> Happened:
    while True:
        message = worker.wait(Happened)
        if isinstance(message.event, ToolFinished) and message.event.name == name:
            return message
