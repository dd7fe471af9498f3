"""Subagents that ask side by side are answered by id, in any order, rightly or wrongly, after restarts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from deepagents import create_deep_agent
from deepagents.testing import Asked, ScriptedModel, call, calls
from deepagents.testing.histories import history_faults
from tests.agents.letters import APPROVE, THREAD, send
from tests.conftest import CallMode
from tests.savers import opened

NAMES = ("left", "middle", "right")
NESTED = ("isolated", "fork", "nested", "nested fork")


def work(asked: Asked) -> AIMessage | str:
    """Answer for a subagent: it sends one letter to the name in its task, and says what came of it."""
    at = max(at for at, each in enumerate(asked.messages) if each.type == "human")
    found = re.search(r"Write to (\w+)", asked.messages[at].text)
    name = found[1] if found else ""
    came = [each.text for each in asked.messages[at:] if each.type == "tool"]
    return f"{name}: {came[-1].splitlines()[-1]}" if came else call("send", to=name)


def lead(asked: Asked) -> AIMessage | str:
    """Answer for an agent: it has all subagents send at the same time."""
    if any(each.type == "tool" for each in asked.messages):
        return "Done: " + "; ".join(each.text for each in asked.messages if each.type == "tool")
    return calls(
        *(("task", {"description": f"Write to {name}", "subagent_type": "helper"}) for name in NAMES)
    )


def hand_on(asked: Asked) -> AIMessage | str:
    """Answer for an agent above: it hands all to a team."""
    came = [each.text for each in asked.messages if each.type == "tool"]
    return came[-1] if came else call("task", description="Go", subagent_type="team")


def agent_of(kind: str, saver: Any) -> Any:
    mode = "fork" if "fork" in kind else "isolated"
    helper: Any = {"name": "helper", "description": "helps", "mode": mode}
    if mode == "isolated":
        helper["model"] = ScriptedModel(always=work)
    model = ScriptedModel(always=lambda asked: work(asked) if _is_helper(asked) else lead(asked))
    options: Any = {"tools": [send], "interrupt_on": {"send": True}, "subagents": [helper]}
    if "nested" not in kind:
        return create_deep_agent(model, checkpointer=saver, **options)
    team: Any = {"name": "team", "description": "works", "runnable": create_deep_agent(model, **options)}
    return create_deep_agent(ScriptedModel(always=hand_on), subagents=[team], checkpointer=saver)


def _is_helper(asked: Asked) -> bool:
    return any(each.type == "human" and "Write to" in each.text for each in asked.messages)


@pytest.mark.parametrize(
    ("kind", "call_mode"), [*zip(NESTED, ("sync", "async") * 2, strict=True)], indirect=["call_mode"]
)
def test_each_is_answered_by_id_after_wrong_answers_and_restarts(
    call_mode: CallMode, tmp_path: Path, kind: str
) -> None:
    place = str(tmp_path / "threads.db")

    def step(given: Any) -> Any:
        with opened("sqlite", call_mode, place) as saver:
            return call_mode.invoke(agent_of(kind, saver), given, THREAD)

    def answer(waiting: Any, **decisions: Any) -> Any:
        by_name = {each.value["action_requests"][0]["args"]["to"]: each.id for each in waiting}
        return step(Command(resume={by_name[name]: given for name, given in decisions.items()}))

    def names(result: Any) -> list[str]:
        return sorted(each.value["action_requests"][0]["args"]["to"] for each in result["__interrupt__"])

    first = step({"messages": "Go"})
    second = answer(
        first["__interrupt__"], left={"decisions": [{"type": "aprove"}]}, middle={"decisions": [APPROVE]}
    )
    third = answer(second["__interrupt__"], right={"decisions": [{"type": "reject", "message": "Not now"}]})
    again = answer(third["__interrupt__"], left="yes")
    edited = {"type": "edit", "edited_action": {"name": "send", "args": {"to": "Bob"}}}
    done = answer(again["__interrupt__"], left={"decisions": [edited]})

    assert [names(each) for each in (first, second, third, again)] == [
        [*NAMES],
        ["left", "right"],
        ["left"],
        ["left"],
    ]
    assert ["error" in each.value for each in again["__interrupt__"]] == [True]
    assert "__interrupt__" not in done
    said = done["messages"][-1].text
    assert "left: sent to Bob" in said
    assert "middle: sent to middle" in said
    assert "Not now" in said
    assert history_faults(done["messages"]) == []


@pytest.mark.parametrize("kind", NESTED)
def test_all_are_answered_with_one_command_a_wrong_one_among_them(kind: str) -> None:
    agent = agent_of(kind, InMemorySaver())
    waiting = agent.invoke({"messages": "Go"}, THREAD)["__interrupt__"]
    wrong = next(each.id for each in waiting if each.value["action_requests"][0]["args"]["to"] == "middle")
    answers: dict[str, Any] = {each.id: {"decisions": [APPROVE]} for each in waiting}
    (again,) = agent.invoke(Command(resume={**answers, wrong: None}), THREAD)["__interrupt__"]
    done = agent.invoke(Command(resume={again.id: {"decisions": [APPROVE]}}), THREAD)

    assert len(waiting) == len(NAMES)
    assert "could not be used" in again.value["error"]
    for name in NAMES:
        assert f"{name}: sent to {name}" in done["messages"][-1].text


def test_an_approval_of_a_subagents_own_goes_before_the_inherited_rules() -> None:
    own = HumanInTheLoopMiddleware(interrupt_on={"send": {"allowed_decisions": ["approve"]}})
    helper: Any = {"name": "helper", "description": "helps", "middleware": [own]}
    helper["model"] = ScriptedModel(always=work)
    task = call("task", description="Write to Ada", subagent_type="helper")
    options: Any = {"tools": [send], "interrupt_on": {"send": True}}
    agent = create_deep_agent(
        ScriptedModel(task, "Done."), subagents=[helper], checkpointer=InMemorySaver(), **options
    )
    (asked,) = agent.invoke({"messages": "Go"}, THREAD)["__interrupt__"]
    done = agent.invoke(Command(resume={"decisions": [APPROVE]}), THREAD)

    assert asked.value["review_configs"][0]["allowed_decisions"] == ["approve"]
    assert done["messages"][-2].text == "Ada: sent to Ada"


def test_a_subagent_with_two_sets_of_rules_warns_by_name() -> None:
    own = HumanInTheLoopMiddleware(interrupt_on={"send": True})
    helper: Any = {
        "name": "helper",
        "description": "helps",
        "middleware": [own],
        "interrupt_on": {"ls": True},
    }
    with pytest.warns(UserWarning, match="subagent 'helper' has a HumanInTheLoopMiddleware of its own"):
        create_deep_agent(ScriptedModel(), tools=[send], subagents=[helper])
