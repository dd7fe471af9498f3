"""A server that misbehaves costs its own tools, for a while; never the run, and never its neighbours."""

from __future__ import annotations

import asyncio
import json
from time import monotonic
from typing import Any

import pytest

from deepagents import create_deep_agent
from deepagents.errors import ToolFailure
from deepagents.mcp import MCPServers
from deepagents.testing import ScriptedModel, call
from tests.mcp.servers import agent_that_calls, crooked, results, tool


def failure(call_mode: Any, servers: MCPServers, name: str, **arguments: Any) -> ToolFailure:
    """Call a tool by its name, and return how it fails."""
    found = next(each for each in call_mode.call(servers, "tools") if each.name == name)
    with pytest.raises(ToolFailure) as raised:
        call_mode.invoke(found, arguments)
    return raised.value


@pytest.mark.slow
def test_a_server_that_hangs_costs_one_wait_and_not_its_neighbours(call_mode: Any) -> None:
    servers = MCPServers({"slow": crooked(start="hang"), "good": crooked("echo")}, startup_timeout=1)
    model = ScriptedModel(call("mcp__slow__query"), call("mcp__good__echo", a=1), "Done.")

    with servers:
        begun = monotonic()
        state = call_mode.invoke(create_deep_agent(model, mcp=servers), {"messages": "Go."})
        missing, echoed = results(state)
        assert monotonic() - begun < 0.9, "no request waits for it again"

    assert missing.additional_kwargs["error_code"] == "remote_failed"
    assert "'slow' is not there: it did not start within 1 seconds" in missing.content
    assert echoed.content == '{"a": 1}'


def test_a_server_that_ends_at_its_start_says_its_last_words(call_mode: Any) -> None:
    servers = MCPServers({"one": crooked(start="exit", env={"TOKEN": "s3cret-value"})})

    call_mode.call(servers, "start")

    shown = servers.status()["one"]
    assert shown.status == "failed"
    assert shown.error == "its process ended with status 3: last words with ***"


def test_a_command_that_is_not_there_is_named(call_mode: Any) -> None:
    servers = MCPServers({"one": {"command": "no-such-program"}})

    call_mode.call(servers, "start")

    assert "no-such-program: No such file or directory" in (servers.status()["one"].error or "")


def test_a_directory_that_is_not_there_is_named(call_mode: Any) -> None:
    servers = MCPServers({"one": {**crooked("echo"), "cwd": "/no/such/place"}})

    call_mode.call(servers, "start")

    assert "/no/such/place" in (servers.status()["one"].error or "")


def test_a_call_in_which_the_server_ends_is_never_made_again(call_mode: Any) -> None:
    with MCPServers({"one": crooked("die", call="exit")}) as servers:
        failed = failure(call_mode, servers, "mcp__one__die")

    assert failed.code == "remote_failed"
    assert "may or may not have taken effect" in failed.text


def test_a_server_that_ended_is_started_again_three_times_in_a_minute(call_mode: Any) -> None:
    with MCPServers({"one": crooked("die", call="exit")}) as servers:
        texts = [failure(call_mode, servers, "mcp__one__die").text for _ in range(5)]

    assert all("ended during this call" in text for text in texts[:4])
    assert "ended 3 times within a minute" in texts[4]


def test_the_run_goes_on_when_a_server_ends(call_mode: Any) -> None:
    agent = agent_that_calls("mcp__one__die", {"one": crooked("die", call="exit")})

    state = call_mode.invoke(agent, {"messages": "Go."})

    [result] = results(state)
    assert (result.status, result.additional_kwargs["error_code"]) == ("error", "remote_failed")
    assert state["messages"][-1].text == "Done."


def test_a_late_call_times_out_and_its_server_is_informed(call_mode: Any) -> None:
    with MCPServers({"one": {**crooked("silent", "recall", call="silent"), "timeout": 300}}) as servers:
        failed = failure(call_mode, servers, "mcp__one__silent")
        recall = call_mode.call(servers, "tools")[1]
        seen = json.loads(call_mode.invoke(recall, {}))

    assert failed.code == "timeout"
    assert "within 0.3 seconds" in failed.text
    assert len(seen["cancelled"]) == 1


