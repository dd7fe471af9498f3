"""A run with limits that waits, breaks off or is killed goes on counting, and counts nothing twice."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from deepagents import CompiledSubAgent, Limits, create_deep_agent
from deepagents.testing import ScriptedModel, call
from tests.agents import crashes, killed
from tests.agents.runaways import GO, THREAD, Looking, Runaway, spent
from tests.conftest import Colour
from tests.savers import opened


def approved(requests: Sequence[Any]) -> Any:
    return {"decisions": [{"type": "approve"}] * len(requests)}


def led_to_its_end(colour: Colour, make: Callable[[], Any], *, one_by_one: bool = False) -> tuple[Any, int]:
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
        waiting = result["__interrupt__"][: 1 if one_by_one else None]
        given = Command(resume={each.id: approved(each.value["action_requests"]) for each in waiting})
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


@pytest.mark.parametrize("one_by_one", [False, True])
def test_subagents_that_ask_side_by_side_share_one_limit(colour: Colour, one_by_one: bool) -> None:
    looking = Looking()
    model = Runaway(width=3)
    options: Any = {"checkpointer": InMemorySaver(), "interrupt_on": {"look": True}}
    result, stops = led_to_its_end(
        colour,
        lambda: create_deep_agent(model, [looking.tool()], limits=Limits(model_calls=10), **options),
        one_by_one=one_by_one,
    )

    assert stops >= 3
    assert len(model.asked) <= 10 + 2
    assert spent(result)["model_calls"] == len(model.asked)
    assert spent(result)["tool_calls"] == len(looking.times) + 3


def test_a_subagent_that_remembers_does_not_count_its_past_again(colour: Colour) -> None:
    child = ScriptedModel(always=lambda asked: "Done." if asked.last == "seen 1" else call("look", at="1"))
    looking = Looking()
    inner = create_deep_agent(child, [looking.tool()], limits=Limits(model_calls=5), checkpointer=True)
    spec = CompiledSubAgent(name="child", description="d", runnable=inner)
    model = Runaway(child="child")
    agent = create_deep_agent(
        model, subagents=[spec], limits=Limits(model_calls=12), checkpointer=InMemorySaver()
    )
    result = colour.invoke(agent, GO, THREAD)

    assert len(model.asked) + len(child.asked) == 12
    assert spent(result)["model_calls"] == 12


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
    process = crashes.CONTEXT.Process(target=killed.work, args=(path, 4))
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
