"""What servers return reaches the model as what it is, and programs as they sent it."""

from __future__ import annotations

import base64
import json
from typing import Any

import mcp_types as types
import pytest
from langgraph.checkpoint.memory import InMemorySaver
from mcp.server.mcpserver import MCPServer

from deepagents import create_deep_agent
from deepagents.events import ToolProgress
from deepagents.mcp import MCPServers
from deepagents.testing import ScriptedModel, call
from tests.mcp.servers import agent_that_calls, crooked, results

DATA = base64.b64encode(b"data").decode()
TEXT = types.TextContent(text="one")
FILE = types.BlobResourceContents(uri="x://file", blob=DATA, mime_type="application/pdf")
PAGE = types.TextResourceContents(uri="x://page", text="two")
CASES: dict[str, tuple[list[Any], Any]] = {
    "texts": ([TEXT, types.EmbeddedResource(resource=PAGE)], "one\ntwo"),
    "nothing": ([], "The tool returned nothing."),
    "link": (
        [types.ResourceLink(uri="x://page", name="page", description="a page")],
        "[resource page at x://page: a page]",
    ),
    "image": (
        [TEXT, types.ImageContent(data=DATA, mime_type="image/png")],
        [{"type": "text", "text": "one"}, {"type": "image", "base64": DATA, "mime_type": "image/png"}],
    ),
    "file": (
        [types.EmbeddedResource(resource=FILE)],
        [{"type": "file", "base64": DATA, "mime_type": "application/pdf"}],
    ),
    "audio": (
        [types.AudioContent(data=DATA, mime_type="audio/wav")],
        [{"type": "audio", "base64": DATA, "mime_type": "audio/wav"}],
    ),
    "broken": (
        [types.ImageContent(data="no base64!", mime_type="image/png")],
        "[data that is not valid base64, or of a kind that is not valid]",
    ),
}


def server_of(content: list[Any], structured: Any = None) -> MCPServer:
    server = MCPServer("one")

    def get() -> types.CallToolResult:
        return types.CallToolResult(content=content, structured_content=structured)

    server.add_tool(get)
    return server


@pytest.mark.parametrize("kind", CASES)
def test_content_reaches_the_model_as_what_it_is(call_mode: Any, kind: str) -> None:
    content, expected = CASES[kind]
    agent = agent_that_calls("mcp__one__get", {"one": server_of(content)})

    [result] = results(call_mode.invoke(agent, {"messages": "Go."}))

    assert result.content == expected


def test_structured_content_is_for_programs_and_shown_if_there_is_nothing_else() -> None:
    both = agent_that_calls("mcp__one__get", {"one": server_of([TEXT], {"rows": 1})})
    alone = agent_that_calls("mcp__one__get", {"one": server_of([], {"rows": 1})})

    shown = [results(each.invoke({"messages": "Go."}))[0] for each in (both, alone)]

    assert [each.content for each in shown] == ["one", '{"rows": 1}']
    assert [each.artifact["structured_content"] for each in shown] == [{"rows": 1}] * 2


def test_numbers_that_no_checkpoint_takes_are_texts_for_programs(call_mode: Any) -> None:
    model = ScriptedModel(call("mcp__one__sum"), "Done.")
    mcp = {"one": crooked("sum", call="numbers")}
    agent = create_deep_agent(model, mcp=mcp, checkpointer=InMemorySaver())

    [result] = results(call_mode.invoke(agent, {"messages": "Go."}, {"configurable": {"thread_id": "1"}}))

    wanted = {"sum": str(2**70), "parts": [str(-(2**70)), 2**64 - 1, True, 1.5]}
    assert result.artifact["structured_content"] == wanted


def test_a_large_text_moves_to_a_file(call_mode: Any) -> None:
    agent = agent_that_calls("mcp__one__read", {"one": crooked("read", call="huge")}, size=200_000)

    [result] = results(call_mode.invoke(agent, {"messages": "Go."}))

    assert len(result.content) < 20_000
    assert "/large_tool_results/" in result.content


def test_progress_is_an_event_ten_times_a_second_at_most(call_mode: Any) -> None:
    agent = agent_that_calls("mcp__one__work", {"one": crooked("work", call="progress")}, steps=1000)

    seen = call_mode.observe(agent, {"messages": "Go."})
    events = [each for each in seen if isinstance(each, ToolProgress)]

    assert 1 <= len(events) < 30
    first = events[0]
    assert (first.name, first.progress, first.total) == ("mcp__one__work", 0.0, 1000.0)
    assert first.message == "\\u202eevil\\x1b[31m"


def resourceful() -> MCPServer:
    server = MCPServer("library")

    @server.resource("x://readme")
    def readme() -> str:
        """What there is."""
        return "Read me."

    @server.resource("x://books/{title}")
    def book(title: str) -> str:
        """A book."""
        return f"About {title}."

    @server.prompt()
    def greet(name: str) -> str:
        """Greet."""
        return f"Say hello to {name}."

    _ = readme, book, greet
    return server


def test_resources_are_listed_and_read_by_tools_where_there_are_any(call_mode: Any) -> None:
    with MCPServers({"library": resourceful(), "other": crooked("echo")}) as servers:
        tools = {each.name: each for each in call_mode.call(servers, "tools")}
        listed = call_mode.invoke(tools["list_mcp_resources"], {})
        read = call_mode.invoke(tools["read_mcp_resource"], {"server": "library", "uri": "x://books/whales"})
    with MCPServers({"other": crooked("echo")}) as without:
        assert [each.name for each in call_mode.call(without, "tools")] == ["mcp__other__echo"]

    rows = [json.loads(line) for line in listed.splitlines()]
    assert [(row["server"], row.get("uri") or row["uriTemplate"]) for row in rows] == [
        ("library", "x://readme"),
        ("library", "x://books/{title}"),
    ]
    assert read == "About whales."


def test_programs_read_resources_and_prompts(call_mode: Any) -> None:
    with MCPServers({"library": resourceful()}) as servers:
        blocks = call_mode.call(servers, "read_resource", "library", "x://readme")
        [row] = call_mode.call(servers, "prompts")
        [message] = call_mode.call(servers, "get_prompt", "library", "greet", {"name": "Ada"})

    assert blocks == [{"type": "text", "text": "Read me."}]
    assert (row["server"], row["name"], row["arguments"][0]["name"]) == ("library", "greet", "name")
    assert (message.type, message.text) == ("human", "Say hello to Ada.")


@pytest.mark.parametrize(
    ("does", "given", "said"),
    [
        ("half", "half", "half \ufffd"),
        ("echo", "half \ud83d", json.dumps({"of": "half \ufffd"})),
        ("echo", "whole \U0001f600", json.dumps({"of": "whole \U0001f600"})),
    ],
    ids=["result", "call", "whole"],
)
def test_half_a_character_is_replaced_in_results_and_in_calls(
    call_mode: Any, does: str, given: str, said: str
) -> None:
    agent = agent_that_calls("mcp__one__get", {"one": crooked("get", call=does)}, of=given)

    [result] = results(call_mode.invoke(agent, {"messages": "Go."}))
    assert result.content == said
