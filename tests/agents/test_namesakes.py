"""Two tools of one name in an agent: said, or refused where a safeguard or a subagent would be lost."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware, ShellToolMiddleware, TodoListMiddleware
from langchain_core.tools import BaseTool, tool

from deepagents import (
    FilesystemMiddleware,
    FilesystemPermission,
    HarnessProfile,
    SubAgentMiddleware,
    create_deep_agent,
    register_harness_profile,
)
from deepagents.backends import LocalShellBackend
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


def said_about(**given: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        create_deep_agent(ScriptedModel(), **given)
    assert {each.filename for each in said} <= {__file__}
    return [str(each.message) for each in said]


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        ({"tools": [named("ls")]}, ["the agent: 'ls' of tools=", "of FilesystemMiddleware"]),
        ({"tools": [named("task")]}, ["'task' of tools=", "of SubAgentMiddleware"]),
        ({"tools": [named("write_todos")]}, ["'write_todos' of tools=", "of TodoListMiddleware"]),
        (
            {"middleware": [Bringing("Mine", named("ls"), named("grep"))]},
            ["'ls', 'grep' of Mine stand in", "of FilesystemMiddleware"],
        ),
        ({"middleware": [other()]}, ["'task' of Other", "of SubAgentMiddleware"]),
        ({"middleware": [Bringing("Mine", named("a"))], "tools": [named("a")]}, ["'a' of tools=", "of Mine"]),
        ({"tools": [named("a"), named("a")]}, ["'a' of tools=", "the same of tools="]),
    ],
)
def test_a_tool_in_the_place_of_another_is_said(given: dict[str, Any], parts: list[str]) -> None:
    (said,) = said_about(**given)

    assert all(part in said for part in [*parts, "another name"])


def test_what_was_said_of_the_agent_is_not_said_of_each_subagent() -> None:
    subagents = [helper(), helper(name="forked", mode="fork"), helper(name="own", tools=[named("glob")])]
    said = [each for each in said_about(tools=[named("ls")], subagents=subagents) if "stands" in each]

    assert [each[: each.index(" of ")] for each in said] == ["the agent: 'ls'", "subagent 'own': 'glob'"]


def test_tools_that_are_no_others_are_not_spoken_of(tmp_path: Path) -> None:
    mine = named("mine")
    quiet: list[dict[str, Any]] = [
        {"tools": [mine], "middleware": [Bringing("Mine", mine)]},
        {"middleware": [Bringing("FilesystemMiddleware", named("ls"))]},
        {"middleware": [TodoListMiddleware()]},
        {"middleware": [ShellToolMiddleware(workspace_root=tmp_path)]},
        {"tools": [named("execute")]},
        {"tools": [named("ls")], "middleware": [FilesystemMiddleware(tools=["read_file"])]},
        {"middleware": [SubAgentMiddleware(subagents=[helper(model=ScriptedModel("x"), tools=[])])]},
    ]

    assert [said_about(**given) for given in quiet] == [[]] * len(quiet)


def test_a_tool_in_the_place_of_commands_is_said_where_there_are_commands(tmp_path: Path) -> None:
    (said,) = said_about(tools=[named("execute")], backend=LocalShellBackend(root_dir=tmp_path))

    assert "'execute' of tools=" in said


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


def test_a_tool_that_no_rule_speaks_of_is_only_warned_about() -> None:
    (said,) = said_about(tools=[named("write_file")], permissions=SECRET)

    assert "'write_file' of tools=" in said


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
    with pytest.raises(StackError, match=r"nobody could reach the subagents of the agent: .* rename it"):
        create_deep_agent(ScriptedModel(), **given)


def test_the_later_tool_is_the_one_that_answers() -> None:
    with pytest.warns(match="'ls'"), ScriptedModel(call("ls"), "Done.") as model:
        result = create_deep_agent(model, tools=[named("ls")]).invoke({"messages": "Look"})

    assert result["messages"][-2].text == "mine"
