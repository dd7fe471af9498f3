"""Slash commands, carried out by the real worker."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import asdict
from pathlib import Path

import pytest

from deepagents.backends import LocalSandbox
from deepagents.testing import ScriptedModel
from deepagents.testing import call as scripted_call
from deepagents_cli.protocol import (
    Draft,
    Notice,
    PastMessage,
    Ran,
    Ready,
    Replay,
    Result,
    Run,
    Save,
    Status,
    Trust,
    Trusted,
)
from deepagents_cli.text import clean
from tests.cli.conftest import Command
from tests.cli.openai_server import MODEL, OpenAIServer, Reply, call
from tests.cli.session.conftest import StartWorker, Worker
from tests.tools.films import film

pytestmark = pytest.mark.slow


def propose(worker: Worker, name: str, arguments: str) -> Draft:
    """Return the file that a command shows before it is written."""
    draft = worker.command(name, arguments).draft
    assert draft is not None
    return draft


def values(result: Result) -> list[str]:
    return [each.value for each in result.choices]


@pytest.fixture
def project(directory: Path) -> Path:
    """A directory with instructions, a skill, an agent and a command."""
    (directory / "AGENTS.md").write_text("- Write short lines.\n")
    for path, text in {
        "skills/cook/SKILL.md": "---\nname: cook\ndescription: Cooks.\n---\nCook.",
        "agents/taster.md": "---\ndescription: Tastes dishes.\ntools: Read, Grep\n---\nYou taste.",
        "commands/greet.md": "---\ndescription: Greets\n---\nGreet $ARGUMENTS.",
    }.items():
        (directory / ".deepagents" / path).parent.mkdir(parents=True)
        (directory / ".deepagents" / path).write_text(text)
    return directory


def test_what_is_here_is_listed_and_notes_are_written_once_they_were_seen(
    worker: Worker, server: OpenAIServer, project: Path
) -> None:
    ready = worker.open()
    assert ready.memory == ["AGENTS.md"]
    assert (ready.skills, ready.agents) == (["cook"], ["taster"])
    assert "greet" in ready.commands

    assert f"`{project}/AGENTS.md`, 21 bytes" in worker.command("memory").text
    cook = project / ".deepagents" / "skills" / "cook" / "SKILL.md"
    assert worker.command("skills").text == f"- **cook** Cooks. (repository, `{cook}`)"
    assert (
        "- **taster** Tastes dishes. (grep, read_file; the model of the main agent)"
        in worker.command("agents").text
    )
    assert "- `write_file`: asks" in worker.command("tools").text
    worker.command("mode", "plan")
    tools = worker.command("tools").text
    assert tools.startswith("In mode plan:")
    assert "- `write_file`: refused" in tools
    assert "- `read_file`\n" in tools
    assert worker.command("greet", "Ada").send == "Greet Ada."
    assert "AGENTS.md" in worker.command("init").send
    assert "not committed" in worker.command("review").send
    assert worker.command("settings").text.startswith("Nothing is set.\n\nYours are in")
    assert "Python" in worker.command("doctor").text
    assert worker.command("permissions").text
    assert worker.command("nonsense").error == "There is no command /nonsense; /help lists them."

    assert values(worker.command("remember", "Test first.")) == ["home Test first.", "repository Test first."]
    shown = propose(worker, "remember", "repository Test first.")
    notes = "- Write short lines.\n- Test first.\n"
    assert shown == Draft("draft-1", notes, str(project / "AGENTS.md"))
    worker.send(Save(shown.id, "- Test before you write.\n"))
    worker.wait(Result, text=f"Written: {project}/AGENTS.md")
    assert (project / "AGENTS.md").read_text() == "- Test before you write.\n"
    worker.send(Save("draft-99", "what nobody proposed"))
    worker.wait(Result, error="Nothing was proposed that could be written.")


def test_hostile_descriptions_steer_no_terminal(worker: Worker, directory: Path) -> None:
    evil = "Cooks.\x1b[2J\u202e\x9b2J"
    for name in ("skills/cook/SKILL.md", "agents/cook.md", "commands/cook.md"):
        path = directory / ".deepagents" / name
        path.parent.mkdir(parents=True)
        path.write_text(f"---\nname: cook\ndescription: {json.dumps(evil)}\n---\nCook.")

    ready = worker.open()
    shown = [ready.commands["cook"]]
    shown += [worker.command(name).text for name in ("skills", "agents")]

    assert len(shown) == 3
    assert all(r"Cooks.\x1b[2J\u202e\x9b2J" in each for each in shown)


def test_a_note_does_not_follow_a_link(worker: Worker, directory: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    (directory / "AGENTS.md").symlink_to(tmp_path / "mine")
    worker.open()

    assert "is a link" in worker.command("remember", "repository Be kind.").error


def test_a_note_takes_nothing_from_a_file_that_changes_while_it_is_shown(
    worker: Worker, directory: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine").write_text("mine")
    notes = directory / "AGENTS.md"
    worker.open()

    shown = propose(worker, "remember", "repository Be kind.")
    notes.write_text("What the agent wrote meanwhile.\n")
    worker.send(Save(shown.id, shown.text))
    assert "has changed meanwhile" in worker.wait(Result).error
    assert notes.read_text() == "What the agent wrote meanwhile.\n"

    shown = propose(worker, "remember", "repository Be kind.")
    notes.unlink()
    notes.symlink_to(tmp_path / "mine")
    worker.send(Save(shown.id, shown.text))
    assert "is a link" in worker.wait(Result).error
    assert (tmp_path / "mine").read_text() == "mine"

    notes.unlink()
    os.mkfifo(notes)
    assert "it is not a file" in worker.command("remember", "repository Be kind.").error


def test_a_note_takes_the_place_of_the_old_ones_at_once(worker: Worker, directory: Path) -> None:
    notes = directory / "AGENTS.md"
    notes.write_text("Old.\n")
    notes.chmod(0o640)
    worker.open()
    shown = propose(worker, "remember", "repository Be kind.")

    with notes.open() as reading:
        worker.send(Save(shown.id, "Half a pair: \ud83d.\n"))
        worker.wait(Result)
        assert reading.read() == "Old.\n"

    assert notes.read_text() == "Half a pair: ?.\n"
    assert notes.stat().st_mode & 0o777 == 0o640
    assert sorted(each.name for each in directory.iterdir()) == ["AGENTS.md", "notes.md"]


def test_a_session_is_renamed_forked_exported_and_opened_again(
    worker: Worker, start: StartWorker, server: OpenAIServer, directory: Path
) -> None:
    server.then("One.", "Two.", "Another two.")
    first = worker.open()
    for name in ("fork", "export"):
        assert worker.command(name).error == "Nothing was said in this session yet."
    assert worker.command("compact").text == "There is nothing to compact yet."
    assert "now called counting" in worker.command("rename", "counting").text
    worker.turn("Count to one.")
    worker.turn("And to two.")

    assert values(worker.command("fork")) == ["4", "3", "2", "1"]
    worker.command("fork", "2")
    assert worker.last(Ready).name == "counting (fork)"
    assert [each.text for each in worker.last(Ready).history] == ["Count to one.", "One."]
    worker.turn("And again to two.")
    assert server.requests[-1].texts("user") == ["Count to one.", "And again to two."]

    assert values(worker.command("sessions")) == [first.thread]
    worker.command("resume", "counting")
    assert worker.last(Ready).thread == first.thread
    exported = propose(worker, "export", "talk.md")
    assert exported.path == str(directory / "talk.md")
    assert "And to two." in exported.text
    assert exported.replaces == 0
    assert propose(worker, "export", "notes.md").replaces == (directory / "notes.md").stat().st_size

    # What is open stays closed to others.
    assert worker.command("resume", "counting").text == "This session is open."
    other = start()
    other.begin(thread=first.thread, model="local-server:scripted")
    assert "Another process works in this session" in other.wait(Notice).text
    worker.command("new")
    assert other.wait(Ready).thread == first.thread
    assert worker.last(Ready).history == []


def test_what_the_harness_says_for_the_model_is_not_shown_as_the_person_s(
    cli: Command, worker: Worker, server: OpenAIServer, directory: Path
) -> None:
    (directory / "film.mp4").write_bytes(film())
    looks = ScriptedModel(scripted_call("read_file", file_path="film.mp4"), "I will look now:", "Done.")
    cli.run("Look at the film.", "--thread", "checked", model=looks)
    server.then("It was nothing.")
    worker.open(thread="checked")
    worker.send(Run("echo own"))
    worker.wait(Ran)
    worker.turn("And then?")

    who = [each.detail for each in reversed(worker.command("fork").choices)]
    behind = ["the agent", "the harness", "the agent", "you", "you", "the agent"]
    assert who == ["you", "the harness", *behind], "the frames of the film and the question are its own"
    heads = re.findall(r"^## \d+\. (\w+)", propose(worker, "export", "talk.md").text, re.MULTILINE)
    assert heads[-6:] == ["Agent", "Harness", "Agent", "Person", "Person", "Agent"]
    assert cli("sessions", "show", "checked").out.count(". Harness\n\nYou stopped, but ") == 1
    assert [each.label for each in worker.command("rewind").choices] == [
        "9. And then?",
        "1. Look at the film.",
    ]
    parts = {each.split("  ")[0] for each in worker.command("context").ansi.splitlines()}
    assert {"your messages", "harness"} <= parts


def test_what_a_person_goes_on_with_by_an_empty_line_is_not_shown_as_their_words(
    worker: Worker, start: StartWorker, server: OpenAIServer
) -> None:
    server.then("One.", "Two.")
    worker.open()
    worker.turn("Count.")
    worker.turn("")

    assert server.requests[-1].last == "Go on."
    assert [each.label for each in worker.command("rewind").choices] == ["1. Count."]
    who = [each.detail for each in reversed(worker.command("fork").choices)]
    assert who == ["you", "the agent", "the harness", "the agent"]
    worker.send(Replay(0))
    worker.wait(Result, id=0)
    assert [each.text for each in worker.all(PastMessage)] == ["Count."]
    worker.kill()
    assert [each.text for each in start().open(resume=True).history] == ["Count.", "One.", "Two."]


def test_what_the_context_holds_and_costs_is_shown_and_made_smaller(
    worker: Worker, server: OpenAIServer, directory: Path
) -> None:
    server.models.append("gpt-4.1")
    server.then(
        call("edit_file", file_path="notes.md", old_string="second", new_string="another"),
        Reply("Written.", usage=(50_000, 500)),
        "Fine.",
        "Well.",
        "They greeted each other.",
        "Yes.",
    )
    worker.open(model="gpt-4.1", mode="auto")
    assert "known after a first step" in worker.command("context").ansi
    worker.turn("Change the notes.")
    worker.turn("How are you?")
    worker.turn("Really?")

    picture = worker.command("context").ansi
    assert "of 1,047,576 tokens" in picture
    parts = ("system prompt", "tools", "your messages", "answers", "calls", "results", "free")
    assert all(each in picture for each in parts)
    assert max(len(re.sub("\x1b\\[[0-9;]*m", "", each)) for each in picture.splitlines()) <= 60
    assert "| main | gpt-4.1 |" in worker.command("cost").text
    changed = worker.command("diff").text
    assert "-second line\n+another line" in changed
    assert worker.command("compact").text.endswith("they are kept whole in an archive.")
    (archive,) = directory.glob(".deepagents/artifacts/conversation_history/*.md")
    assert "Change the notes." in archive.read_text()
    worker.turn("Are you still there?")
    assert "They greeted each other." in str(server.requests[-1].messages)
    assert "Change the notes." not in server.requests[-1].texts("user")
    assert "cache was broken (compaction 1): about" in worker.command("cost").text


def test_models_that_can_be_used_are_offered_and_others_say_what_is_missing(
    worker: Worker, server: OpenAIServer
) -> None:
    server.models.append("other")
    server.then("Hello.")
    worker.open()

    offered = {each.value: each for each in worker.command("model").choices}
    assert offered["local-server:other"].usable
    assert any("_API_KEY" in each.detail for each in offered.values() if not each.usable)
    assert worker.command("model", "local-server:other").text == "From now on local-server:other answers."
    worker.turn("Hi.")
    assert server.requests[-1].body["model"] == "other"


def test_settings_are_shown_as_they_are_written(worker: Worker, directory: Path, tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text(
        f"theme = 'dark'\nnetwork = ['a.org', 'b.org']\nmodl = 'x'\nlimits.seconds = '10m'\n"
        "hooks.after_tool = [{command = 'make format', tools = ['write_file']}]\n"
        f"[[permissions]]\nrule = 'command: make'\n[[trusted]]\ndirectory = '{tmp_path}'\ndigest = 'x'"
    )
    worker.open()

    lines = worker.command("settings").text.splitlines()

    assert lines[:-2] == [
        "- theme: dark",
        "- network: a.org, b.org",
        "- limits.seconds: 600",
        "- hooks.after_tool: make format (write_file)",
        "- permissions: 1, listed by /permissions",
        f"- trusted: {tmp_path}",
        f"- not used: {tmp_path}/settings.toml: 'modl' is not a setting; is it 'model'?",
    ]


def test_modes_are_offered_and_changed(worker: Worker) -> None:
    worker.open()

    assert values(worker.command("mode")) == ["ask", "auto", "plan", "full"]
    assert worker.command("mode", "atuo").error == "'atuo' is not a mode; write ask, auto, plan or full."
    assert worker.command("mode", "auto").text.startswith("Mode auto: ")
    assert worker.last(Status).mode == "auto"


def test_without_a_model_a_conversation_opens_and_one_is_picked(
    worker: Worker, server: OpenAIServer, directory: Path
) -> None:
    server.then("Here I am.")
    worker.begin(model="local:none-such")
    ready = worker.wait(Ready)
    assert ready.model == "no model"
    assert "none-such" in ready.notices[0]
    assert ready.notices[0].endswith("Choose a model with /model.")

    worker.say("Hello?")
    message = worker.wait_for_end_of_turn()
    assert message.error == ready.notices[0]
    worker.command("model", f"local-server:{MODEL}")
    assert worker.turn("").end == "done"
    assert server.requests[-1].texts("user") == ["Hello?"]


def test_where_a_server_runs_and_no_model_was_named_one_is_to_be_picked(
    worker: Worker, directory: Path
) -> None:
    worker.begin(mode="ask")

    ready = worker.wait(Ready)
    assert (ready.model, ready.notices[0]) == (
        "no model",
        "No model is chosen yet. Choose one with /model.",
    )


EVIL = "touch ran; touch .git/ran"


def test_a_command_of_a_trusted_project_is_answered_by_its_own_model_and_git_tells_the_state(
    worker: Worker, server: OpenAIServer, directory: Path, tmp_path: Path
) -> None:
    server.models.append("other")
    server.then("By the other.", "By the main one.")
    commands = directory / ".deepagents" / "commands"
    commands.mkdir(parents=True)
    (commands / "ask.md").write_text("---\nmodel: local-server:other\n---\nAsk \x1b[2J$ARGUMENTS.")
    (directory / "AGENTS.md").write_text("x")
    (directory / "\x1b[2J.md").write_text("x")
    for words in (
        ["init", "-qb", "main\u202e"],
        ["config", "filter.evil.clean", f"{EVIL}; cat"],
        ["config", "filter.evil.process", EVIL],
        ["config", "diff.evil.textconv", EVIL],
        ["config", "diff.external", EVIL],
        ["config", "core.pager", EVIL],
        ["config", "core.sshCommand", EVIL],
        ["config", "core.hooksPath", ".git/hooks"],
        ["config", "alias.status", f"!{EVIL}"],
        ["config", "core.fsmonitor", EVIL],
    ):
        subprocess.run(["git", *words], cwd=directory, check=True)
    (directory / ".gitattributes").write_text("* filter=evil diff=evil\n")
    hook = directory / ".git/hooks/post-index-change"
    hook.write_text(f"#!/bin/sh\n{EVIL}\n")
    hook.chmod(0o755)
    worker.begin(model=f"local-server:{MODEL}")
    asked = worker.wait(Trust)
    assert asked.items == ["command /ask: model local-server:other"]
    worker.send(Trusted(agreed=True))
    worker.wait(Ready)

    worker.turn(worker.command("ask", "Ada").send)
    worker.turn("Thank you.")
    assert [each.body["model"] for each in server.requests] == ["other", MODEL]
    if LocalSandbox.available() is None:
        assert "Git state when this conversation began: 5 untracked" in server.requests[0].system
    assert not any((place / "ran").exists() for place in (directory, directory / ".git"))
    for name in (
        "memory",
        "skills",
        "agents",
        "tools",
        "permissions",
        "diff",
        "settings",
        "context",
        "sessions",
    ):
        worker.command(name)
    worker.command("nonsense\x1b[2J")
    unclean = [
        (type(message), text)
        for message in worker.seen
        for text in texts_in({key: each for key, each in asdict(message).items() if key not in _RAW})
        if clean(text) != text
    ]
    assert unclean == []


_RAW = ("event", "ansi", "send", "draft")
"""What is not text for a terminal: the screen cleans events, and the rest is colours or goes back."""


def texts_in(value: object) -> list[str]:
    match value:
        case str():
            return [value]
        case dict():
            return [text for each in value.values() for text in texts_in(each)]
        case list():
            return [text for each in value for text in texts_in(each)]
        case _:
            return []
