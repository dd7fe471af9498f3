"""What a file of servers says is read as it is written elsewhere, and mistakes are named at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mcp.server.mcpserver import MCPServer

from deepagents import create_deep_agent
from deepagents.errors import ConfigError
from deepagents.mcp import MCPServers
from deepagents.testing import ScriptedModel
from tests.mcp.servers import crooked


def environment_of(servers: MCPServers) -> Any:
    with servers:
        [tool] = servers.tools()
        return json.loads(tool.invoke({}))


def test_a_file_is_read_and_its_servers_start_where_it_is(tmp_path: Path) -> None:
    entry = {**crooked("environment", call="environment"), "env": {"COLOR": "blue"}}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"one": entry}}))

    seen = environment_of(MCPServers(tmp_path / ".mcp.json"))

    assert seen["cwd"] == str(tmp_path)
    assert seen["env"]["COLOR"] == "blue"


def test_a_server_has_no_keys_of_its_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")

    seen = environment_of(MCPServers({"one": crooked("environment", call="environment")}))

    assert seen["env"].keys() <= {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LC_CTYPE", "PWD"}


def test_variables_are_filled_in_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "${HOME} and $HOME")
    monkeypatch.setenv("EMPTY", "")
    values = {"A": "${TOKEN}", "B": "${EMPTY:-instead}", "C": "${UNSET:-}", "D": "$TOKEN"}

    seen = environment_of(MCPServers({"one": crooked("environment", call="environment", env=values)}))

    assert [seen["env"][key] for key in "ABCD"] == ["${HOME} and $HOME", "instead", "", "$TOKEN"]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({}, "'command' or 'url', and has neither"),
        ({"command": "x", "url": "https://x.example"}, "has both"),
        ({"command": ""}, "'command' must be a text that is not empty"),
        ({"command": "x", "args": "y"}, "'args' must be a list of texts"),
        ({"command": "x", "env": {"A": 1}}, "'env' must be an object of texts"),
        ({"command": "${NOT_THERE}"}, "'NOT_THERE', which is not set"),
        ({"url": "ftp://x.example"}, "begins with http:// or https://"),
        ({"command": "x", "type": "htp"}, "did you mean 'http'?"),
        ({"command": "x", "timeout": 0}, "milliseconds above 0"),
        ({"command": "x", "disabled": "yes"}, "true or false"),
        (7, "must be a mapping with 'command' or 'url'"),
    ],
)
def test_a_mistake_is_named_when_the_agent_is_built(entry: Any, words: str) -> None:
    with pytest.raises(ConfigError, match="MCP server 'one'") as raised:
        create_deep_agent(ScriptedModel(), mcp={"one": entry})

    assert words in str(raised.value)


def test_no_mistake_shows_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "s3cret-value")
    entry = {"url": "https://x.example", "headers": {"A": "${TOKEN}", "B": ["s3cret-value"]}}

    with pytest.raises(ConfigError) as raised:
        MCPServers({"one": entry})

    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize("servers", [["s3cret"], {"mcpServers": ["s3cret"]}, {"one": ["s3cret"]}, "a file"])
def test_what_has_the_wrong_shape_is_not_shown(tmp_path: Path, servers: Any) -> None:
    path = tmp_path / "servers.json"
    path.write_text('["s3cret"]')

    with pytest.raises(ConfigError, match="not list") as raised:
        MCPServers(path if servers == "a file" else servers)

    assert "s3cret" not in str(raised.value)


def test_unknown_keys_warn_and_grant_nothing() -> None:
    with pytest.warns(UserWarning, match="unknown key 'autoApprove'"):
        MCPServers({"one": {"command": "x", "autoApprove": ["*"]}})


@pytest.mark.parametrize("text", ["{", "[]", '{"mcpServers": 1}'])
def test_a_file_that_is_none_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "servers.json"
    path.write_text(text)

    with pytest.raises(ConfigError):
        MCPServers(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        MCPServers(tmp_path / "none.json")


def test_only_the_tools_that_an_entry_names_are_offered() -> None:
    entry = {
        **crooked("read_a", "read_b", "write_a"),
        "tools": ["read_*", "write_*"],
        "excludeTools": ["*_b"],
    }

    with MCPServers({"one": entry}) as servers:
        assert [each.name for each in servers.tools()] == ["mcp__one__read_a", "mcp__one__write_a"]


def test_a_server_that_is_switched_off_does_not_start() -> None:
    with MCPServers({"one": {**crooked("echo"), "disabled": True}}) as servers:
        assert servers.tools() == []
        assert servers.status()["one"].status == "stopped"


def test_a_server_object_of_this_process_serves(call_mode: Any) -> None:
    server = MCPServer("adder")
    server.add_tool(lambda a, b: a + b, name="add")

    with MCPServers({"adder": server}) as servers:
        [tool] = call_mode.call(servers, "tools")
        assert call_mode.invoke(tool, {"a": 1, "b": 2}) == "3"
        assert servers.status()["adder"].transport == "memory"
