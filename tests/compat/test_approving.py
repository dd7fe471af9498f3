"""The documented ways to let a person decide about calls."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.tools import tool
from langgraph.checkpoint.memory import MemorySaver
from langgraph.types import Command

from deepagents import SubAgent, create_deep_agent
from deepagents.testing import ScriptedModel, call, calls
from tests.conftest import CallMode

QUESTION = {"messages": [{"role": "user", "content": "Tidy up"}]}
ALL = ["approve", "edit", "reject"]


@tool
def remove(path: str) -> str:
    """Remove a file."""
    return f"removed {path}"


@tool
def read_file(path: str) -> str:
    """Read a file of the caller's own."""
    return f"contents of {path}"


@tool
def send(to: str, subject: str = "", body: str = "") -> str:
    """Send mail."""
    return f"sent to {to}"


@tool
def delete_all() -> str:
    """Delete everything."""
    return "deleted"


@tool
def critical() -> str:
    """Do something critical."""
    return "done"


TOOLS = [remove, read_file, send]
RULES: dict[str, Any] = {
    "remove": True,
    "read_file": False,
    "send": {"allowed_decisions": ["approve", "reject"]},
}


def thread() -> Any:
    return {"configurable": {"thread_id": str(uuid4())}}


def answers(result: Any) -> list[str]:
    return [message.text for message in result["messages"] if message.type == "tool"]


def decided(*decisions: dict[str, Any]) -> Command[Any]:
    return Command(resume={"decisions": list(decisions)})


def test_a_call_waits_and_its_request_tells_what_may_be_decided(call_mode: CallMode) -> None:
    config = thread()
    with ScriptedModel(call("remove", path="temp.txt"), "Gone.") as model:
        agent = create_deep_agent(model, tools=TOOLS, interrupt_on=RULES, checkpointer=MemorySaver())
        waiting = call_mode.invoke(agent, QUESTION, config)
        result = call_mode.invoke(agent, decided({"type": "approve"}), config)

    asked = waiting["__interrupt__"][0].value
    assert asked["action_requests"][0]["name"] == "remove"
    assert asked["action_requests"][0]["args"] == {"path": "temp.txt"}
    assert {*ALL} <= {*asked["review_configs"][0]["allowed_decisions"]}
    assert answers(result) == ["removed temp.txt"]
    assert "__interrupt__" not in result


def test_a_tool_of_the_callers_stands_in_for_a_built_in_one_and_need_not_wait(call_mode: CallMode) -> None:
    with ScriptedModel(call("read_file", path="notes"), "Read.") as model:
        agent = create_deep_agent(model, tools=TOOLS, interrupt_on=RULES, checkpointer=MemorySaver())
        result = call_mode.invoke(agent, QUESTION, thread())

    assert answers(result) == ["contents of notes"]
    [offered] = [each for each in model.asked[0].tools if each["function"]["name"] == "read_file"]
    assert [*offered["function"]["parameters"]["properties"]] == ["path"]


def test_calls_of_one_turn_wait_together_and_are_decided_in_order(call_mode: CallMode) -> None:
    config = thread()
    both = calls(("remove", {"path": "temp.txt"}), ("send", {"to": "admin"}))
    with ScriptedModel(both, "Done.") as model:
        agent = create_deep_agent(model, tools=TOOLS, interrupt_on=RULES, checkpointer=MemorySaver())
        asked = call_mode.invoke(agent, QUESTION, config)["__interrupt__"][0].value
        allowed = {each["action_name"]: each["allowed_decisions"] for each in asked["review_configs"]}
        result = call_mode.invoke(agent, decided({"type": "approve"}, {"type": "reject"}), config)

    assert [each["name"] for each in asked["action_requests"]] == ["remove", "send"]
    assert allowed["send"] == ["approve", "reject"]
    assert "removed temp.txt" in answers(result)
    assert "sent to admin" not in answers(result)


def test_a_person_may_change_the_arguments(call_mode: CallMode) -> None:
    config = thread()
    change = {"name": "send", "args": {"to": "team", "subject": "s", "body": "b"}}
    with ScriptedModel(call("send", to="everyone"), "Sent.") as model:
        agent = create_deep_agent(model, tools=TOOLS, interrupt_on={"send": True}, checkpointer=MemorySaver())
        call_mode.invoke(agent, QUESTION, config)
        result = call_mode.invoke(agent, decided({"type": "edit", "edited_action": change}), config)

    assert answers(result)[0].endswith("sent to team")


