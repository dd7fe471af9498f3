"""An agent uses the tools of servers, whoever calls it and however often."""

from __future__ import annotations

import asyncio
from typing import Any

from langchain.agents import create_agent

from deepagents import create_deep_agent
from deepagents.mcp import MCPServers
from deepagents.testing import ScriptedModel, call
from tests.mcp.servers import agent_that_calls, crooked, results, tool

CITY = {"type": "string", "description": "Where."}


def test_an_agent_calls_a_tool_of_a_server(call_mode: Any) -> None:
    agent = agent_that_calls(
        "mcp__clock__time_in", {"clock": crooked(tool("time_in", city=CITY))}, city="Rome"
    )

    [result] = results(call_mode.invoke(agent, {"messages": "What time is it in Rome?"}))

    assert (result.content, result.status) == ('{"city": "Rome"}', "success")


def test_one_process_serves_all_agents_runs_and_loops(call_mode: Any) -> None:
    with MCPServers({"one": crooked("pid", call="pid")}) as servers:
        found = {
            results(call_mode.invoke(agent_that_calls("mcp__one__pid", servers), {"messages": "Go."}))[
                0
            ].content
            for _ in range(2)
        }
        tools = call_mode.call(servers, "tools")
        found.add(call_mode.invoke(tools[0], {}))

    assert len(found) == 1


def test_its_tools_work_in_any_agent(call_mode: Any) -> None:
    with MCPServers({"one": crooked("echo")}) as servers:
        model = ScriptedModel(call("mcp__one__echo", self=1, config=2, run_manager=3), "Done.")
        agent = create_agent(model, tools=call_mode.call(servers, "tools"))

        [result] = results(call_mode.invoke(agent, {"messages": "Go."}))

    assert result.content == '{"self": 1, "config": 2, "run_manager": 3}'


async def test_a_request_waits_for_servers_that_something_else_is_starting() -> None:
    servers = MCPServers({"one": crooked("echo")})
    starting = asyncio.ensure_future(servers.astart())
    while servers.status()["one"].status != "starting":
        await asyncio.sleep(0)

    assert [each.name for each in await servers.atools()] == ["mcp__one__echo"]

    await starting
    await servers.aclose()


def test_nothing_starts_before_the_first_request(call_mode: Any) -> None:
    servers = MCPServers({"one": crooked("echo")})
    agent = create_deep_agent(ScriptedModel("Done."), mcp=servers)
    assert servers.status()["one"].status == "idle"

    call_mode.invoke(agent, {"messages": "Go."})

    shown = servers.status()["one"]
    assert (shown.status, shown.tools, shown.protocol, shown.transport) == ("ready", 1, "2025-11-25", "stdio")
    call_mode.call(servers, "close")
    assert servers.status()["one"].status == "stopped"
