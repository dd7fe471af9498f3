"""A limit on the steps of a run holds for its subagents too."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent

from deepagents import CompiledSubAgent, create_deep_agent
from deepagents.testing import Asked, ScriptedModel, call
from tests.conftest import CallMode

LOOK = call("ls", path="/")


def looping() -> ScriptedModel:
    return ScriptedModel(always=lambda _: LOOK)


def child(limit: int | None) -> Any:
    if limit is None:
        return {"name": "child", "description": "loops", "model": looping()}
    graph: Any = create_agent(looping(), tools=[ls]).with_config({"recursion_limit": limit})
    return CompiledSubAgent(name="child", description="loops", runnable=graph)


def ls(path: str) -> str:
    """List."""
    return path


@pytest.mark.parametrize(("own", "parents"), [(None, 20), (10, 30), (30, 10)])
def test_the_lower_limit_ends_a_subagent_and_not_the_run(
    call_mode: CallMode, own: int | None, parents: int
) -> None:
    spec = child(own)
    with ScriptedModel(call("task", description="Loop", subagent_type="child"), "I see.") as model:
        agent = create_deep_agent(model, subagents=[spec])
        result = call_mode.invoke(agent, {"messages": "Go"}, {"recursion_limit": parents})

    ended = result["messages"][-2]
    assert ended.status == "error"
    assert f"Recursion limit of {min(own or parents, parents)} reached" in ended.text


def test_without_a_limit_of_the_caller_a_subagent_works_long(call_mode: CallMode) -> None:
    def working(asked: Asked) -> Any:
        return LOOK if len(asked.messages) < 90 else "done"

    spec: Any = {"name": "child", "description": "d", "model": ScriptedModel(always=working)}
    with ScriptedModel(call("task", description="Work", subagent_type="child"), "I see.") as model:
        result = call_mode.invoke(create_deep_agent(model, subagents=[spec]), {"messages": "Go"})

    assert result["messages"][-2].text == "done"
