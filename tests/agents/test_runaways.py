"""Agents that would go on for ever end at their limits, with what they have, and say so."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from deepagents import CompiledSubAgent, Limits, create_deep_agent
from deepagents.middleware.limits import LIMIT_REACHED
from deepagents.testing import Asked, ScriptedModel, call, calls
from tests.agents import crashes, killed
from tests.conftest import Colour
from tests.savers import opened

THREAD: Any = {"configurable": {"thread_id": "1"}}
GO: Any = {"messages": "Go"}
PROCESSES = crashes.CONTEXT


class Runaway(ScriptedModel):
    """Delegates where it can, so many at once, and calls tools forever where it cannot; or hangs up."""

    def __init__(self, width: int = 1, *, delegates: bool = True, hangs_up: Collection[int] = ()) -> None:
        count, lock = iter(range(1_000_000)), Lock()

        def answer(asked: Asked) -> AIMessage | Exception:
            with lock:
                number = next(count)
            if number in hangs_up:
                return ConnectionResetError("gone")
            if delegates and "task" in asked.tool_names:
                orders = [
                    ("task", {"description": f"{number}.{at}", "subagent_type": "general-purpose"})
                    for at in range(width)
                ]
                return calls(*orders, text=f"I hand on {number}.")
            return calls(
                *[("look", {"at": f"{number}.{at}"}) for at in range(width)], text=f"I look {number}."
            )

        super().__init__(always=answer)


class Looking:
    """A tool that counts how often it really ran."""

    def __init__(self) -> None:
        self.times: list[str] = []

    def tool(self) -> Callable[..., str]:
        def look(at: str) -> str:
            """Look."""
            self.times.append(at)
            return f"seen {at}"

        return look


def mark(result: Any) -> Any:
    return result["messages"][-1].additional_kwargs[LIMIT_REACHED]


def spent(result: Any) -> Any:
    return mark(result)["all_spent"]


@pytest.mark.parametrize("limits", [Limits(model_calls=7), Limits(tool_calls=7), Limits(repeats=7)])
def test_a_model_that_calls_ls_forever_ends_at_its_limit(colour: Colour, limits: Limits) -> None:
    model = ScriptedModel(always=lambda _: call("ls", path="/"))
    result = colour.invoke(create_deep_agent(model, limits=limits), {"messages": "Go"})

    last = result["messages"][-1]
    assert isinstance(last, AIMessage)
    assert "Stopped at a limit" in last.text
    assert "not finished" in last.text
    assert mark(result)["limit"] == 7
    assert len(model.asked) == (7 if limits.model_calls else 8)
    ran = [each for each in result["messages"] if each.type == "tool" and each.status == "success"]
    assert len(ran) == 7


@pytest.mark.parametrize("limits", [Limits(model_calls=9), Limits(tool_calls=9)])
def test_a_model_that_delegates_forever_ends_at_its_limit(colour: Colour, limits: Limits) -> None:
    looking = Looking()
    model = Runaway()
    result = colour.invoke(create_deep_agent(model, [looking.tool()], limits=limits), {"messages": "Go"})

    assert "Stopped at a limit" in result["messages"][-1].text
    assert "Last written: I hand on 0." in result["messages"][-1].text
    assert len(model.asked) <= 10
    assert spent(result)["tool_calls"] <= 9


def test_subagents_that_call_tools_forever_end_within_the_limit_of_all(colour: Colour) -> None:
    looking = Looking()
    model = Runaway(width=4)
    limits = Limits(model_calls=20, tool_calls=50)
    result = colour.invoke(create_deep_agent(model, [looking.tool()], limits=limits), {"messages": "Go"})

    reports = [each.text for each in result["messages"] if each.type == "tool"]
    assert len(reports) == 4
    assert all("Stopped at a limit" in each and "Last result: seen" in each for each in reports)
    assert len(model.asked) <= 20
    assert len(looking.times) + 4 <= 50
    assert mark(result)["kind"] in ("model_calls", "tool_calls")


@settings(max_examples=15)
@given(
    width=st.integers(1, 5),
    delegates=st.booleans(),
    models=st.none() | st.integers(1, 12),
    tools=st.none() | st.integers(1, 12),
    tokens=st.none() | st.integers(1, 20_000),
    awaited=st.booleans(),
)
def test_no_tree_goes_beyond_its_limits(
    width: int,
    delegates: bool,
    models: int | None,
    tools: int | None,
    tokens: int | None,
    awaited: bool,
) -> None:
    looking = Looking()
    model = Runaway(width, delegates=delegates)
    bounds: Any = {"model_calls": models, "tool_calls": tools, "tokens": tokens}
    if not any(bounds.values()):
        bounds["model_calls"] = 5
    agent = create_deep_agent(model, [looking.tool()], limits=Limits(**bounds))
    result = asyncio.run(agent.ainvoke(GO)) if awaited else agent.invoke(GO)

    last = result["messages"][-1]
    assert isinstance(last, AIMessage)
    assert not last.tool_calls
    assert len(model.asked) <= (bounds["model_calls"] or 100_000)
    assert len(looking.times) <= (tools or 100_000)
    said = spent(result)
    assert said["model_calls"] == len(model.asked)
    if tokens:
        assert said["tokens"] - tokens < 3_500 * width


def foreign(model: ScriptedModel, tools: Sequence[Any], name: str = "foreign") -> CompiledSubAgent:
    graph: Any = create_agent(model, tools=list(tools))
    return CompiledSubAgent(name=name, description="Works.", runnable=graph)


@pytest.mark.parametrize("limits", [Limits(model_calls=8), Limits(tool_calls=8)])
def test_a_compiled_subagent_that_knows_nothing_of_limits_is_stopped(colour: Colour, limits: Limits) -> None:
    looking = Looking()
    child = Runaway(delegates=False)
    order = call("task", description="Look", subagent_type="foreign")
    model = ScriptedModel(always=lambda _: order)
    agent = create_deep_agent(model, subagents=[foreign(child, [looking.tool()])], limits=limits)
    result = colour.invoke(agent, {"messages": "Go"})

    stopped = result["messages"][-2]
    assert stopped.additional_kwargs["error_code"] == "limit_reached"
    assert "Stopped at a limit" in result["messages"][-1].text
    assert len(model.asked) + len(child.asked) <= (limits.model_calls or 9)
    assert len(looking.times) <= 7


def test_a_model_inside_a_tool_counts(colour: Colour) -> None:
    inner = ScriptedModel(always=lambda _: "yes")

    def consult(question: str) -> str:
        """Ask another model."""
        return inner.invoke(question).text

    model = ScriptedModel(always=lambda asked: call("consult", question=str(len(asked.messages))))
    agent = create_deep_agent(model, [consult], limits=Limits(model_calls=7))
    result = colour.invoke(agent, {"messages": "Go"})

    assert spent(result)["model_calls"] == 7
    assert (len(model.asked), len(inner.asked)) == (4, 3)


def led_to_its_end(colour: Colour, make: Callable[[], Any]) -> tuple[Any, int]:
    """Approve everything, and go on after each failure, with an agent made anew each time."""
    given: Any = {"messages": "Go"}
    for stops in range(40):
        try:
            result = colour.invoke(make(), given, {**THREAD}, durability="sync")
        except ConnectionResetError:
            given = None
            continue
        if "__interrupt__" not in result:
            return result, stops
        given = Command(resume={"decisions": [{"type": "approve"}]})
    raise AssertionError("it never ended")


def test_approvals_neither_forget_what_was_spent_nor_count_it_twice(colour: Colour, tmp_path: Path) -> None:
    looking = Looking()
    model = Runaway(delegates=False)
    with opened("sqlite", colour, str(tmp_path / "c.sqlite")) as saver:
        options: Any = {"checkpointer": saver, "interrupt_on": {"look": True}}
        result, stops = led_to_its_end(
            colour,
            lambda: create_deep_agent(model, [looking.tool()], limits=Limits(model_calls=6), **options),
        )

    assert stops == len(model.asked) == len(looking.times) == 6
    assert spent(result)["model_calls"] == 6
    assert spent(result)["tool_calls"] == 6


def test_a_subagent_that_asks_goes_on_counting_for_the_whole(colour: Colour) -> None:
    looking = Looking()
    model = Runaway()
    options: Any = {"checkpointer": InMemorySaver(), "interrupt_on": {"look": True}}
    result, stops = led_to_its_end(
        colour, lambda: create_deep_agent(model, [looking.tool()], limits=Limits(model_calls=6), **options)
    )

    assert stops == 5
    assert len(model.asked) == 6
    assert spent(result)["model_calls"] == 6
    assert spent(result)["tool_calls"] == len(looking.times) + 1


def test_a_run_that_breaks_off_goes_on_counting(colour: Colour, tmp_path: Path) -> None:
    looking = Looking()
    model = Runaway(delegates=False, hangs_up={4, 10})
    with opened("sqlite", colour, str(tmp_path / "c.sqlite")) as saver:
        result, stops = led_to_its_end(
            colour,
            lambda: create_deep_agent(
                model, [looking.tool()], checkpointer=saver, limits=Limits(model_calls=10)
            ),
        )

    assert stops == 2
    assert len(model.asked) == 10 + stops
    assert len(looking.times) == 10
    assert spent(result)["model_calls"] == 10
    assert spent(result)["tool_calls"] == 10


def test_a_run_whose_process_is_killed_goes_on_counting(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    process = PROCESSES.Process(target=killed.work, args=(path, 4))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL

    result = killed.work(path)
    assert killed.Noted(path).requests == 8 + 1
    assert spent(result)["model_calls"] == 8
    assert spent(result)["tool_calls"] == 8


def test_each_message_has_a_budget_of_its_own_and_a_thread_can_have_one(colour: Colour) -> None:
    for limits, expected in (
        (Limits(model_calls=3), [3, 6]),
        (Limits(model_calls=3, per="thread"), [3, 3]),
    ):
        model = Runaway(delegates=False)
        agent = create_deep_agent(model, [Looking().tool()], checkpointer=InMemorySaver(), limits=limits)
        counts: list[int] = []
        for _ in range(2):
            result = colour.invoke(agent, {"messages": "Go"}, THREAD)
            assert "Stopped" in result["messages"][-1].text
            counts.append(len(model.asked))
        assert counts == expected