def test_one_decision_for_each_action(call_mode: CallMode) -> None:
    config = thread()
    many = calls(*(("remove", {"path": path}) for path in "abc"))
    with ScriptedModel(many, "Done.") as model:
        agent = create_deep_agent(model, tools=TOOLS, interrupt_on=RULES, checkpointer=MemorySaver())
        asked = call_mode.invoke(agent, QUESTION, config)["__interrupt__"][0].value
        decisions = [
            {"type": "reject" if each["args"]["path"] == "b" else "approve"}
            for each in asked["action_requests"]
        ]
        result = call_mode.invoke(agent, decided(*decisions), config)

    assert {"removed a", "removed c"} < {*answers(result)}
    assert "removed b" not in answers(result)


def test_rules_may_name_built_in_tools(call_mode: CallMode) -> None:
    config = thread()
    rules: dict[str, Any] = {
        "delete_all": {"allowed_decisions": ALL},
        "write_file": {"allowed_decisions": ["approve", "reject"]},
        "critical": {"allowed_decisions": ["approve"]},
        "edit_file": True,
        "list_files": False,
    }
    with ScriptedModel(call("write_file", file_path="/a", content="A"), "Done.") as model:
        agent = create_deep_agent(
            model, tools=[*TOOLS, delete_all, critical], interrupt_on=rules, checkpointer=MemorySaver()
        )
        waiting = call_mode.invoke(agent, QUESTION, config)
        result = call_mode.invoke(agent, decided({"type": "approve"}), config)

    assert waiting["__interrupt__"][0].value["review_configs"][0]["allowed_decisions"] == [
        "approve",
        "reject",
    ]
    assert result["files"]["/a"]["content"] == "A"


def test_a_subagent_may_be_stricter_than_its_parent(call_mode: CallMode) -> None:
    config = thread()
    own = ScriptedModel(call("read_file", path="notes"), "It says hello.")
    manager: SubAgent = {
        "name": "manager",
        "description": "Manages files",
        "system_prompt": "You manage files.",
        "tools": [remove, read_file],
        "model": own,
        "interrupt_on": {"remove": True, "read_file": True},
    }
    task = call("task", subagent_type="manager", description="Read notes")
    with ScriptedModel(task, "Done.") as model:
        agent = create_deep_agent(
            model, tools=TOOLS, interrupt_on=RULES, subagents=[manager], checkpointer=MemorySaver()
        )
        waiting = call_mode.invoke(agent, QUESTION, config)
        result = call_mode.invoke(agent, decided({"type": "approve"}), config)

    assert waiting["__interrupt__"][0].value["action_requests"][0]["name"] == "read_file"
    assert answers(result) == ["It says hello."]
    assert own.asked[1].last == "contents of notes"


@pytest.mark.filterwarnings("ignore:Calls of this agent may wait:UserWarning")
def test_without_a_checkpointer_the_run_stops_at_the_call(call_mode: CallMode) -> None:
    with ScriptedModel(call("send", to="Ada")) as model:
        rules: Any = {"send": {"allowed_decisions": ALL}}
        agent = create_deep_agent(model, tools=[send], interrupt_on=rules)
        result = call_mode.invoke(agent, QUESTION)

    assert result["__interrupt__"][0].value["action_requests"][0]["name"] == "send"
    assert answers(result) == []


def test_a_subagents_own_approval_middleware_stands_instead_of_inherited_rules(call_mode: CallMode) -> None:
    own = HumanInTheLoopMiddleware(interrupt_on={"send": True})
    clerk: SubAgent = {
        "name": "clerk",
        "description": "d",
        "middleware": [own],
        "model": ScriptedModel(calls(("send", {"to": "Ada"}), ("remove", {"path": "a"}))),
    }
    with ScriptedModel(call("task", subagent_type="clerk", description="Go")) as model:
        agent = create_deep_agent(
            model, tools=TOOLS, interrupt_on={"remove": True}, subagents=[clerk], checkpointer=MemorySaver()
        )
        waiting = call_mode.invoke(agent, QUESTION, thread())

    asked = waiting["__interrupt__"][0].value["action_requests"]
    assert [each["name"] for each in asked] == ["send"]


def test_approval_middleware_of_the_main_agent_holds_in_the_general_purpose_agent_too(
    call_mode: CallMode,
) -> None:
    own = HumanInTheLoopMiddleware(interrupt_on={"send": True})
    task = call("task", subagent_type="general-purpose", description="Write to Ada")
    with ScriptedModel(task, call("send", to="Ada")) as model:
        agent = create_deep_agent(model, tools=TOOLS, middleware=[own], checkpointer=MemorySaver())
        waiting = call_mode.invoke(agent, QUESTION, thread())

    assert waiting["__interrupt__"][0].value["action_requests"][0]["name"] == "send"
