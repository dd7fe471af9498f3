"""Two tools of one name in an agent: the later one runs, unless a safeguard or a subagent would be lost."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain_core.tools import BaseTool, tool

from deepagents import (
    FilesystemMiddleware,
    FilesystemPermission,
    HarnessProfile,
    SubAgentMiddleware,
    create_deep_agent,
    register_harness_profile,
)
from deepagents.errors import StackError
from deepagents.testing import ScriptedModel, call

SECRET = [FilesystemPermission(operations=["read"], paths=["/secret"], mode="deny")]


def named(name: str) -> BaseTool:
    return tool(name, description="Mine.")(lambda: "mine")


class Bringing(AgentMiddleware[Any, Any, Any]):
    """Middleware that brings tools."""

    def __init__(self, name: str, *tools: BaseTool) -> None:
        super().__init__()
        self._name, self.tools = name, list(tools)

    @property
    def name(self) -> str:
        return self._name


class Other(SubAgentMiddleware):
    """Delegates under a name of its own."""

    @property
    def name(self) -> str:
        return "Other"


def helper(**more: Any) -> Any:
    return {"name": "helper", "description": "helps", **more}


def other() -> Other:
    return Other(subagents=[helper(name="mine", model=ScriptedModel("Mine."), tools=[])])


def test_what_a_profile_puts_in_a_place_or_leaves_out_is_meant() -> None:
    extra = Bringing("Extra", named("ls"))
    register_harness_profile(
        "namesakes", HarnessProfile(extra_middleware=[extra], excluded_tools=frozenset({"grep"}))
    )
    with warnings.catch_warnings(), ScriptedModel("Hi.", provider="namesakes") as model:
        warnings.simplefilter("error")
        create_deep_agent(model, tools=[named("grep")]).invoke({"messages": "Hi"})

    assert "grep" not in model.asked[0].tool_names


@pytest.mark.parametrize(
    "given",
    [
        {"tools": [named("read_file")], "permissions": SECRET},
        {"tools": [named("grep")], "middleware": [FilesystemMiddleware(permissions=SECRET)]},
        {"middleware": [Bringing("Mine", named("ls"))], "permissions": SECRET},
        {"subagents": [helper(tools=[named("read_file")])], "permissions": SECRET},
        {"subagents": [helper(tools=[named("ls")], permissions=SECRET)]},
    ],
)
def test_a_tool_that_would_go_round_permissions_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(StackError, match=r"permissions, which do not bind .* rename it"):
        create_deep_agent(ScriptedModel(), **given)


@pytest.mark.parametrize(
    "given",
    [
        {"tools": [named("task")], "subagents": [helper()]},
        {"middleware": [other()], "subagents": [helper()]},
        {"middleware": [other(), SubAgentMiddleware(subagents=[helper(model=ScriptedModel(), tools=[])])]},
        {
            "tools": [named("check_async_task")],
            "subagents": [helper(graph_id="far", url="http://127.0.0.1:1")],
        },
    ],
)
def test_a_tool_that_would_leave_subagents_out_of_reach_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(StackError, match=r"subagents of the agent could not be reached: .* rename it"):
        create_deep_agent(ScriptedModel(), **given)


def test_the_later_tool_is_the_one_that_answers() -> None:
    with ScriptedModel(call("ls"), "Done.") as model:
        result = create_deep_agent(model, tools=[named("ls")]).invoke({"messages": "Look"})

    assert result["messages"][-2].text == "mine"
