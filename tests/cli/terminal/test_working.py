"""What a person sees and does while the agent works."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest

from tests.cli.approval.test_sandbox import needs_sandbox
from tests.cli.openai_server import OpenAIServer, Reply, call
from tests.cli.terminal.person import SIZE, Home, Person
from tests.cli.tmux import PATIENCE, needs_tmux
from tests.waiting import until

pytestmark = [needs_tmux, pytest.mark.slow]


def test_what_is_typed_meanwhile_is_read_at_the_next_step_unless_it_is_taken_back(person: Person) -> None:
    hold = Event()
    person.asks("Count.", Reply("Let me look.", calls=[("ls", {"path": "."})], hold=hold), "Five.")
    person.sees("^Let$")
    person.enters("Hidden ones too.")
    person.sees("^queued: Hidden ones too.")
    person.presses("Up")
    person.sees("^› Hidden ones too.")
    assert person.sees_gone("^queued: ").count("Hidden ones too.") == 1, "it seems to have been read"
    person.presses("BSpace")
    person.enters(", please.")
    person.sees("^queued: Hidden ones too, please.")
    hold.set()

    person.sees("^✓ ls (.*\n)+› Hidden ones too, please.\n\nFive.")
    assert person.server.requests[-1].texts("user") == ["Count.", "Hidden ones too, please."]


def test_esc_stops_an_answer_and_keeps_what_was_written(person: Person) -> None:
    person.asks("Tell me a story.", Reply("Once upon a time", hold=Event()))
    person.sees("^Once$")
    person.presses("Escape")
    person.sees("^Stopped. What is done is kept.")
    person.asks("A shorter one.", "The end.")

    person.sees("^The end.")
    assert person.server.requests[-1].texts("assistant") == ["Once\n\n[The person stopped the answer here.]"]


def test_esc_right_behind_enter_stops_what_was_sent(person: Person) -> None:
    before = len(person.server.requests)
    person.server.then(Reply("Once upon a time", hold=Event()))
    person.terminal.type("Tell me a story.")
    with closing(sqlite3.connect(person.home.home / "state" / "threads.sqlite", timeout=60)) as sessions:
        # So long no turn begins, as where the machine is slow.
        sessions.execute("BEGIN IMMEDIATE")
        person.presses("Enter", "Escape")
        person.sees("^queued: Tell me a story.")
        person.sees("stopping")
    person.sees("^Stopped. What is done is kept.")
    person.sees("^queued: Tell me a story.")
    assert len(person.server.requests) == before
    person.server.forget()
    person.asks("A short one.", "The end.")

    person.sees("^The end.")
    assert person.server.requests[-1].texts("user") == ["Tell me a story.", "A short one."]


@needs_sandbox
@pytest.mark.parametrize(
    ("options", "key", "waits"),
    # Right behind a line, Ctrl-C makes the terminal forget it.
    [((), "Escape", True), ((), "Escape", False), (("--plain",), "C-c", True)],
)
def test_a_command_from_a_file_is_stopped_while_it_is_put_together(
    tmp_path: Path, server: OpenAIServer, options: tuple[str, ...], key: str, waits: bool
) -> None:
    home = Home(tmp_path, server)
    file = home.home / ".deepagents/commands/slow.md"
    file.parent.mkdir(parents=True)
    file.write_text("Look: !`touch begun; sleep 600`")
    with home.sit_down(*options) as person:
        person.sees(r"scripted in\b")
        person.enters("/slow")
        if waits:
            until((home.directory / "begun").exists)
        person.presses(key)

        person.sees("^Stopped; nothing more comes of it")
        person.asks("Are you there?", "Here I am.")
        person.sees("^Here I am.")
    assert server.requests[-1].texts("user") == ["Are you there?"]


@needs_sandbox
def test_esc_stops_the_commands_that_wait_behind_another(tmp_path: Path, server: OpenAIServer) -> None:
    home = Home(tmp_path, server)
    file = home.home / ".deepagents/commands/slow.md"
    file.parent.mkdir(parents=True)
    file.write_text("Look: !`touch begun; sleep 600`")
    with home.sit_down() as person:
        person.sees(r"scripted in\b")
        person.enters("/slow")
        until((home.directory / "begun").exists)
        person.enters("/slow again")
        person.sees("^› /slow again")
        person.presses("Escape")

        person.sees("(?s)^Stopped; nothing more comes of it.*^Stopped; nothing more comes of it")
        person.asks("Are you there?", "Here I am.")
        person.sees("^Here I am.")


def test_esc_right_behind_a_command_that_has_to_wait_keeps_it_from_being_sent(person: Person) -> None:
    person.server.then(Reply("Once upon a time", hold=Event()))
    with closing(sqlite3.connect(person.home.home / "state" / "threads.sqlite", timeout=60)) as sessions:
        # So long the message before it is not saved, and the command waits for that.
        sessions.execute("BEGIN IMMEDIATE")
        person.enters("Tell me a story.")
        person.sees("^queued: Tell me a story.")
        person.enters("/greet Ada")
        person.sees("^› /greet Ada")
        person.presses("Escape")
        person.sees("stopping")
    person.sees("^Stopped. What is done is kept.")
    person.server.forget()
    person.asks("A short one.", "The end.")

    person.sees("^The end.")
    assert person.server.requests[-1].texts("user") == ["Tell me a story.", "A short one."]


@pytest.mark.parametrize(("options", "key"), [((), "Escape"), (("--plain",), "C-c")])
def test_a_compaction_is_stopped_and_nothing_is_changed(
    tmp_path: Path, server: OpenAIServer, options: tuple[str, ...], key: str
) -> None:
    home = Home(tmp_path, server)
    with home.sit_down(*options) as person:
        person.sees(r"scripted in\b")
        for number in range(3):
            person.asks(f"Count {number}.", f"Counted {number}.")
            person.sees(f"^Counted {number}.")
            person.sees_gone("Esc stops")
        before = len(server.requests)
        # It is not streamed.
        server.then(lambda request: "They counted." if server.closing.wait(PATIENCE) else "Late.")
        person.enters("/compact")
        until(lambda: len(server.requests) > before)
        person.presses(key)

        person.sees("^Stopped; nothing more comes of it")
        person.asks("Are you there?", "Here I am.")
        person.sees("^Here I am.")
    assert server.requests[-1].texts("user") == ["Count 0.", "Count 1.", "Count 2.", "Are you there?"]


def test_esc_keeps_what_waits_from_compacting_and_from_showing_a_file(person: Person) -> None:
    person.asks("Count.", "One.")
    person.sees("^One.")
    before = len(person.server.requests)
    person.server.then(Reply("Once upon a time", hold=Event()))
    with closing(sqlite3.connect(person.home.home / "state" / "threads.sqlite", timeout=60)) as sessions:
        # So long the message before them is not saved, and the commands wait for that.
        sessions.execute("BEGIN IMMEDIATE")
        person.enters("Tell me a story.")
        person.sees("^queued: Tell me a story.")
        for command in ("/remember home Salt the soup.", "/remember Salt the rice.", "/rewind 1 summary"):
            person.enters(command)
            person.sees(f"^› {command}")
        person.presses("Escape")
        person.sees("stopping")
    shown = person.sees(r"(?s)^Stopped\. What is done is kept\..*^queued: Tell me a story\.")
    assert shown.count("Stopped; nothing more comes of it") == 3
    assert "Salt the soup" not in shown.rpartition("Stopped; ")[2]
    person.server.forget()
    person.asks("A short one.", "The end.")

    person.sees("^The end.")
    assert len(person.server.requests) == before + 1
    assert person.server.requests[-1].texts("user") == ["Count.", "Tell me a story.", "A short one."]


def test_esc_many_times_stops_a_turn_and_opens_nothing(person: Person) -> None:
    person.asks("Tell me a story.", Reply("Once upon a time", hold=Event()))
    person.sees("^Once$")
    person.presses(*["Escape"] * 5)
    shown = person.sees("^Stopped. What is done is kept.")
    person.asks("A shorter one.", "The end.")

    shown += person.sees("^The end.")
    assert "/rewind" not in shown


def test_what_the_person_did_not_read_is_no_command(tmp_path: Path, server: OpenAIServer) -> None:
    home = Home(tmp_path, server, {".deepagents/commands/shout.md": "!touch bad"})
    with home.sit_down() as person:
        person.sees("^local-server:scripted in")
        for text in ("!touch bad\n" * 10, "/shout"):
            person.server.then("Read.")
            person.terminal.paste(text)
            person.presses("Enter")
            person.sees(r"^› !touch bad(\n.*)*\nRead\.$")
            assert person.server.requests[-1].last.startswith("!touch bad")
            person.sees_gone("Esc stops")
            person.enters("/clear")
            person.sees_gone("Read")
    assert not (home.directory / "bad").exists()


def test_shift_tab_goes_through_the_modes_and_the_agent_heeds_it_in_the_same_turn(person: Person) -> None:
    hold = Event()
    write = ("write_file", {"file_path": "mode.md", "content": "hello\n"})
    person.asks("Write.", Reply("At once.", calls=[write], hold=hold), "Written.")
    person.sees("^At$")
    person.terminal.type("half a line")
    for mode in ("auto", "plan", "ask", "auto"):
        person.presses("BTab")
        person.sees(f" · {mode}$")
    hold.set()

    person.sees("^✓ write_file mode.md(.*\n)+Written.")
    person.sees("^› half a line")
    assert (person.directory / "mode.md").read_text() == "hello\n"
    person.presses("C-c")
    # Nobody should come to it by a key pressed once too often.
    person.enters("/mode full")
    person.sees(" · full$")
    person.presses("BTab")
    person.sees(" · ask$")


@needs_sandbox
def test_a_command_of_the_person_runs_at_once_and_the_agent_reads_it(person: Person) -> None:
    (person.directory / "notes.md").write_text("first line\nsecond line\n")
    (person.directory / "two words.md").write_text("here")
    person.terminal.type("!cat two")
    person.presses("Tab")
    person.sees(r"^› !cat two\\ words\.md$")
    person.enters("notes.md; sleep 600")
    person.sees(r"^. sandbox · (\d+ s · )?Esc stops it · ! cat .*\n    here.*\n    second line\n")
    person.enters("What is in them?")
    person.sees("^queued: What is in them?")
    person.terminal.type("!ls")
    person.presses("Enter")
    person.sees("^Your command still runs; Esc stops it.")
    person.presses("C-c")
    person.sees(r"^✗ ! cat .*  sandbox, stopped by the person\nherefirst line\nsecond line\n")
    person.presses("BSpace")
    person.server.then("Two lines.")
    person.presses("Enter")
    person.sees("^› What is in them\\?\n\nTwo lines.")
    assert "second line\n[stopped by the person]" in person.server.requests[-1].texts("user")[0]
    person.presses("C-l")


@needs_sandbox
def test_what_a_command_of_the_person_printed_lasts(person: Person) -> None:
    person.enters("!echo begun; sleep 600")
    person.sees("^    begun")
    person.presses("Escape")
    person.sees(r"^✗ ! echo begun; sleep 600  sandbox, stopped by the person\nbegun\n")
    person.enters("!")
    person.sees("^Write a command behind the !")
    person.presses("C-c")
    hold = Event()
    person.asks("Look.", Reply("Let me look.", calls=[("ls", {"path": "."})], hold=hold), "I saw it.")
    person.sees("^Let$")
    person.enters("!seq 1000; exit 3")
    person.sees(r"^\.\.\. 600 more lines\n801\n(.*\n)+1000\n", history=True)
    assert "✗ ! seq 1000; exit 3  sandbox, exit code 3" in person.terminal.screen(history=True)
    hold.set()
    person.sees("^I saw it.")
    assert "[exit code 3]" in person.server.requests[-1].texts("user")[-1]
    person.begins_anew()
    person.enters("/resume Look.")
    person.sees(r"^\$ seq 1000; exit 3\n1\n2\n", history=True)
    person.begins_anew()
    # A blank before it makes a message of it.
    person.asks(" !important", "Yes.")
    person.sees("^Yes.")


@needs_sandbox
def test_esc_ends_a_command_in_the_sandbox(person: Person) -> None:
    person.enters("/mode auto")
    person.sees("^Mode auto")
    person.asks("Wait.", call("execute", command="echo begun; sleep 600; touch late"))
    person.sees(r"execute echo begun.*\n +begun")
    person.enters("Never mind.")
    person.sees("^queued: Never mind.")
    person.presses("Escape")
    person.sees("^✗ execute echo begun.*stopped\n    begun\nStopped. What is done is kept.")
    person.server.then("As you like.")
    # What waits is sent by an empty line.
    person.presses("Enter")

    person.sees("^› Never mind.\n\nAs you like.")
    assert "cancelled while it ran" in person.server.requests[-1].texts("tool")[0]


def test_a_terminal_is_resized_while_an_answer_streams(person: Person) -> None:
    hold = Event()
    table = "| left | right |\n|---|---|\n| wood | steel |\n"
    person.asks("Compare.", Reply(f"Look: {'word ' * 40}\n\n{table}\nCompared.", hold=hold))
    person.sees("^Look:$")
    person.terminal.resize(50, 20)
    person.sees("^local-server:scripted .*ask$")
    hold.set()
    shown = person.sees(r"(?s)^Compared\..*^local-server:scripted .*ask$")
    assert max(map(len, shown.splitlines())) <= 50
    assert shown.count("Compared.") == 1
    assert shown.count("local-server:scripted · ") == 1
    person.terminal.resize(*SIZE)
    person.asks("Wide again?", "Wide.")

    person.sees("^Wide.")


def test_subagents_are_a_tree_and_the_plan_is_a_checklist(person: Person) -> None:
    taste, rest = Event(), Event()
    todos = [
        {"content": "Cook", "status": "completed"},
        {"content": "Taste", "status": "in_progress"},
        {"content": "Serve", "status": "pending"},
    ]
    delegate = call("task", description="Taste the soup", subagent_type="taster")
    person.asks(
        "Dinner.",
        call("write_todos", todos=todos),
        delegate,
        call("ls", path="."),
        Reply("Tasting it slowly", hold=taste),
        Reply("Served now.", hold=rest),
    )
    person.sees(
        r"^. taster \(1 call, \d+ s\): Taste the soup\n    Tasting\n"
        r"  \[x\] Cook\n  \[>\] Taste\n  \[ \] Serve\n"
    )
    assert re.search(r"\x1b\[[0-9;]*32m\[x\] Cook", person.terminal.screen(colours=True))
    person.sees(r"^taster \| ✓ ls ")
    row = person.terminal.cursor[1]
    taste.set()
    person.sees("^✓ taster Taste the soup  Tasting it slowly")
    person.sees("^Served$")
    assert person.terminal.cursor[1] >= row, "the input line has gone up"
    rest.set()
    person.sees("^Served now.\n\n  \\[x\\] Cook")
    assert person.server.requests[-1].texts("tool")[-1] == "Tasting it slowly"
    person.begins_anew()
    person.asks("And now?", Reply("Nothing more", hold=Event()))
    assert "Cook" not in person.sees("^Nothing$")
    person.presses("Escape")
    person.sees("^Stopped. What is done is kept.")


def test_esc_during_a_subagent_says_what_was_stopped(person: Person) -> None:
    person.asks(
        "Taste.",
        call("task", description="Taste the soup", subagent_type="taster"),
        Reply("Tasting it", hold=Event()),
    )
    person.sees(r"^. taster \(.*\n    Tasting\n")
    person.presses("Escape")

    person.sees("^✗ taster Taste the soup  stopped\nStopped. What is done is kept.")


def test_a_file_that_is_named_is_put_into_the_message(person: Person) -> None:
    (person.directory / "notes.md").write_text("first line\nsecond line\n")
    person.terminal.type("Look into @no")
    person.sees("^  notes.md")
    person.presses("Tab")
    person.sees("^› Look into @notes.md")
    person.asks(" now", "I have read it.")

    person.sees("^I have read it.")
    assert "first line\nsecond line" in person.server.requests[-1].last


def test_esc_at_a_question_about_a_file_sends_the_message_without_it(person: Person) -> None:
    (person.directory / ".env").write_text("KEY=1")
    person.asks("Look into @.env", "I have not seen it.")
    person.sees("^The agent is to get .env, which looks like it holds secrets(.*\n)+.*and Enter")
    person.presses("Escape")

    person.sees("^I have not seen it.")
    assert "KEY=1" not in person.server.requests[-1].last
    (person.directory / ".env").unlink()


def test_the_status_line_tells_model_context_tokens_cost_branch_and_mode(person: Person) -> None:
    person.server.models.append("gpt-4.1")
    person.enters("/model local-server:gpt-4.1")
    person.sees("^From now on")
    person.asks("Hi.", Reply("Hello.", usage=(100_000, 1_000)))
    person.sees("^Hello.")

    person.sees(r"^local-server:gpt-4.1 · 10% of context · 101k tokens · \$0\.00 · (.* s · )?topic · ask$")
    person.enters("/model local-server:scripted")
    person.sees("^From now on local-server:scripted")


def test_hostile_text_of_a_model_moves_nothing(person: Person) -> None:
    person.asks("Say it.", "before \x1b[2J\x1b]0;owned\x07 after\r\n\nthe end")

    assert "scripted in " in person.sees("^the end")
