"""Agents that would go on for ever end at their limits, with what they have, and say so."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.messages import AIMessage

from deepagents import CompiledSubAgent, Limits, create_deep_agent
from deepagents.middleware.limits import LimitsMiddleware
from deepagents.testing import ScriptedModel, call
from tests.agents.runaways import GO, Looking, Runaway, mark, spent
from tests.conftest import CallMode


@pytest.mark.parametrize("limits", [Limits(model_calls=7), Limits(tool_calls=7), Limits(repeats=7)])
def test_a_model_that_calls_ls_forever_ends_at_its_limit(call_mode: CallMode, limits: Limits) -> None:
    model = ScriptedModel(always=lambda _: call("ls", path="/"))
    result = call_mode.invoke(create_deep_agent(model, limits=limits), {"messages": "Go"})

    last = result["messages"][-1]
    assert isinstance(last, AIMessage)
    assert "Stopped at a limit" in last.text
    assert "not finished" in last.text
    assert mark(result)["limit"] == 7
    assert len(model.asked) == (7 if limits.model_calls else 8)
    ran = [each for each in result["messages"] if each.type == "tool" and each.status == "success"]
    assert len(ran) == 7


@pytest.mark.parametrize("limits", [Limits(model_calls=9), Limits(tool_calls=9)])
def test_a_model_that_delegates_forever_ends_at_its_limit(limits: Limits) -> None:
    looking = Looking()
    model = Runaway()
    result = create_deep_agent(model, [looking.tool()], limits=limits).invoke({"messages": "Go"})

    assert "Stopped at a limit" in result["messages"][-1].text
    assert "Last written: I hand on 0." in result["messages"][-1].text
    assert len(model.asked) <= 10
    assert spent(result)["tool_calls"] <= 9


def test_subagents_that_call_tools_forever_end_within_the_limit_of_all() -> None:
    looking = Looking()
    model = Runaway(width=4)
    limits = Limits(model_calls=20, tool_calls=50)
    result = create_deep_agent(model, [looking.tool()], limits=limits).invoke({"messages": "Go"})

    reports = [each.text for each in result["messages"] if each.type == "tool"]
    assert len(reports) == 4
    assert all("Stopped at a limit" in each and "Last result: seen" in each for each in reports)
    assert len(model.asked) <= 20
    assert len(looking.times) + 4 <= 50
    assert mark(result)["kind"] in ("model_calls", "tool_calls")


def tree(model: ScriptedModel, tool: Any, depth: int, limits: Limits | None, nested: Limits | None) -> Any:
    """Make an agent that delegates to agents that delegate, each level compiled by itself."""
    if depth == 0:
        return create_agent(model, [tool], middleware=[LimitsMiddleware(limits)] if limits else [])
    below = tree(model, tool, depth - 1, nested, nested)
    child = CompiledSubAgent(name="general-purpose", description="Works.", runnable=below)
    return create_deep_agent(model, [tool], subagents=[child], limits=limits)


@pytest.mark.slow
@settings(max_examples=20)
@given(
    width=st.integers(1, 4),
    depth=st.integers(0, 3),
    nested=st.none() | st.integers(1, 30),
    models=st.none() | st.integers(1, 12),
    tools=st.none() | st.integers(1, 12),
    tokens=st.none() | st.integers(1, 20_000),
    awaited=st.booleans(),
)
def test_no_tree_goes_beyond_its_limits(
    width: int,
    depth: int,
    nested: int | None,
    models: int | None,
    tools: int | None,
    tokens: int | None,
    awaited: bool,
) -> None:
    looking = Looking()
    model = Runaway(width)
    bounds: Any = {"model_calls": models, "tool_calls": tools, "tokens": tokens}
    if not any(bounds.values()):
        bounds["model_calls"] = 5
    agent = tree(
        model, looking.tool(), depth, Limits(**bounds), Limits(model_calls=nested) if nested else None
    )
    result = asyncio.run(agent.ainvoke(GO)) if awaited else agent.invoke(GO)

    last = result["messages"][-1]
    assert isinstance(last, AIMessage)
    assert not last.tool_calls
    assert len(model.asked) <= (bounds["model_calls"] or 100_000)
    assert len(looking.times) <= (tools or 100_000)
    said = spent(result)
    assert said.get("model_calls", 0) == len(model.asked)
    if tokens:
        assert said.get("tokens", 0) - tokens < 3_500 * width


def foreign(model: ScriptedModel, tools: Sequence[Any], name: str = "foreign") -> CompiledSubAgent:
    graph: Any = create_agent(model, tools=list(tools))
    return CompiledSubAgent(name=name, description="Works.", runnable=graph)


@pytest.mark.parametrize("limits", [Limits(model_calls=8), Limits(tool_calls=8)])
def test_a_compiled_subagent_that_knows_nothing_of_limits_is_stopped(
    call_mode: CallMode, limits: Limits
) -> None:
    looking = Looking()
    child = Runaway(delegates=False)
    order = call("task", description="Look", subagent_type="foreign")
    model = ScriptedModel(always=lambda _: order)
    agent = create_deep_agent(model, subagents=[foreign(child, [looking.tool()])], limits=limits)
    result = call_mode.invoke(agent, {"messages": "Go"})

    stopped = result["messages"][-2]
    assert stopped.additional_kwargs["error_code"] == "limit_reached"
    assert "Stopped at a limit" in result["messages"][-1].text
    assert len(model.asked) + len(child.asked) <= (limits.model_calls or 9)
    assert len(looking.times) <= 7


def test_a_model_inside_a_tool_counts() -> None:
    inner = ScriptedModel(always=lambda _: "yes")

    def consult(question: str) -> str:
        """Ask another model."""
        return inner.invoke(question).text

    model = ScriptedModel(always=lambda asked: call("consult", question=str(len(asked.messages))))
    agent = create_deep_agent(model, [consult], limits=Limits(model_calls=7))
    result = agent.invoke({"messages": "Go"})

    assert spent(result)["model_calls"] == 7
    assert (len(model.asked), len(inner.asked)) == (4, 3)
