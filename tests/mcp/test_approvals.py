"""Tools of servers wait for a person as any tool does, by name and by pattern."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from deepagents import create_deep_agent
from deepagents.errors import ConfigError
from deepagents.testing import ScriptedModel, call, calls
from tests.mcp.servers import crooked, results, tool

THREAD = {"configurable": {"thread_id": "one"}}


def asked(state: Any) -> list[str]:
    """Return the names of the calls that wait for a person."""
    return [each["name"] for each in state["__interrupt__"][0].value["action_requests"]]


@pytest.mark.parametrize(
    ("interrupt_on", "names"),
    [
        ({"mcp__*": True}, ["mcp__files__read", "mcp__files__write"]),
        ({"mcp__files__*": True, "mcp__files__read": False}, ["mcp__files__write"]),
        ({"mcp__*": True, "mcp__files__re*": False}, ["mcp__files__write"]),
        ({"mcp__files__write": True}, ["mcp__files__write"]),
    ],
)
def test_a_pattern_makes_calls_wait(call_mode: Any, interrupt_on: Any, names: list[str]) -> None:
    model = ScriptedModel(calls(("mcp__files__read", {}), ("mcp__files__write", {})), "Done.")
    agent = create_deep_agent(
        model,
        mcp={"files": crooked("read", "write")},
        interrupt_on=interrupt_on,
        checkpointer=InMemorySaver(),
    )

    state = call_mode.invoke(agent, {"messages": "Go."}, THREAD)
    assert asked(state) == names

    answer = {"decisions": [{"type": "reject", "message": "No."} for _ in names]}
    after = call_mode.invoke(agent, Command(resume=answer), THREAD)
    refused = [each.name for each in results(after) if each.status == "error"]
    assert sorted(refused) == sorted(names)


def test_what_a_server_says_of_its_tool_lifts_nothing(call_mode: Any) -> None:
    harmless = {**tool("write"), "annotations": {"readOnlyHint": True}}
    agent = create_deep_agent(
        ScriptedModel(call("mcp__files__write")),
        mcp={"files": crooked(harmless)},
        interrupt_on={"mcp__files__*": True},
        checkpointer=InMemorySaver(),
    )

    assert asked(call_mode.invoke(agent, {"messages": "Go."}, THREAD)) == ["mcp__files__write"]


@pytest.mark.parametrize("name", ["mcp__github__*", "mcp__github__create", "mcp_*", "*"])
def test_a_pattern_for_no_server_is_a_mistake(name: str) -> None:
    with pytest.raises(ConfigError):
        create_deep_agent(ScriptedModel(), mcp={"files": {"command": "x"}}, interrupt_on={name: True})


def test_a_subagent_that_would_not_ask_is_warned_of() -> None:
    subagent: Any = {"name": "helper", "description": "Helps.", "interrupt_on": {"ls": True}}

    with pytest.warns(UserWarning, match="'mcp__\\*' will run there without asking"):
        create_deep_agent(
            ScriptedModel(),
            mcp={"files": {"command": "x"}},
            interrupt_on={"mcp__*": True},
            subagents=[subagent],
        )
