"""Tools of servers are held back where they cost too much, and found like any others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

from deepagents import create_deep_agent
from deepagents.mcp import MCPServers
from deepagents.testing import ScriptedModel, call, prefix_breaks
from tests.conftest import CallMode
from tests.mcp.servers import crooked, results, tool

MANY = {**tool("row", "Return a row of the table of tides. " * 20), "repeat": 60}
SALES = tool("sales", "Return the turnover of a month.", month={"type": "string"})
ASK = {"messages": "Go"}


def test_tools_of_a_server_are_held_back_found_and_called(call_mode: CallMode) -> None:
    with (
        MCPServers({"big": crooked(MANY, SALES)}) as servers,
        ScriptedModel(
            call("search_tools", query="turnover in May", limit=1),
            call("mcp__big__sales", month="May"),
            call("mcp__big__row_7"),
            "Done.",
        ) as model,
    ):
        result = call_mode.invoke(create_deep_agent(model, mcp=servers), ASK)

    shown = [[name for name in each.tool_names if name.startswith("mcp__")] for each in model.asked]
    assert shown == [[], *[["mcp__big__sales"]] * 3]
    assert "big (61)" in str(model.asked[0].tools)
    assert [each.text for each in results(result)[1:]] == ['{"month": "May"}', "{}"]
    assert [each.number for each in prefix_breaks(model.asked)] == [1]


def test_a_server_whose_tools_are_never_held_back(call_mode: CallMode) -> None:
    entries = {"big": crooked(MANY), "small": {**crooked(SALES), "defer": False}}
    with MCPServers(entries) as servers, ScriptedModel("Done.") as model:
        call_mode.invoke(create_deep_agent(model, mcp=servers), ASK)

    assert [name for name in model.asked[0].tool_names if name.startswith("mcp__")] == ["mcp__small__sales"]
    assert "search_tools" in model.asked[0].tool_names


def test_few_tools_of_servers_are_shown(call_mode: CallMode) -> None:
    with MCPServers({"small": crooked(SALES)}) as servers, ScriptedModel("Done.") as model:
        call_mode.invoke(create_deep_agent(model, mcp=servers), ASK)

    assert "mcp__small__sales" in model.asked[0].tool_names
    assert "search_tools" not in model.asked[0].tool_names


def test_what_was_loaded_is_there_in_another_process(call_mode: CallMode) -> None:
    saver, thread = InMemorySaver(), {"configurable": {"thread_id": "one"}}

    def go_on(*script: Any) -> ScriptedModel:
        with MCPServers({"big": crooked(MANY, SALES)}) as servers, ScriptedModel(*script) as model:
            call_mode.invoke(create_deep_agent(model, mcp=servers, checkpointer=saver), ASK, thread)
        return model

    go_on(call("search_tools", query="select:mcp__big__sales"), "Loaded.")
    model = go_on(call("mcp__big__sales", month="May"), "Done.")
    assert model.asked[0].tool_names[-1] == "mcp__big__sales"


def test_a_subagent_with_servers_of_its_own_searches_these(call_mode: CallMode) -> None:
    own: Any = {
        "name": "clerk",
        "description": "Knows the numbers.",
        "system_prompt": "Count.",
        "mcp": {"big": crooked(MANY, SALES)},
    }
    with ScriptedModel(
        call("task", description="Count", subagent_type="clerk"),
        call("search_tools", query="turnover"),
        "Counted.",
        "Done.",
    ) as model:
        call_mode.invoke(create_deep_agent(model, subagents=[own]), ASK)

    assert ["search_tools" in each.tool_names for each in model.asked] == [False, True, True, False]
    assert "mcp__big__sales" in model.asked[2].tool_names


def test_no_file_of_servers_means_no_search(tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text('{"mcpServers": {}}')
    with ScriptedModel("Done.") as model:
        create_deep_agent(model, mcp=tmp_path / ".mcp.json").invoke(ASK)

    assert "search_tools" not in model.asked[0].tool_names
