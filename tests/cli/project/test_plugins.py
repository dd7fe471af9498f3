"""A plugin, laid out as for Claude Code, brings commands, agents, skills and hooks under its name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deepagents.testing import ScriptedModel, call
from deepagents_cli.project.project import Project
from deepagents_cli.project.setup import Setup, load_setup
from tests.cli.approval.test_sandbox import needs_sandbox
from tests.cli.conftest import Command

HOOKS = {
    "hooks": {
        "PreToolUse": [
            {
                "matcher": "Write|Edit",
                "hooks": [{"type": "command", "command": "sh ${CLAUDE_PLUGIN_ROOT}/scripts/check.sh"}],
            }
        ],
        "Stop": [{"hooks": [{"type": "command", "command": "touch stopped"}]}],
    }
}
CHECK = "cat > given.json; echo not this file >&2; exit 2\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "home"
    place.mkdir()
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.delenv("DEEPAGENTS_SETTINGS")
    return place


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def plugin(place: Path, folder: str = "lint-plugin", manifest: str | None = '{"name": "lint"}') -> Path:
    """Write a plugin with a part of each kind."""
    top = place / ".deepagents/plugins" / folder
    if manifest is not None:
        write(top / ".claude-plugin/plugin.json", manifest)
    write(top / "commands/fix.md", "---\ndescription: Fixes\n---\nFix $ARGUMENTS.")
    write(top / "commands/run.md", "It is !`cat ${CLAUDE_PLUGIN_ROOT}/scripts/words`.")
    write(top / "agents/reader.md", "---\nname: reader\ndescription: Reads.\n---\nRead.")
    write(top / "skills/tidy/SKILL.md", "---\nname: tidy\ndescription: Tidies up\n---\nTidy up.")
    write(top / "hooks/hooks.json", json.dumps(HOOKS))
    write(top / "scripts/check.sh", CHECK)
    write(top / "scripts/words", "late")
    return top


def load(home: Path, directory: Path) -> Setup:
    return load_setup(Project(directory, home), {})


def test_the_parts_of_a_plugin_carry_its_name(home: Path, directory: Path) -> None:
    plugin(home)

    setup = load(home, directory)

    assert ([*setup.commands], [*setup.agents]) == (["lint:fix", "lint:run"], ["lint:reader"])
    assert [*setup.project.find_skills()] == ["tidy"]
    assert [(each.plugin, each.event) for each in setup.settings.hooks] == [
        ("lint", "before_tool"),
        ("lint", "end_of_turn"),
    ]
    assert (setup.trusted, setup.notices) == (True, [])


@needs_sandbox
@pytest.mark.parametrize("options", [(), ("--shell",)])
def test_a_plugin_of_the_home_works(
    cli: Command, home: Path, directory: Path, options: tuple[str, ...]
) -> None:
    plugin(home)
    edit = call("edit_file", file_path="notes.md", old_string="first", new_string="1st")
    model = ScriptedModel(edit, "Done.")

    ended = cli.run("/lint:run", "--yes", *options, model=model)

    assert ended.code == 0
    assert model.asked[0].last == "It is late."
    assert ("tidy" in str(model.asked[0].messages[0].text)) == (not options)
    assert "A hook of this project refused the call" in model.asked[1].last
    assert "not this file" in model.asked[1].last
    given = json.loads((directory / "given.json").read_text())
    assert (given["hook_event_name"], given["tool_name"]) == ("PreToolUse", "Edit")
    assert given["tool_input"]["new_string"] == "1st"
    assert (directory / "stopped").exists()


def test_what_can_run_of_a_plugin_of_a_project_waits_for_trust(
    cli: Command, home: Path, directory: Path
) -> None:
    top = plugin(directory)

    setup = load(home, directory)
    assert not setup.trusted
    assert [*setup.commands] == ["lint:fix"]
    assert [*setup.agents] == ["lint:reader"]
    assert setup.settings.hooks == ()

    shown = cli("trust", str(directory), "--yes").out.splitlines()
    assert shown[:3] == [
        f"hook lint: before_tool (edit_file, write_file): sh {top}/scripts/check.sh",
        "hook lint: end_of_turn: touch stopped",
        f"command /lint:run: cat {top}/scripts/words",
    ]
    assert len(load(home, directory).settings.hooks) == 2

    write(top / "commands/run.md", "Now !`cat /etc/hostname`")
    assert not load(home, directory).trusted


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        ("{", ".claude-plugin/plugin.json is not JSON: "),
        ("[]", "holds no object in braces"),
        ("[" * 100_000, "is not used: "),
        ('{"name": "../x"}', "'../x' is not a name for it; write letters, digits, '-' and '_'"),
        ('{"name": 3}', "3 is not a name for it"),
        ('{"name": "a b\\u001b[2J"}', "is not a name for it"),
        ("x" * 100_000, "it is longer than 65,536 bytes"),
    ],
)
def test_a_plugin_that_cannot_be_read_is_named_and_not_used(
    home: Path, directory: Path, manifest: str, said: str
) -> None:
    top = plugin(home, manifest=manifest)

    setup = load(home, directory)

    (notice,) = setup.notices
    assert notice.startswith(f"the plugin {top} is not used: ")
    assert said in notice
    assert notice.isprintable()
    assert ({**setup.commands}, {**setup.agents}, setup.settings.hooks) == ({}, {}, ())


def test_what_is_not_used_of_a_plugin_is_named(cli: Command, home: Path, directory: Path) -> None:
    top = plugin(home, manifest='{"name": "lint", "commands": "./other", "mcpServers": {}}')
    write(top / ".mcp.json", "{}")
    others = {
        "hooks": {
            "SessionStart": [],
            "PreToolUse": [
                {"matcher": "NotebookEdit", "hooks": [{"type": "command", "command": "touch ran"}]},
                {"matcher": "Bash", "hooks": [{"type": "prompt", "prompt": "x"}, 3]},
            ],
            "PostToolUse": {},
        }
    }
    write(top / "hooks/hooks.json", json.dumps(others))

    setup = load(home, directory)

    said = "\n".join(setup.notices)
    assert "commands, mcpServers in .claude-plugin/plugin.json is not used" in said
    assert "its MCP servers (.mcp.json) are not used" in said
    assert "there is no event 'SessionStart' here; hooks run at PreToolUse, PostToolUse, Stop" in said
    assert "there is no tool 'NotebookEdit' here" in said
    assert "a hook is a command here" in said
    assert "3 is not an object" in said
    assert "write lists of objects" in said
    assert setup.settings.hooks == ()
    doctor = cli("doctor", "--dir", str(directory)).out
    assert f"lint at {top}" in doctor
    assert "MCP servers" in doctor


@pytest.mark.parametrize("text", ["{", "[]", '{"hooks": []}', "[" * 100_000])
def test_hooks_that_are_none_are_named(home: Path, directory: Path, text: str) -> None:
    path = write(plugin(home) / "hooks/hooks.json", text)

    setup = load(home, directory)

    assert [each.startswith(f"{path} is not used: ") for each in setup.notices] == [True]
    assert [*setup.commands] == ["lint:fix", "lint:run"]


@pytest.mark.parametrize("link", ["plugins", "plugins/lint", "plugins/lint/commands", "plugins/lint/hooks"])
def test_no_link_brings_a_plugin_from_elsewhere(
    home: Path, directory: Path, tmp_path: Path, link: str
) -> None:
    elsewhere = plugin(tmp_path / "elsewhere", "lint", None)
    own = directory / ".deepagents" / link
    own.parent.mkdir(parents=True)
    own.symlink_to(elsewhere.parents[1] / link)

    setup = load(home, directory)

    assert ({**setup.commands}, {**setup.agents}, setup.settings.hooks) == ({}, {}, ())
    assert setup.project.skills() == []


def test_a_path_that_is_more_than_a_word_for_a_shell_is_not_put_into_a_command(
    home: Path, tmp_path: Path
) -> None:
    directory = tmp_path / "a $(touch ran)"
    plugin(directory)

    setup = load(home, directory)

    assert [*setup.commands] == ["lint:fix"]
    assert setup.items == []
    assert sum("is not a plain word for a shell; move the plugin" in each for each in setup.notices) == 2


def test_a_plugin_of_a_project_takes_none_of_the_hooks_of_the_person_away(
    home: Path, directory: Path
) -> None:
    plugin(home)
    write(plugin(directory) / "hooks/hooks.json", '{"hooks": {}}')

    assert len(load(home, directory).settings.hooks) == 2
