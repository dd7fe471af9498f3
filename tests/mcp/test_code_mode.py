"""Programs call the tools of servers: their values come as they are, and time binds their calls."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

from deepagents import create_deep_agent
from deepagents.mcp import MCPServers
from deepagents.middleware import CodeModeMiddleware
from deepagents.testing import ScriptedModel, call
from tests.conftest import CallMode
from tests.mcp.servers import crooked, results

ASK = {"messages": "Go"}
THREAD: Any = {"configurable": {"thread_id": "one"}}


class Tide(BaseModel):
    port: str
    metres: float


class Sure(BaseModel):
    sure: bool


@pytest.fixture
def office() -> MCPServer:
    """A server in this process."""
    server = MCPServer("office")

    @server.tool()
    def tide(port: str) -> Tide:
        """Tell how high the tide gets."""
        return Tide(port=port, metres=len(port) + 0.5)

    @server.tool()
    async def delete_all(ctx: Context) -> str:
        """Delete all there is, if a person is sure."""
        answer = await ctx.elicit("Sure?", schema=Sure)
        return f"the answer was {answer.action}"

    return server


def run(code: str, servers: Any, mode: CallMode, **options: Any) -> Any:
    with ScriptedModel(call("run_code", code=code), "Done.") as model:
        agent = create_deep_agent(
            model, mcp=servers, middleware=[CodeModeMiddleware(**options)], checkpointer=InMemorySaver()
        )
        [answer] = results(mode.invoke(agent, ASK, THREAD))
    return answer


def test_structured_content_comes_as_a_value(office: MCPServer, call_mode: CallMode) -> None:
    code = """
import asyncio
ports = ("Brest", "Nice")
tides = await asyncio.gather(*[mcp__office__tide(port=port) for port in ports])
print(tool_help("mcp__office__tide").splitlines()[0])
sum(tide["metres"] for tide in tides)
"""
    with MCPServers({"office": office}) as servers:
        answer = run(code, servers, call_mode)

    assert answer.text == "mcp__office__tide: Tell how high the tide gets.\n10.0"


def test_a_question_of_a_server_is_cancelled_within_a_program(office: MCPServer, call_mode: CallMode) -> None:
    with MCPServers({"office": office}) as servers:
        answer = run("await mcp__office__delete_all()", servers, call_mode)

    assert "the answer was cancel" in answer.text


def test_a_call_that_is_cut_off_is_cancelled_at_its_server(call_mode: CallMode) -> None:
    with MCPServers({"slow": crooked("wait", "recall", call="silent")}) as servers:
        began = time.monotonic()
        answer = run("await mcp__slow__wait()", servers, call_mode, seconds=1)
        recall = next(each for each in call_mode.call(servers, "tools") if each.name.endswith("recall"))
        told = json.loads(call_mode.invoke(recall, {}))

    assert answer.additional_kwargs["error_code"] == "timeout"
    assert len(told["cancelled"]) == 1
    assert time.monotonic() - began < 15


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("await mcp__one__echo(city='Rome')", '{"city": "Rome"}'),
        ("f = mcp__one__echo\nawait f(city='Rome')", '{"city": "Rome"}'),
        ("tool_help('mcp__one__echo')", "no tool 'mcp__one__echo' that is known yet; describe it in another"),
    ],
)
def test_a_program_that_was_approved_finds_its_tools_in_another_process(
    code: str, words: str, call_mode: CallMode
) -> None:
    saver = InMemorySaver()

    def agent(model: Any, servers: Any) -> Any:
        return create_deep_agent(
            model,
            mcp=servers,
            middleware=[CodeModeMiddleware()],
            interrupt_on={"run_code": True},
            checkpointer=saver,
        )

    with MCPServers({"one": crooked("echo")}) as servers, ScriptedModel(call("run_code", code=code)) as model:
        call_mode.invoke(agent(model, servers), ASK, THREAD)
    with MCPServers({"one": crooked("echo")}) as servers, ScriptedModel("Done.") as model:
        approved: Any = Command(resume={"decisions": [{"type": "approve"}]})
        result = call_mode.invoke(agent(model, servers), approved, THREAD)

    assert words in results(result)[-1].text


def test_a_call_that_a_pattern_makes_wait_is_made_by_no_program(call_mode: CallMode) -> None:
    code = "await mcp__one__echo(city='Rome')"
    with (
        MCPServers({"one": crooked("echo")}) as servers,
        ScriptedModel(call("run_code", code=code), "Done.") as model,
    ):
        agent = create_deep_agent(
            model,
            mcp=servers,
            middleware=[CodeModeMiddleware()],
            interrupt_on={"mcp__one__*": True},
            checkpointer=InMemorySaver(),
        )
        [answer] = results(call_mode.invoke(agent, ASK, THREAD))

    assert "mcp__one__echo waits for a person, and a program cannot wait" in answer.text


def test_tools_of_servers_are_values_also_without_a_search(call_mode: CallMode) -> None:
    code = "f = mcp__one__echo\nprint(tool_help('mcp__one__echo').splitlines()[0])\nawait f(city='Rome')"
    with (
        MCPServers({"one": crooked("echo")}) as servers,
        ScriptedModel(call("run_code", code=code), "Done.") as model,
    ):
        agent = create_deep_agent(model, mcp=servers, middleware=[CodeModeMiddleware()], tool_search=False)
        [answer] = results(call_mode.invoke(agent, ASK, THREAD))

    assert answer.text == 'mcp__one__echo: A tool.\n{"city": "Rome"}'
    assert "search_tools" not in model.asked[0].tool_names
