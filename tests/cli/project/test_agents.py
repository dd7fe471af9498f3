"""A subagent from a file works for the main agent, with at most its tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepagents.testing import ScriptedModel, call
from deepagents_cli.project.agents import find_agents, make_subagents
from deepagents_cli.project.project import Project
from deepagents_cli.project.tools import TOOLS
from tests.cli.approval.test_sandbox import needs_sandbox
from tests.cli.conftest import Command

REVIEWER = """---
name: reviewer
description: Reviews changes.
tools: Read, Grep, Bash(git diff:*)
model: sonnet
---
Look for mistakes.
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    place = tmp_path / "home"
    place.mkdir()
    return place


def write(directory: Path, text: str, name: str = "a.md", folder: str = ".claude") -> None:
    path = directory / folder / "agents" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_tools_of_claude_code_become_ours(home: Path, directory: Path) -> None:
    write(directory, REVIEWER)

    agents, notices = find_agents(Project(directory, home))

    reviewer = agents["reviewer"]
    commands = {"execute", "read_command", "write_command", "stop_command"}
    assert TOOLS - reviewer.excluded == {"read_file", "grep", *commands}
    assert (reviewer.description, reviewer.prompt) == ("Reviews changes.", "Look for mistakes.")
    assert (reviewer.commands, notices) == (("git diff:*",), [])


@pytest.mark.parametrize(
    ("tools", "commands"),
    [
        ("tools: Bash(git:*), Bash(make test)", ("git:*", "make test")),
        ("tools: Bash(git:*), Bash", ()),
        ("tools: Bash(*)", ()),
        ("tools: '*'", ()),
        ("tools: [Read, 'Bash(npm run *)']", ("npm run *",)),
    ],
)
def test_commands_are_narrowed_by_how_they_begin(
    home: Path, directory: Path, tools: str, commands: tuple[str, ...]
) -> None:
    write(directory, f"---\nname: a\ndescription: A.\n{tools}\n---\nWork.")

    agents, notices = find_agents(Project(directory, home))

    assert (agents["a"].commands, notices) == (commands, [])


@needs_sandbox
def test_a_command_that_a_file_does_not_name_is_refused_and_not_asked_about(
    cli: Command, directory: Path
) -> None:
    write(directory, "---\nname: a\ndescription: A.\ntools: Bash(echo:*), Bash(ls -a)\n---\nWork.")
    commands = ("echo one", "ls -a", "ls -a /", "echo two; ls", "echoes", "echo $HOME", "ls")
    model = ScriptedModel(
        call("task", description="Look.", subagent_type="a"),
        *[call("execute", command=each) for each in commands],
        "Looked.",
        "Done.",
    )

    assert cli.run("go", "--mode", "ask", model=model).code == 3, "two of them need a person"

    results = [asked.messages[-1].text for asked in model.asked[2:9]]
    assert ["nobody can be asked" in each for each in results] == [True, True, *[False] * 5]
    assert all("runs only plain commands of these: echo:*, ls -a" in each for each in results[2:])


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        ("tools: '*'", TOOLS),
        ("tools: [Read, edit_file]", {"read_file", "edit_file"}),
        ("disallowedTools: Bash, Task", TOOLS - {"execute", "read_command", "write_command", "stop_command"}),
        ("tools: Read, Write\nmode: plan", {"read_file"}),
        ("permissionMode: plan\ntools: Bash, LS", {"ls"}),
    ],
)
def test_tools_can_be_chosen_and_left_out(home: Path, directory: Path, fields: str, kept: set[str]) -> None:
    write(directory, f"---\nname: a\ndescription: A.\n{fields}\n---\nWork.")

    agents, notices = find_agents(Project(directory, home))

    assert notices == []
    assert TOOLS - agents["a"].excluded == kept


@needs_sandbox
@pytest.mark.parametrize(
    ("mode", "conversation", "code"),
    [
        ("mode: ask", "auto", 3),
        ("permissionMode: default", "auto", 3),
        ("permissionMode: acceptEdits", "auto", 0),
        ("mode: auto", "ask", 3),
        ("mode: auto", "full", 0),
        ("permissionMode: bypassPermissions", "auto", 3),
        ("", "auto", 0),
    ],
)
def test_an_agent_is_at_most_as_free_as_the_conversation(
    cli: Command, directory: Path, mode: str, conversation: str, code: int
) -> None:
    write(directory, f"---\nname: a\ndescription: A.\n{mode}\n---\nWork.")
    model = ScriptedModel(
        call("task", description="Touch.", subagent_type="a"),
        call("execute", command="touch a"),
        "Touched.",
        "Done.",
    )

    assert cli.run("go", "--mode", conversation, model=model).code == code
    assert (directory / "a").exists() is (code == 0)


@pytest.mark.parametrize(
    ("text", "said", "used"),
    [
        ("Work.", "it has no 'description'", False),
        ("---\nname: a\n---\n", "it has no 'description'", False),
        ("---\nname: [\n---\n", "its front matter is not YAML", False),
        ("---\nname: general-purpose\ndescription: A.\n---\n", "'general-purpose' is taken", False),
        ("---\nname: a b\ndescription: A.\n---\n", "'a b' is not a name", False),
        (
            "---\ndescription: A.\ntools: Read, NotebookEdit\n---\n",
            "there is no tool 'NotebookEdit' here",
            True,
        ),
        ("---\ndescription: A.\nmode: full\n---\n", "mode 'full' is not used: write one of ask", True),
    ],
)
def test_what_is_wrong_is_named_with_its_file(
    home: Path, directory: Path, text: str, said: str, used: bool
) -> None:
    write(directory, text)

    agents, (notice,) = find_agents(Project(directory, home))

    assert notice.startswith(str(directory / ".claude/agents/a.md"))
    assert said in notice
    assert ("a" in agents) is used


def test_the_agent_of_the_directory_wins(home: Path, directory: Path) -> None:
    for place, folder in ((home, ".deepagents"), (directory, ".claude"), (directory, ".deepagents")):
        write(place, f"---\nname: a\ndescription: In {place.name}/{folder}.\n---\n", folder=folder)

    agents, _ = find_agents(Project(directory, home))

    assert agents["a"].description == "In files/.deepagents."


@pytest.mark.parametrize(
    ("model", "said"),
    [("sonnet", "'sonnet' is one of Anthropic's, and the main model is none"), ("nobody:x", "'nobody:x'")],
)
def test_a_model_that_cannot_be_had_is_that_of_the_main_agent(
    home: Path, directory: Path, model: str, said: str
) -> None:
    write(directory, f"---\nname: a\ndescription: A.\nmodel: {model}\n---\n")
    agents, _ = find_agents(Project(directory, home))

    (spec,), (notice,) = make_subagents(agents.values(), ScriptedModel("Hello."))

    assert "model" not in spec
    assert said in notice


def test_the_main_agent_delegates_to_it_and_a_tool_that_it_lacks_is_refused(
    cli: Command, directory: Path
) -> None:
    write(directory, "---\nname: reader\ndescription: Reads.\ntools: Read\n---\nRead well.")
    model = ScriptedModel(
        call("task", description="Look.", subagent_type="reader"),
        call("write_file", file_path="new.md", content="x"),
        "It was refused.",
        "Done.",
    )

    assert cli.run("go", "--yes", model=model).code == 0

    assert not (directory / "new.md").exists()
    assert "Read well." in model.asked[1].messages[0].text
    assert "write_file is not available" in model.asked[2].messages[-1].text
