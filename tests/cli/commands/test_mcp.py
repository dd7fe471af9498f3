"""Servers are added, listed, tried and removed, in the settings of a person and in the file of a project."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command
from tests.mcp.servers import crooked

CLOCK = {"command": "uvx", "args": ["-y", "clock"], "env": {"KEY": "${NO_SUCH_KEY}"}}


def own(tmp_path: Path) -> Any:
    return tomllib.loads((tmp_path / "settings.toml").read_text()).get("servers")


def test_a_server_is_written_into_the_settings_and_taken_out_again(cli: Command, tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text("# mine\nmode = 'plan'\n")

    ended = cli("mcp", "add", "clock", "--env", "KEY=${NO_SUCH_KEY}", "--", "uvx", "-y", "clock")

    assert ended.code == 0
    assert ended.out == f"clock is written into {tmp_path}/settings.toml\n"
    assert "'NO_SUCH_KEY', which is not set" in ended.err
    assert own(tmp_path) == {"clock": CLOCK}
    assert (tmp_path / "settings.toml").read_text().startswith("# mine\nmode = 'plan'\n")

    assert cli("mcp", "add", "clock", "https://x.example/mcp", "--header", "A: b: c").code == 0
    assert own(tmp_path) == {"clock": {"url": "https://x.example/mcp", "headers": {"A": "b: c"}}}
    assert cli("mcp", "list").out == f"clock  https://x.example/mcp  {tmp_path}/settings.toml\n"

    assert cli("mcp", "remove", "clock").code == 0
    assert own(tmp_path) is None
    assert cli("mcp", "remove", "clock").code == 2


def test_a_project_s_server_waits_for_trust(cli: Command, directory: Path) -> None:
    given = {"mcpServers": {"old": {"command": "x"}}, "more": 1}
    (directory / ".mcp.json").write_text(json.dumps(given))
    place = ("--dir", str(directory))

    ended = cli("mcp", "add", "--project", *place, "clock", "uvx")

    assert ended.out.endswith(f"/.mcp.json; to use it: deepagents trust {directory}\n")
    written = json.loads((directory / ".mcp.json").read_text())
    assert written == {"mcpServers": {"old": {"command": "x"}, "clock": {"command": "uvx"}}, "more": 1}
    assert cli("mcp", "list", *place).out.splitlines()[:2] == [
        "old  x  waits for trust",
        "clock  uvx  waits for trust",
    ]
    assert "it waits: deepagents trust" in cli("mcp", "test", "clock", *place).err
    assert cli("trust", str(directory), "--yes").code == 0
    assert cli("mcp", "list", *place).out.splitlines()[0] == f"old  x  {directory}/.mcp.json"
    assert cli("mcp", "remove", "--project", *place, "old").code == 0
    assert [*json.loads((directory / ".mcp.json").read_text())["mcpServers"]] == ["clock"]


def test_a_test_starts_servers_and_says_why_one_fails(cli: Command) -> None:
    assert cli("mcp", "test").out == "There are no servers here; deepagents mcp add adds one.\n"
    for name, entry in {"good": crooked("read"), "bad": crooked("x", start="exit")}.items():
        assert cli("mcp", "add", name, "--", entry["command"], *entry["args"]).code == 0

    good = cli("mcp", "test", "good")
    assert (good.code, good.out) == (0, "good  1 tool\n  mcp__good__read  A tool.\n")
    both = cli("mcp", "test")
    assert both.code == 1
    assert "bad  is not there: its process ended with status 3" in both.out


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("x", "https://a.example", "b"), "behind the address stands 'b'"),
        (("x", "cmd", "--env", "KEY"), "write NAME=VALUE"),
        (("x", "cmd", "--type", "http"), "it needs 'url'"),
        (("", "cmd"), "must be a text that is not empty"),
    ],
)
def test_what_cannot_be_a_server_is_not_written(
    cli: Command, tmp_path: Path, typed: tuple[str, ...], said: str
) -> None:
    ended = cli("mcp", "add", *typed)

    assert ended.code == 2
    assert said in ended.err
    assert not (tmp_path / "settings.toml").exists()


def test_a_file_that_is_not_json_is_left_as_it_is(cli: Command, directory: Path) -> None:
    (directory / ".mcp.json").write_text("{")

    ended = cli("mcp", "add", "--project", "--dir", str(directory), "clock", "uvx")

    assert ended.code == 1
    assert "is not JSON, so it was left as it is" in ended.err
    assert (directory / ".mcp.json").read_text() == "{"
