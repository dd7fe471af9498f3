"""A command from a file becomes a text, with arguments, files and what shell lines write."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from deepagents.testing import ScriptedModel, call
from deepagents_cli.errors import CommandError
from deepagents_cli.project.commands import expand, find_commands
from deepagents_cli.project.project import Project
from tests.cli.approval.test_sandbox import needs_sandbox
from tests.cli.conftest import Command
from tests.cli.openai_server import MODEL, serving


@pytest.fixture
def home(tmp_path: Path) -> Path:
    place = tmp_path / "home"
    place.mkdir()
    return place


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


async def send(directory: Path, body: str, arguments: str = "") -> str:
    """What is sent for a command of the directory."""
    write(directory / ".deepagents/commands/c.md", body)
    commands, notices = find_commands(Project(directory, directory.parent / "home"))
    assert notices == []

    async def run(line: str) -> str:
        ended = subprocess.run(["sh", "-c", line], cwd=directory, capture_output=True, text=True, check=True)
        return ended.stdout.rstrip()

    return await expand(commands["c"], arguments, directory, run)


def test_commands_of_both_tools_and_of_all_places_are_found(home: Path, directory: Path) -> None:
    (directory / ".git").mkdir()
    below = directory / "below"
    below.mkdir()
    write(home / ".claude/commands/mine.md", "---\ndescription: Mine.\nargument-hint: '[file]'\n---\nDo.")
    write(home / ".deepagents/commands/shared.md", "Of the person.")
    write(directory / ".claude/commands/git/commit.md", "# Write a commit\nNow.")
    write(directory / ".deepagents/commands/shared.md", "Of the repository.")
    write(below / ".deepagents/commands/shared.md", "Of the directory.")

    commands, notices = find_commands(Project(below, home))

    assert notices == []
    assert [*commands] == ["mine", "shared", "git:commit"]
    mine = commands["mine"]
    assert (mine.description, mine.hint, mine.trusted) == ("Mine.", "[file]", True)
    assert (commands["shared"].body, commands["shared"].trusted) == ("Of the directory.", False)
    assert commands["git:commit"].description == "Write a commit"


@pytest.mark.parametrize(
    ("body", "arguments", "sent"),
    [
        ("Review $1 for $2.", "a.py 'two words'", "Review a.py for two words."),
        ("Review $1, $3.", "a.py", "Review a.py, ."),
        ("Fix: $ARGUMENTS!", "it's broken", "Fix: it's broken!"),
        ("Costs $100.", "", "Costs $100."),
        ("Review.", "src", "Review.\n\nARGUMENTS: src"),
        ('Say !`echo "$1-$ARGUMENTS"`.', "a b", "Say a-a b."),
        ("Read @notes.md.", "", 'Read <file path="notes.md">\nfirst line\nsecond line\n</file>.'),
        ("Ask @someone, mail a@notes.md.", "", "Ask @someone, mail a@notes.md."),
    ],
)
async def test_everything_is_put_in(directory: Path, body: str, arguments: str, sent: str) -> None:
    assert await send(directory, body, arguments) == sent


async def test_what_is_put_in_is_not_expanded_again(directory: Path) -> None:
    text = "$ARGUMENTS and !`cat notes.md` and @notes.md"
    (directory / "notes.md").write_text("!`touch ran` @other $1")

    sent = await send(directory, text, "!`touch ran`; $(touch ran) @notes.md")

    assert not (directory / "ran").exists()
    assert "!`touch ran`; $(touch ran) @notes.md and " in sent


async def test_arguments_are_no_program(directory: Path) -> None:
    sent = await send(directory, "Say !`echo $1 $ARGUMENTS`", "'; touch ran' $(touch ran)")

    assert not (directory / "ran").exists()
    assert "$(touch ran)" in sent


async def test_no_file_outside_and_no_huge_one_is_put_in(directory: Path) -> None:
    (directory.parent / "away").write_text("secret")
    (directory / "link").symlink_to(directory.parent / "away")
    (directory / "huge").write_text("x" * 100_001)
    (directory / ".env").write_text("KEY=secret")
    (directory / "innocent").symlink_to(".env")

    for name, said in (
        ("link", "leads elsewhere"),
        ("../away", "leads elsewhere"),
        ("huge", "longer than"),
    ):
        with pytest.raises(CommandError, match=said):
            await send(directory, f"Read @{name}")


def test_a_task_that_begins_with_a_command_is_its_text(cli: Command, directory: Path) -> None:
    write(directory / ".claude/commands/git/commit.md", "Commit $1.")
    model = ScriptedModel("Done.", "Done.")

    assert cli.run("/git:commit now", model=model).code == 0
    assert cli.run("/etc/hosts: what is it?", model=model).code == 0

    assert [asked.messages[-1].text for asked in model.asked] == ["Commit now.", "/etc/hosts: what is it?"]


def test_a_command_of_a_person_is_answered_by_its_model_unless_another_is_named(
    cli: Command, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = directory.parent / "home"
    write(home / ".deepagents/commands/hail.md", "---\nmodel: local-server:other\n---\nHail.")
    write(home / ".deepagents/commands/lost.md", "---\nmodel: local-server:nobody\n---\nLost.")
    with serving(always="Hello.", models=(MODEL, "other")) as server:
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.setenv("DEEPAGENTS_LOCAL_SERVER", server.address)
        monkeypatch.setenv("DEEPAGENTS_MODEL", f"local-server:{MODEL}")

        assert cli.run("/hail").code == 0
        assert cli.run("/hail", "--model", f"local-server:{MODEL}").code == 0
        assert cli.run("hello").code == 0
        assert "No local server has a model 'nobody'" in cli.run("/lost").err

    assert [each.body["model"] for each in server.requests] == ["other", MODEL, MODEL, MODEL]


def test_shell_lines_of_a_person_run_where_the_agent_works(
    cli: Command, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = directory.parent / "home"
    monkeypatch.setenv("HOME", str(home))
    write(home / ".deepagents/commands/here.md", "Here are: !`ls`")
    model = ScriptedModel("Done.")

    assert cli.run("/here", model=model).code == 0

    assert model.asked[0].messages[-1].text == "Here are: notes.md"


def test_a_file_that_is_no_command_is_named(home: Path, directory: Path) -> None:
    write(directory / ".deepagents/commands/empty.md", "---\ndescription: x\n---\n")
    write(directory / ".deepagents/commands/open.md", "---\ndescription: x\n")
    write(directory / ".deepagents/commands/two words.md", "Do.")

    commands, notices = find_commands(Project(directory, home))

    assert commands == {}
    assert [notice.rpartition("is not used: ")[2] for notice in notices] == [
        "it has no text to send",
        "its front matter has no closing line '---'",
        "'two words' is not a name; write letters, digits, '-' and '_'",
    ]


GRANTING = "---\nallowed-tools: Bash(touch:*), Bash(make .env), Write\n---\nGo."


@needs_sandbox
@pytest.mark.parametrize(
    ("mode", "calls", "code"),
    [
        ("ask", [call("execute", command="touch a"), call("write_file", file_path="b.md", content="x")], 0),
        ("ask", [call("execute", command="rm notes.md")], 3),
        ("ask", [call("execute", command="touch .env")], 3),
        ("ask", [call("execute", command="make .env")], 3),
        ("ask", [call("write_file", file_path=".env", content="x")], 3),
        ("ask", [call("write_file", file_path=".git/note", content="x")], 3),
        ("ask", [call("delete", file_path="notes.md")], 3),
        ("plan", [call("execute", command="touch a")], 0),
    ],
)
def test_a_command_approves_calls_of_its_turn_and_no_guarded_ones(
    cli: Command, directory: Path, monkeypatch: pytest.MonkeyPatch, mode: str, calls: list[Any], code: int
) -> None:
    home = directory.parent / "home"
    monkeypatch.setenv("HOME", str(home))
    write(home / ".claude/commands/go.md", GRANTING)

    assert cli.run("/go", "--mode", mode, model=ScriptedModel(*calls, "Done.")).code == code

    made = {"a", "b.md"} if code == 0 and mode == "ask" else set[str]()
    assert {each.name for each in directory.iterdir()} == {"notes.md", *made}


@needs_sandbox
def test_a_project_approves_nothing_until_it_is_trusted(
    cli: Command, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(directory.parent / "home"))
    write(directory / ".claude/commands/go.md", GRANTING)

    def ended() -> int:
        return cli.run("/go", model=ScriptedModel(call("execute", command="touch a"), "Done.")).code

    assert ended() == 3
    trusting = cli("trust", str(directory), "--yes")
    approved = ("commands: touch", "command: make .env", "edits")
    assert f"command /go: {'; '.join(f'approves {each}' for each in approved)}" in trusting.out
    assert ended() == 0
    write(directory / ".claude/commands/go.md", GRANTING.replace("touch", "rm"))
    assert ended() == 3, "a change of what is approved asks again"
