"""Subagents have the servers of their agent, unless they say otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from deepagents import create_deep_agent
from deepagents.errors import ConfigError
from deepagents.mcp import MCPServers
from deepagents.testing import ScriptedModel, call
from tests.mcp.servers import crooked

ABOUT = {"name": "helper", "description": "Helps."}


@pytest.mark.parametrize(
    ("spec", "has"),
    [
        ({}, ["mcp__main__pid"]),
        ({"tools": []}, []),
        ({"mcp": None}, []),
        ({"mcp": {}}, []),
        ({"mcp": {"own": crooked("pid")}}, ["mcp__own__pid"]),
        ({"mcp": {"own": crooked("pid")}, "tools": []}, ["mcp__own__pid"]),
    ],
)
def test_which_servers_a_subagent_has(spec: Any, has: list[str]) -> None:
    model = ScriptedModel(call("task", description="Go.", subagent_type="helper"), "Fine.", "Done.")

    with MCPServers({"main": crooked("pid")}) as servers:
        subagent: Any = {**ABOUT, **spec}
        agent = create_deep_agent(model, mcp=servers, subagents=[subagent])
        agent.invoke({"messages": "Go."})

    offered = [each for each in model.asked[1].tool_names if each.startswith("mcp__")]
    assert offered == has


def test_a_mistake_in_a_subagent_is_named_when_the_agent_is_built() -> None:
    spec: Any = {**ABOUT, "mcp": {"own": {}}}

    with pytest.raises(ConfigError, match="MCP server 'own'"):
        create_deep_agent(ScriptedModel(), subagents=[spec])
