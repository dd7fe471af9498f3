"""A person decides: on the main agent, in a subagent, in several at once."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from deepagents import create_deep_agent
from deepagents.testing import ScriptedModel, call, calls
from tests.conftest import Colour

THREAD: Any = {"configurable": {"thread_id": "1"}}


@tool
def send(to: str) -> str:
    """Send a letter."""
    return f"sent to {to}"


def agent_with(model: ScriptedModel, **options: Any) -> Any:
    options = {"tools": [send], "interrupt_on": {"send": True}, **options}
    return create_deep_agent(model, checkpointer=InMemorySaver(), **options)


def decide(*decisions: dict[str, Any]) -> Command[Any]:
    return Command(resume={"decisions": list(decisions)})


def test_nothing_runs_before_a_person_decides(colour: Colour) -> None:
    agent = agent_with(ScriptedModel(call("send", to="Ada")))
    asked = colour.invoke(agent, {"messages": "Write to Ada"}, THREAD)["__interrupt__"][0].value

    assert asked["action_requests"][0]["name"] == "send"
    assert asked["action_requests"][0]["args"] == {"to": "Ada"}
    assert asked["review_configs"][0]["allowed_decisions"] == ["approve", "edit", "reject", "respond"]


@pytest.mark.parametrize(
    ("decision", "status", "said"),
    [
        ({"type": "approve"}, "success", "sent to Ada"),
        (
            {"type": "edit", "edited_action": {"name": "send", "args": {"to": "Bob"}}},
            "success",
            "sent to Bob",
        ),
        ({"type": "reject", "message": "not today"}, "error", "not today"),
        ({"type": "respond", "message": "already sent"}, "success", "already sent"),
    ],
)
def test_each_decision_has_its_effect(
    colour: Colour, decision: dict[str, Any], status: str, said: str
) -> None:
    with ScriptedModel(call("send", to="Ada"), "Done.") as model:
        agent = agent_with(model)
        colour.invoke(agent, {"messages": "Write to Ada"}, THREAD)
        result = colour.invoke(agent, decide(decision), THREAD)

    assert result["messages"][-2].status == status
    assert said in result["messages"][-2].text


def test_calls_of_one_turn_are_asked_together_and_answered_in_order(colour: Colour) -> None:
    both = calls(("send", {"to": "Ada"}), ("send", {"to": "Bob"}))
    with ScriptedModel(both, "Done.") as model:
        agent = agent_with(model)
        asked = colour.invoke(agent, {"messages": "Go"}, THREAD)["__interrupt__"][0].value
        result = colour.invoke(agent, decide({"type": "reject"}, {"type": "approve"}), THREAD)

    assert len(asked["action_requests"]) == 2
    answers = {message.tool_call_id: message.text for message in result["messages"] if message.type == "tool"}
    assert answers[both.tool_calls[1]["id"]] == "sent to Bob"
    assert "sent to Ada" not in answers.values()


def test_a_tool_set_to_false_runs_at_once() -> None:
    with ScriptedModel(call("send", to="Ada"), "Done.") as model:
        result = agent_with(model, interrupt_on={"send": False}).invoke({"messages": "Go"}, THREAD)

    assert result["messages"][-2].text == "sent to Ada"


def test_built_in_tools_can_wait_too(colour: Colour) -> None:
    with ScriptedModel(call("write_file", file_path="/a.txt", content="A"), "Done.") as model:
        agent = agent_with(model, interrupt_on={"write_file": {"allowed_decisions": ["approve", "reject"]}})
        waiting = colour.invoke(agent, {"messages": "Go"}, THREAD)
        done = colour.invoke(agent, decide({"type": "approve"}), THREAD)

    assert "/a.txt" not in waiting.get("files", {})
    assert done["files"]["/a.txt"]["content"] == "A"


def test_a_subagent_inherits_the_rules_and_resumes_where_it_stopped(colour: Colour) -> None:
    helper = ScriptedModel(call("send", to="Ada"), "it is sent")
    spec: Any = {"name": "helper", "description": "helps", "model": helper}
    with ScriptedModel(call("task", description="Send", subagent_type="helper"), "Done.") as model:
        agent = agent_with(model, subagents=[spec])
        waiting = colour.invoke(agent, {"messages": "Go"}, THREAD)
        result = colour.invoke(agent, decide({"type": "approve"}), THREAD)

    assert waiting["__interrupt__"][0].value["action_requests"][0]["args"] == {"to": "Ada"}
    assert result["messages"][-2].text == "it is sent"
    assert len(helper.asked) == 2


def test_a_subagents_own_rules_replace_the_inherited_ones() -> None:
    helper = ScriptedModel(call("send", to="Ada"), "it is sent")
    spec: Any = {"name": "helper", "description": "helps", "model": helper, "interrupt_on": {"send": False}}
    with ScriptedModel(call("task", description="Send", subagent_type="helper"), "Done.") as model:
        result = agent_with(model, subagents=[spec]).invoke({"messages": "Go"}, THREAD)

    assert result["messages"][-2].text == "it is sent"


def test_parallel_subagents_each_ask_and_are_answered_by_id(colour: Colour) -> None:
    def helper(name: str) -> Any:
        return {
            "name": name,
            "description": name,
            "model": ScriptedModel(call("send", to=name), f"{name} is done"),
        }

    both = calls(*(("task", {"description": "Send", "subagent_type": name}) for name in ("left", "right")))
    with ScriptedModel(both, "Done.") as model:
        agent = agent_with(model, subagents=[helper("left"), helper("right")])
        asked = colour.invoke(agent, {"messages": "Go"}, THREAD)["__interrupt__"]
        answers = {each.id: {"decisions": [{"type": "approve"}]} for each in asked}
        result = colour.invoke(agent, Command(resume=answers), THREAD)

    assert len(asked) == 2
    assert [message.text for message in result["messages"][-3:-1]] == ["left is done", "right is done"]


def test_delegation_itself_can_wait() -> None:
    task = call("task", description="Send", subagent_type="general-purpose")
    with ScriptedModel(task, "did it", "Done.") as model:
        agent = agent_with(model, interrupt_on={"task": True})
        waiting = agent.invoke({"messages": "Go"}, THREAD)
        result = agent.invoke(decide({"type": "approve"}), THREAD)

    assert waiting["__interrupt__"][0].value["action_requests"][0]["name"] == "task"
    assert result["messages"][-2].text == "did it"


def test_new_words_instead_of_a_decision_leave_a_valid_history(colour: Colour) -> None:
    with ScriptedModel(call("send", to="Ada"), "Never mind.") as model:
        agent = agent_with(model)
        colour.invoke(agent, {"messages": "Write to Ada"}, THREAD)
        result = colour.invoke(agent, {"messages": "Stop, something else"}, THREAD)

    kinds = [message.type for message in result["messages"]]
    assert kinds == ["human", "ai", "tool", "human", "ai"]
    assert result["messages"][2].status == "error"


def test_a_rejected_change_does_not_stand_in_the_way_of_an_approved_one(colour: Colour) -> None:
    both = calls(*[("write_file", {"file_path": "/a.txt", "content": said}) for said in ("one", "two")])
    with ScriptedModel(both, "Done.") as model:
        agent = agent_with(model, interrupt_on={"write_file": True})
        colour.invoke(agent, {"messages": "Go"}, THREAD)
        done = colour.invoke(agent, decide({"type": "reject"}, {"type": "approve"}), THREAD)

    assert done["files"]["/a.txt"]["content"] == "two"
