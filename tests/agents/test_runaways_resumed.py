"""A run with limits that waits, breaks off or is killed goes on counting, and counts nothing twice."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from deepagents import CompiledSubAgent, Limits, create_deep_agent
from deepagents.testing import Asked, ScriptedModel, call, calls
from tests.agents import killed
from tests.agents.runaways import GO, THREAD, Looking, Runaway, mark, spent
from tests.conftest import CallMode
from tests.programs import FORKING
from tests.savers import opened


def approved(requests: Sequence[Any]) -> Any:
    return {"decisions": [{"type": "approve"}] * len(requests)}


def led_to_its_end(
    call_mode: CallMode, make: Callable[[], Any], *, one_by_one: bool = False
) -> tuple[Any, int]:
    """Approve everything, and go on after each failure, with an agent made anew each time."""
    given: Any = {"messages": "Go"}
    for stops in range(40):
        try:
            result = call_mode.invoke(make(), given, {**THREAD}, durability="sync")
        except ConnectionResetError:
            given = None
            continue
        if "__interrupt__" not in result:
            return result, stops
        waiting = result["__interrupt__"][: 1 if one_by_one else None]
        given = Command(resume={each.id: approved(each.value["action_requests"]) for each in waiting})
    raise AssertionError("it never ended")


def test_approvals_neither_forget_what_was_spent_nor_count_it_twice(
    call_mode: CallMode, tmp_path: Path
) -> None:
    looking = Looking()
    model = Runaway(delegates=False)
    with opened("sqlite", call_mode, str(tmp_path / "c.sqlite")) as saver:
        options: Any = {"checkpointer": saver, "interrupt_on": {"look": True}}
        result, stops = led_to_its_end(
            call_mode,
            lambda: create_deep_agent(model, [looking.tool()], limits=Limits(model_calls=6), **options),
        )

    assert stops == len(model.asked) == len(looking.times) == 6
    assert spent(result)["model_calls"] == 6
    assert spent(result)["tool_calls"] == 6


def test_a_subagent_that_asks_goes_on_counting_for_the_whole(call_mode: CallMode) -> None:
    looking = Looking()
    model = Runaway()
    options: Any = {"checkpointer": InMemorySaver(), "interrupt_on": {"look": True}}
    result, stops = led_to_its_end(
        call_mode, lambda: create_deep_agent(model, [looking.tool()], limits=Limits(model_calls=6), **options)
    )

    assert stops == 5
    assert len(model.asked) == 6
    assert spent(result)["model_calls"] == 6
    assert spent(result)["tool_calls"] == len(looking.times) + 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call_mode", "one_by_one"), [("sync", False), ("async", True)], indirect=["call_mode"]
)
def test_subagents_that_ask_side_by_side_share_one_limit(call_mode: CallMode, one_by_one: bool) -> None:
    looking = Looking()
    model = Runaway(width=3)
    options: Any = {"checkpointer": InMemorySaver(), "interrupt_on": {"look": True}}
    result, stops = led_to_its_end(
        call_mode,
        lambda: create_deep_agent(model, [looking.tool()], limits=Limits(model_calls=10), **options),
        one_by_one=one_by_one,
    )

    assert stops >= 3
    assert len(model.asked) <= 10
    assert spent(result)["model_calls"] == len(model.asked)
    assert spent(result)["tool_calls"] == len(looking.times) + 3


def test_a_subagent_that_remembers_does_not_count_its_past_again() -> None:
    child = ScriptedModel(always=lambda asked: "Done." if asked.last == "seen 1" else call("look", at="1"))
    looking = Looking()
    inner = create_deep_agent(child, [looking.tool()], limits=Limits(model_calls=5), checkpointer=True)
    spec = CompiledSubAgent(name="child", description="d", runnable=inner)
    model = Runaway(child="child")
    agent = create_deep_agent(
        model, subagents=[spec], limits=Limits(model_calls=12), checkpointer=InMemorySaver()
    )
    result = agent.invoke(GO, THREAD)

    assert len(model.asked) + len(child.asked) == 12
    assert spent(result)["model_calls"] == 12


def test_a_run_that_breaks_off_goes_on_counting(call_mode: CallMode, tmp_path: Path) -> None:
    looking = Looking()
    model = Runaway(delegates=False, hangs_up={4, 9})
    with opened("sqlite", call_mode, str(tmp_path / "c.sqlite")) as saver:
        result, stops = led_to_its_end(
            call_mode,
            lambda: create_deep_agent(
                model, [looking.tool()], checkpointer=saver, limits=Limits(model_calls=10)
            ),
        )

    assert stops == 2
    assert len(model.asked) == 10
    assert len(looking.times) == 10 - stops
    assert spent(result)["model_calls"] == 10
    assert spent(result)["tool_calls"] == 10 - stops


def test_a_run_whose_process_is_killed_goes_on_counting(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    process = FORKING.Process(target=killed.work, args=(path, 4))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL

    result = killed.work(path)
    assert killed.Noted(path).requests == 8 + 1
    assert spent(result)["model_calls"] == 8
    assert spent(result)["tool_calls"] == 8


def test_what_a_subagent_had_saved_counts_when_its_process_ended_suddenly() -> None:
    requests: list[Asked] = []

    def answer(asked: Asked) -> AIMessage:
        requests.append(asked)
        if len(requests) == 5:
            raise KeyboardInterrupt
        if "task" in asked.tool_names:
            return call("task", description="Look", subagent_type="general-purpose")
        return call("look", at=str(len(requests)))

    looking, saver = Looking(), InMemorySaver()

    def agent() -> Any:
        options: Any = {"limits": Limits(model_calls=8), "checkpointer": saver}
        return create_deep_agent(ScriptedModel(always=answer), [looking.tool()], **options)

    with pytest.raises(KeyboardInterrupt):
        agent().invoke(GO, THREAD, durability="sync")
    result = agent().invoke(None, THREAD, durability="sync")

    assert len(requests) == 8 + 1
    assert spent(result)["model_calls"] == 8
    assert spent(result)["tool_calls"] == len(looking.times) + 1


def test_each_message_has_a_budget_of_its_own_and_a_thread_can_have_one() -> None:
    for limits, expected in (
        (Limits(model_calls=3), [3, 6]),
        (Limits(model_calls=3, per="thread"), [3, 3]),
    ):
        model = Runaway(delegates=False)
        agent = create_deep_agent(model, [Looking().tool()], checkpointer=InMemorySaver(), limits=limits)
        counts: list[int] = []
        for _ in range(2):
            result = agent.invoke({"messages": "Go"}, THREAD)
            assert "Stopped" in result["messages"][-1].text
            counts.append(len(model.asked))
        assert counts == expected


@pytest.mark.parametrize("per", ["message", "thread"])
def test_a_model_that_always_fails_is_stopped_however_often_it_is_taken_up(
    call_mode: CallMode, per: Any
) -> None:
    model = ScriptedModel(always=lambda _: ConnectionResetError("gone"))
    agent = create_deep_agent(
        model, limits=Limits(model_calls=3, per=per), model_retries=0, checkpointer=InMemorySaver()
    )
    result, stops = led_to_its_end(call_mode, lambda: agent)

    assert stops == len(model.asked) == 3
    assert spent(result)["model_calls"] == 3


def test_the_time_of_a_subagent_that_asks_counts_for_the_whole(call_mode: CallMode) -> None:
    def slow(asked: Asked) -> AIMessage:
        Event().wait(0.1)
        return call("look", at=str(len(asked.messages)))

    looking = Looking()
    child: Any = {
        "name": "child",
        "description": "d",
        "system_prompt": "",
        "model": ScriptedModel(always=slow),
    }
    model = ScriptedModel(always=lambda _: call("task", description="Look", subagent_type="child"))
    options: Any = {"checkpointer": InMemorySaver(), "interrupt_on": {"look": True}, "subagents": [child]}
    result, stops = led_to_its_end(
        call_mode, lambda: create_deep_agent(model, [looking.tool()], limits=Limits(seconds=0.35), **options)
    )

    assert stops <= 4
    assert mark(result)["kind"] == "seconds"
    assert 0.35 <= mark(result)["spent"] < 5


def test_reading_what_is_saved_counts_nothing() -> None:
    agents: list[Any] = []

    def look(at: str) -> str:
        """Look at the thread."""
        for agent in agents:
            agent.get_state(THREAD)
            list(agent.get_state_history(THREAD))
        return f"seen {at}"

    saver = InMemorySaver()
    other = create_deep_agent(
        Runaway(delegates=False), [look], limits=Limits(model_calls=6), checkpointer=saver
    )
    other.invoke(GO, THREAD)
    model = ScriptedModel(call("look", at="1"), call("look", at="2"), call("look", at="3"), "Done.")
    mine = create_deep_agent(model, [look], limits=Limits(model_calls=7), checkpointer=InMemorySaver())
    agents += [other, mine]
    result = mine.invoke(GO, THREAD)

    assert result["messages"][-1].text == "Done."
    assert mine.get_state(THREAD).values["_limits_spent"]["model_calls"] == 4


def test_a_foreign_subagent_that_asks_goes_on_counting(call_mode: CallMode) -> None:
    looking = Looking()
    child = Runaway(delegates=False)
    asking: Any = HumanInTheLoopMiddleware(interrupt_on={"look": True})
    foreign: Any = create_agent(child, [looking.tool()], middleware=[asking])
    spec = CompiledSubAgent(name="foreign", description="Works.", runnable=foreign)
    model = ScriptedModel(always=lambda _: call("task", description="Look", subagent_type="foreign"))
    saver = InMemorySaver()
    result, stops = led_to_its_end(
        call_mode,
        lambda: create_deep_agent(model, subagents=[spec], limits=Limits(model_calls=6), checkpointer=saver),
    )

    assert stops >= 4
    assert len(model.asked) + len(child.asked) == 6
    assert spent(result)["model_calls"] == 6
    assert spent(result)["tool_calls"] == len(looking.times) + len(model.asked)


@pytest.mark.parametrize("limits", [Limits(tool_calls=3, per="thread"), Limits(model_calls=3, per="thread")])
def test_a_thread_that_has_used_up_its_budget_answers_no_more(limits: Limits) -> None:
    looking, model = Looking(), Runaway(delegates=False)
    agent = create_deep_agent(model, [looking.tool()], checkpointer=InMemorySaver(), limits=limits)
    first, second = (agent.invoke(GO, THREAD) for _ in range(2))

    assert len(looking.times) == 3
    assert len(model.asked) == (4 if limits.tool_calls else 3)
    assert mark(first)["kind"] == mark(second)["kind"]


def test_a_budget_for_the_thread_binds_an_agent_below_another() -> None:
    child = ScriptedModel(always=lambda _: "Done.")
    inner = create_deep_agent(child, limits=Limits(model_calls=2, per="thread"), checkpointer=True)
    spec = CompiledSubAgent(name="child", description="d", runnable=inner)
    delegate = call("task", description="d", subagent_type="child")
    model = ScriptedModel(*[delegate] * 4, "Fine.")
    agent = create_deep_agent(
        model, subagents=[spec], limits=Limits(model_calls=8), checkpointer=InMemorySaver()
    )
    result = agent.invoke(GO, THREAD)

    assert len(child.asked) == 2
    assert result["messages"][-1].text == "Fine."
    assert agent.get_state(THREAD).values["_limits_spent"]["model_calls"] == 5 + 2


def test_what_waits_when_a_new_message_comes_counts_for_the_thread() -> None:
    def worked(asked: Asked) -> AIMessage:
        steps = len(asked.messages)
        return call("glob", pattern=f"*{steps}") if steps < 6 else call("look", at="1")

    worker = ScriptedModel(always=worked)
    child: Any = {"name": "child", "description": "d", "system_prompt": "", "model": worker}
    model = ScriptedModel(always=lambda _: call("task", description="Look", subagent_type="child"))
    options: Any = {"checkpointer": InMemorySaver(), "interrupt_on": {"look": True}, "subagents": [child]}
    agent = create_deep_agent(
        model, [Looking().tool()], limits=Limits(model_calls=10, per="thread"), **options
    )
    results = [agent.invoke(GO, THREAD) for _ in range(4)]

    assert len(worker.asked) + len(model.asked) == 10
    assert spent(results[-1])["model_calls"] == 10


def test_calls_of_a_resumed_step_are_counted_once_whoever_is_first() -> None:
    model = ScriptedModel(
        calls(
            *[("look", {"at": str(at)}) for at in range(3)], *[("ask", {"at": str(at)}) for at in range(9)]
        ),
        call("look", at="last"),
    )

    def ask(at: str) -> str:
        """Ask."""
        return str(interrupt(at))

    agent = create_deep_agent(
        model, [Looking().tool(), ask], limits=Limits(model_calls=2), checkpointer=InMemorySaver()
    )
    waiting = agent.invoke(GO, THREAD)["__interrupt__"]
    result = agent.invoke(Command(resume={each.id: "yes" for each in waiting}), THREAD)

    assert spent(result)["tool_calls"] == 3 + 9 + 1