@pytest.mark.slow
def test_a_report_of_progress_renews_the_time_of_a_call(call_mode: Any) -> None:
    entry = {**crooked("work", call="progress"), "timeout": 600}
    with MCPServers({"one": entry}) as servers:
        [work] = call_mode.call(servers, "tools")
        assert call_mode.invoke(work, {"steps": 4, "pause": 0.25}) == "arrived"

        entry = {**crooked("work", call="progress"), "timeout": 100}
    with MCPServers({"one": entry}) as servers:
        begun = monotonic()
        failed = failure(call_mode, servers, "mcp__one__work", steps=100, pause=0.05)
        assert monotonic() - begun < 3, "ten times its limit at most"
    assert failed.code == "timeout"


def test_what_a_tool_says_of_its_failure_is_shown_safely(call_mode: Any) -> None:
    with MCPServers({"one": crooked("query", call="error", env={"TOKEN": "s3cret-value"})}) as servers:
        failed = failure(call_mode, servers, "mcp__one__query")

    assert failed.code == "tool_failed"
    assert failed.text.startswith("no such row, says *** \\u202eevil\\x1b[31m")
    assert len(failed.text) == 10_000


def test_an_error_of_the_protocol_is_the_servers(call_mode: Any) -> None:
    with MCPServers({"one": crooked("query", call="refuse")}) as servers:
        failed = failure(call_mode, servers, "mcp__one__query")

    assert failed.code == "remote_failed"
    assert "not today" in failed.text


def test_an_answer_that_cannot_be_read_does_not_hang(call_mode: Any) -> None:
    with MCPServers({"one": crooked("query", call="garbage")}) as servers:
        assert failure(call_mode, servers, "mcp__one__query").code == "remote_failed"


def test_a_broken_promise_about_output_is_a_failure(call_mode: Any) -> None:
    output = {"type": "object", "properties": {"count": {"type": "integer"}}}
    with MCPServers({"one": crooked({**tool("count"), "outputSchema": output}, call="promise")}) as servers:
        failed = failure(call_mode, servers, "mcp__one__count")

    assert failed.code == "remote_failed"
    assert "count: 'many' is not of type 'integer'" in failed.text


def test_a_name_of_a_tool_writes_nothing_between_the_lines(call_mode: Any) -> None:
    entry = {**crooked("red\x1b[31m\u202e", call="silent"), "timeout": 100}
    with MCPServers({"one": entry}) as servers:
        [red] = call_mode.call(servers, "tools")
        with pytest.raises(ToolFailure) as raised:
            call_mode.invoke(red, {})

    assert "'red\\x1b[31m\\u202e' did not answer" in raised.value.text


def test_what_a_tool_says_reaches_the_model_whole(call_mode: Any) -> None:
    agent = agent_that_calls("mcp__one__query", {"one": crooked("query", call="error")})

    [result] = results(call_mode.invoke(agent, {"messages": "Go."}))

    assert len(result.content) > 10_000
    assert result.additional_kwargs["error_code"] == "tool_failed"


async def test_a_call_that_is_cancelled_is_cancelled_at_its_server() -> None:
    with MCPServers({"one": crooked("silent", "recall", call="silent")}) as servers:
        silent, recall = await servers.atools()
        waiting = asyncio.ensure_future(silent.ainvoke({}))
        await asyncio.wait({waiting}, timeout=0.3)
        waiting.cancel()
        await asyncio.wait({waiting})
        seen: list[Any] = []
        for _ in range(50):
            seen = json.loads(await recall.ainvoke({}))["cancelled"]
            if seen:
                break

    assert len(seen) == 1


def test_a_run_goes_on_when_its_servers_are_closed(call_mode: Any) -> None:
    servers = MCPServers({"one": crooked("echo")})
    agent = agent_that_calls("mcp__one__echo", servers)
    call_mode.call(servers, "tools")
    call_mode.call(servers, "close")

    [result] = results(call_mode.invoke(agent, {"messages": "Go."}))

    assert result.additional_kwargs["error_code"] == "not_supported"
    assert "closed" in result.content


def test_closed_servers_refuse(call_mode: Any) -> None:
    servers = MCPServers({"one": crooked("echo")})
    [echo] = call_mode.call(servers, "tools")
    call_mode.call(servers, "close")

    with pytest.raises(ToolFailure, match="closed") as raised:
        call_mode.invoke(echo, {})

    assert raised.value.code == "not_supported"


def test_a_server_that_is_not_there_is_an_invalid_argument(call_mode: Any) -> None:
    with MCPServers({"one": crooked("echo")}) as servers, pytest.raises(ToolFailure) as raised:
        call_mode.call(servers, "read_resource", "two", "x://y")

    assert (raised.value.code, raised.value.text) == (
        "invalid_argument",
        "there is no MCP server 'two'; there is 'one'",
    )
