"""The servers that files bring: read as Claude Code writes them, and used once a person has trusted them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from deepagents.testing import ScriptedModel, call
from deepagents_cli.project.project import Project
from deepagents_cli.project.setup import Setup, load_setup
from tests.cli.conftest import Command
from tests.mcp.servers import crooked

SETTINGS = """
[servers.clock]
command = "clock"
args = ["--utc"]
"""


def write(path: Path, servers: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(servers if isinstance(servers, str) else json.dumps({"mcpServers": servers}))
    return path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "home"
    place.mkdir()
    monkeypatch.setenv("HOME", str(place))
    return place


def load(directory: Path, home: Path, *, trust: bool = True) -> Setup:
    environment = {"DEEPAGENTS_SETTINGS": str(home / "settings.toml")}
    return load_setup(Project(directory, home), environment, trust=trust)


def test_what_would_start_is_shown_whole_and_waits_for_trust(directory: Path, home: Path) -> None:
    entries = {
        "db": {"command": "npx", "args": ["-y", "db server"], "env": {"KEY": "${KEY:-}"}},
        "far": {"type": "http", "url": "https://example.org/mcp", "headers": {"X": "\u001b[2Jy"}},
    }
    write(directory / ".mcp.json", entries)

    setup = load(directory, home, trust=False)

    assert (dict(setup.servers), setup.trusted) == ({}, False)
    assert [each.show() for each in setup.items] == [
        'server db: npx -y \'db server\'\n    env: {"KEY": "${KEY:-}"}',
        'server far: https://example.org/mcp\n    type: "http"\n    headers: {"X": "\\u001b[2Jy"}',
    ]
    assert [*load(directory, home).servers] == ["db", "far"]


def test_a_change_of_any_part_asks_again(directory: Path, home: Path) -> None:
    digests = {
        load(write(directory / ".mcp.json", {"db": entry}).parent, home).digest
        for entry in ({"command": "a b"}, {"command": "a", "args": ["b"]}, {"command": "a b", "cwd": "x"})
    }
    assert len(digests) == 3


def test_those_of_the_person_need_no_trust_and_a_project_s_of_the_same_name_comes_first(
    directory: Path, home: Path
) -> None:
    write(home / "settings.toml", SETTINGS)
    write(directory / ".mcp.json", {"clock": {"command": "sundial"}})

    assert load(directory, home, trust=False).servers["clock"].entry["command"] == "clock"
    assert load(directory, home).servers["clock"].entry["command"] == "sundial"


def test_a_wrong_entry_is_named_and_takes_no_other_with_it(directory: Path, home: Path) -> None:
    entries = {
        "none": {},
        "list": [],
        "secret": {"command": "x", "env": {"KEY": "${NO_SUCH_VARIABLE}"}},
        "free": {"command": "x", "autoApprove": ["*"]},
    }
    write(directory / ".mcp.json", entries)

    setup = load(directory, home)

    assert [*setup.servers] == ["free"]
    for name in (
        "'none': it needs 'command' or 'url'",
        "'list'",
        "NO_SUCH_VARIABLE",
        "'autoApprove' is ignored",
    ):
        assert any(name in each for each in setup.notices), (name, setup.notices)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not used"),
        ("[]", "it holds no object in braces"),
        ('{"mcpServers": 3}', "'mcpServers' is not an object"),
        ("[" * 100_000, "is not used"),
        (" " * 300_000, "longer than"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(directory: Path, home: Path, text: str, said: str) -> None:
    write(directory / ".mcp.json", text)

    assert any(said in each and ".mcp.json" in each for each in load(directory, home).notices)


def test_doctor_names_the_program_that_is_not_there(cli: Command, directory: Path, home: Path) -> None:
    here = directory / "start"
    here.write_text("#!/bin/sh\n")
    here.chmod(0o755)
    entries = {"here": {"command": "./start"}, "shell": {"command": "sh"}, "gone": {"command": "no-such"}}
    write(directory / ".mcp.json", {**entries, "far": {"url": "https://example.org"}})

    said = [each for each in cli("doctor", "--dir", str(directory)).out.splitlines() if " servers " in each]

    assert [each.split()[0] for each in said] == ["ok", "ok", "--", "ok"]
    assert "gone: no-such: there is no program 'no-such'" in said[2]


def test_a_command_starts_where_its_file_is(directory: Path, home: Path) -> None:
    entries = {"here": {"command": "./x"}, "below": {"command": "x", "cwd": "y"}}
    entries["elsewhere"] = {"command": "x", "cwd": "${HOME}/z"}
    write(directory / ".mcp.json", entries)

    placed = [each.placed()["cwd"] for each in load(directory, home).servers.values()]

    assert placed == [str(directory), f"{directory}/y", "${HOME}/z"]


def test_a_task_uses_the_servers_of_a_file_that_was_named(cli: Command, tmp_path: Path) -> None:
    path = write(tmp_path / "servers.json", {"files": crooked("read")})
    model = ScriptedModel(call("mcp__files__read", path="a"), lambda asked: asked.last)

    ended = cli.run("go", "--mcp", str(path), "--yes", "-q", model=model)

    assert (ended.code, ended.out) == (0, '{"path": "a"}\n')


def test_without_a_person_a_server_s_tool_is_refused(cli: Command, tmp_path: Path) -> None:
    path = write(tmp_path / "servers.json", {"files": crooked("read")})
    for mode, code in (("ask", 3), ("auto", 3), ("plan", 3), ("full", 0)):
        model = ScriptedModel(call("mcp__files__read", path="a"), "Done.")
        assert cli.run("go", "--mcp", str(path), "--mode", mode, model=model).code == code, mode


def test_a_server_that_does_not_start_is_named_and_the_task_is_done(cli: Command, tmp_path: Path) -> None:
    path = write(tmp_path / "servers.json", {"db": crooked("read", start="exit", env={"TOKEN": "s3cret"})})

    ended = cli.run("go", "--mcp", str(path), model=ScriptedModel("Done."))

    assert ended.code == 0
    assert (
        "the MCP server 'db' is not there: its process ended with status 3: last words with ***" in ended.err
    )


def test_no_other_servers_are_used_than_those_that_were_named(cli: Command, tmp_path: Path) -> None:
    entry = crooked("read")
    words = ", ".join(json.dumps(each) for each in entry["args"])
    settings = f"[servers.own]\ncommand = {json.dumps(entry['command'])}\nargs = [{words}]\n"
    (tmp_path / "settings.toml").write_text(settings)
    path = write(tmp_path / "servers.json", {"given": entry})

    def offered(*options: str) -> set[str]:
        model = ScriptedModel("Done.")
        assert cli.run("go", *options, model=model).code == 0
        return {each for each in model.asked[-1].tool_names if each.startswith("mcp__")}

    assert offered() == {"mcp__own__read"}
    assert offered("--no-mcp") == set()
    assert offered("--no-mcp", "--mcp", str(path)) == {"mcp__given__read"}
    assert offered("--mcp", str(path)) == {"mcp__given__read", "mcp__own__read"}


@pytest.mark.parametrize("text", [None, "{", '{"mcpServers": []}'])
def test_a_named_file_that_cannot_be_used_is_a_wrong_usage(
    cli: Command, tmp_path: Path, text: str | None
) -> None:
    path = tmp_path / "servers.json"
    if text is not None:
        path.write_text(text)

    ended = cli.run("go", "--mcp", str(path), model=ScriptedModel())

    assert ended.code == 2
    assert f"--mcp: '{path}' cannot be used" in ended.err
