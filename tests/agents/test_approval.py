"""A person decides: on the main agent, in a subagent, in several at once."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from deepagents import FilesystemMiddleware, FilesystemPermission, create_deep_agent
from deepagents.backends import StateBackend
from deepagents.testing import ScriptedModel, call, calls
from tests.agents.letters import APPROVE, THREAD, agent_with, decide, send
from tests.conftest import CallMode
from tests.savers import opened


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
    call_mode: CallMode, decision: dict[str, Any], status: str, said: str
) -> None:
    with ScriptedModel(call("send", to="Ada"), "Done.") as model:
        agent = agent_with(model)
        call_mode.invoke(agent, {"messages": "Write to Ada"}, THREAD)
        result = call_mode.invoke(agent, decide(decision), THREAD)

    assert result["messages"][-2].status == status
    assert said in result["messages"][-2].text


def test_a_tool_set_to_false_runs_at_once() -> None:
    with ScriptedModel(call("send", to="Ada"), "Done.") as model:
        result = agent_with(model, interrupt_on={"send": False}).invoke({"messages": "Go"}, THREAD)

    assert result["messages"][-2].text == "sent to Ada"


def test_a_subagent_inherits_the_rules_and_resumes_where_it_stopped(call_mode: CallMode) -> None:
    made = call("send", to="Ada")
    helper = ScriptedModel(made, "it is sent")
    spec: Any = {"name": "helper", "description": "helps", "model": helper}
    with ScriptedModel(call("task", description="Send", subagent_type="helper"), "Done.") as model:
        agent = agent_with(model, subagents=[spec])
        waiting = call_mode.invoke(agent, {"messages": "Go"}, THREAD)
        result = call_mode.invoke(agent, decide({"type": "approve"}), THREAD)

    request = waiting["__interrupt__"][0].value["action_requests"][0]
    assert (request["args"], request["tool_call_id"]) == ({"to": "Ada"}, made.tool_calls[0]["id"])
    assert result["messages"][-2].text == "it is sent"
    assert len(helper.asked) == 2


def test_a_subagents_own_rules_replace_the_inherited_ones() -> None:
    helper = ScriptedModel(call("send", to="Ada"), "it is sent")
    spec: Any = {"name": "helper", "description": "helps", "model": helper, "interrupt_on": {"send": False}}
    with ScriptedModel(call("task", description="Send", subagent_type="helper"), "Done.") as model:
        result = agent_with(model, subagents=[spec]).invoke({"messages": "Go"}, THREAD)

    assert result["messages"][-2].text == "it is sent"


def test_delegation_itself_can_wait() -> None:
    task = call("task", description="Send", subagent_type="general-purpose")
    with ScriptedModel(task, "did it", "Done.") as model:
        agent = agent_with(model, interrupt_on={"task": True})
        waiting = agent.invoke({"messages": "Go"}, THREAD)
        result = agent.invoke(decide({"type": "approve"}), THREAD)

    assert waiting["__interrupt__"][0].value["action_requests"][0]["name"] == "task"
    assert result["messages"][-2].text == "did it"


def test_new_words_instead_of_a_decision_leave_a_valid_history() -> None:
    with ScriptedModel(call("send", to="Ada"), "Never mind.") as model:
        agent = agent_with(model)
        agent.invoke({"messages": "Write to Ada"}, THREAD)
        result = agent.invoke({"messages": "Stop, something else"}, THREAD)

    kinds = [message.type for message in result["messages"]]
    assert kinds == ["human", "ai", "tool", "human", "ai"]
    assert result["messages"][2].status == "error"


def test_a_rejected_change_does_not_stand_in_the_way_of_an_approved_one() -> None:
    both = calls(*[("write_file", {"file_path": "/a.txt", "content": said}) for said in ("one", "two")])
    with ScriptedModel(both, "Done.") as model:
        agent = agent_with(model, interrupt_on={"write_file": True})
        agent.invoke({"messages": "Go"}, THREAD)
        done = agent.invoke(decide({"type": "reject"}, {"type": "approve"}), THREAD)

    assert done["files"]["/a.txt"]["content"] == "two"


WRONG: list[Any] = [
    {"decisions": []},
    {"decisions": [APPROVE, APPROVE]},
    {"decisions": [{"type": "aprove"}]},
    {"decisions": [{"type": "respond"}]},
    {"decisions": [{"type": "edit"}]},
    {"decisions": [{"type": "edit", "edited_action": "send it to Bob"}]},
    {"decisions": [{"type": "edit", "edited_action": {"name": "send", "args": ["Bob"]}}]},
    {"decisions": [{"type": "edit", "edited_action": {"name": "sennd", "args": {"to": "Bob"}}}]},
    {"decisions": ["approve"]},
    {"decisions": None},
    {"decision": "approve"},
    ["approve"],
    "yes",
]


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_after_a_wrong_answer_the_same_question_can_be_answered_right(wrong: Any) -> None:
    with ScriptedModel(call("send", to="Ada"), "Done.") as model:
        agent = agent_with(model)
        first = agent.invoke({"messages": "Go"}, THREAD)["__interrupt__"][0].value
        again = agent.invoke(Command(resume=wrong), THREAD)["__interrupt__"][0].value
        result = agent.invoke(decide(APPROVE), THREAD)

    assert "error" not in first
    assert "could not be used" in again["error"]
    request = again["action_requests"][0]
    assert request["description"].startswith(again["error"])
    assert {**request, "description": ""} == {**first["action_requests"][0], "description": ""}
    assert [message.type for message in result["messages"]] == ["human", "ai", "tool", "ai"]
    assert result["messages"][2].text == "sent to Ada"


def test_a_question_says_what_was_wrong_with_the_answer() -> None:
    only: Any = {"send": {"allowed_decisions": ["approve", "reject"]}}
    agent = agent_with(ScriptedModel(call("send", to="Ada")), interrupt_on=only)
    agent.invoke({"messages": "Go"}, THREAD)

    def error(*decisions: Any) -> str:
        return agent.invoke(decide(*decisions), THREAD)["__interrupt__"][0].value["error"]

    assert "(2) does not match" in error(APPROVE, APPROVE)
    assert "['approve', 'reject']" in error({"type": "respond", "message": "no need"})
    assert '{"decisions": [...]}' in error({})


def test_an_edit_to_a_tool_that_is_not_there_is_told_which_are() -> None:
    agent = agent_with(ScriptedModel(call("send", to="Ada")))
    agent.invoke({"messages": "Go"}, THREAD)
    wrong = {"type": "edit", "edited_action": {"name": "sennd", "args": {}}}

    error = agent.invoke(decide(wrong), THREAD)["__interrupt__"][0].value["error"]

    assert "no tool 'sennd'" in error
    assert {"send", "task", "write_file", "write_todos"} <= set(re.findall(r"\w+", error))


def test_a_person_may_put_a_call_of_another_tool_in_its_place() -> None:
    other = {"name": "write_file", "args": {"file_path": "/a.txt", "content": "A"}}
    with ScriptedModel(call("send", to="Ada"), "Done.") as model:
        agent = agent_with(model)
        agent.invoke({"messages": "Go"}, THREAD)
        result = agent.invoke(decide({"type": "edit", "edited_action": other}), THREAD)

    assert result["files"]["/a.txt"]["content"] == "A"


def test_where_the_tools_are_not_known_a_wrong_edit_becomes_an_error_result(call_mode: CallMode) -> None:
    files = FilesystemMiddleware(backend=StateBackend())
    wrong = {"type": "edit", "edited_action": {"name": "sennd", "args": {}}}
    with ScriptedModel(call("send", to="Ada"), "Sorry.") as model:
        middleware: Any = [files, files.approval({"send": True})]
        agent: Any = create_agent(model, [send], middleware=middleware, checkpointer=InMemorySaver())
        call_mode.invoke(agent, {"messages": "Go"}, THREAD)
        result = call_mode.invoke(agent, decide(wrong), THREAD)

    assert "'sennd', which is not a tool" in result["messages"][2].text
    assert result["messages"][-1].text == "Sorry."


def test_many_wrong_answers_do_not_spoil_a_thread_on_disk(call_mode: CallMode, tmp_path: Path) -> None:
    place = str(tmp_path / "threads.db")
    with opened("sqlite", call_mode, place) as saver:
        agent = agent_with(ScriptedModel(call("send", to="Ada")), checkpointer=saver)
        call_mode.invoke(agent, {"messages": "Go"}, THREAD)
        for wrong in WRONG:
            assert "error" in call_mode.invoke(agent, Command(resume=wrong), THREAD)["__interrupt__"][0].value
    with opened("sqlite", call_mode, place) as saver:
        agent = agent_with(ScriptedModel("Done."), checkpointer=saver)
        result = call_mode.invoke(agent, decide(APPROVE), THREAD)

    assert result["messages"][-2].text == "sent to Ada"


@pytest.mark.parametrize("wrong", WRONG[:3] + WRONG[7:8], ids=repr)
def test_a_subagent_asks_again_too(wrong: Any) -> None:
    helper = ScriptedModel(call("send", to="Ada"), "it is sent")
    spec: Any = {"name": "helper", "description": "helps", "model": helper}
    with ScriptedModel(call("task", description="Send", subagent_type="helper"), "Done.") as model:
        agent = agent_with(model, subagents=[spec])
        agent.invoke({"messages": "Go"}, THREAD)
        again = agent.invoke(Command(resume=wrong), THREAD)["__interrupt__"][0].value
        result = agent.invoke(decide(APPROVE), THREAD)

    assert "could not be used" in again["error"]
    assert result["messages"][-2].text == "it is sent"
    assert len(helper.asked) == 2


def test_an_error_in_the_callers_own_function_is_no_wrong_answer() -> None:
    def broken(*given: Any) -> Any:
        raise KeyError("mine")

    for own in ({"when": broken}, {"description": broken}):
        config: Any = {"send": {"allowed_decisions": ["approve"], **own}}
        agent = agent_with(ScriptedModel(call("send", to="Ada")), interrupt_on=config)
        with pytest.raises(KeyError, match="mine"):
            agent.invoke({"messages": "Go"}, THREAD)


def test_a_description_may_ask_a_person_itself() -> None:
    def describe(*given: Any) -> str:
        return f"Send it {interrupt('In which language?')}"

    config: Any = {"send": {"allowed_decisions": ["approve"], "description": describe}}
    with ScriptedModel(call("send", to="Ada"), "Done.") as model:
        agent = agent_with(model, interrupt_on=config)
        first = agent.invoke({"messages": "Go"}, THREAD)["__interrupt__"][0].value
        asked = agent.invoke(Command(resume="in French"), THREAD)["__interrupt__"][0].value
        again = agent.invoke(decide("approve"), THREAD)["__interrupt__"][0].value
        result = agent.invoke(decide(APPROVE), THREAD)

    assert first == "In which language?"
    assert asked["action_requests"][0]["description"] == "Send it in French"
    assert "could not be used" in again["error"]
    assert result["messages"][2].text == "sent to Ada"


def test_each_request_names_its_call() -> None:
    several = calls(("send", {"to": "Ada"}), ("ls", {}), ("send", {"to": "Ada"}))
    agent = agent_with(ScriptedModel(several))
    asked = agent.invoke({"messages": "Go"}, THREAD)["__interrupt__"][0].value

    made = [each["id"] for each in several.tool_calls]
    assert [request["tool_call_id"] for request in asked["action_requests"]] == [made[0], made[2]]
    assert sorted(asked["action_requests"][0]) == ["args", "description", "name", "tool_call_id"]


@pytest.mark.parametrize("kept", ["agent", "around"])
def test_where_a_thread_is_kept_nothing_is_said_of_it(kept: str) -> None:
    """An agent without a checkpointer of its own may be a part of one that has it."""
    spec: Any = {
        "name": "helper",
        "description": "helps",
        "runnable": create_deep_agent(
            ScriptedModel(call("send", to="Ada"), "sent"), tools=[send], interrupt_on={"send": True}
        ),
    }
    task = call("task", description="Send", subagent_type="helper")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agent = agent_with(
            ScriptedModel(task if kept == "around" else call("send", to="Ada")), subagents=[spec]
        )
        asked = agent.invoke({"messages": "Go"}, THREAD)["__interrupt__"][0].value

    assert "error" not in asked


@pytest.mark.parametrize("asking", ["agent", "rules", "subagent"])
def test_without_a_checkpointer_it_is_said_before_the_first_call_of_the_model(asking: str) -> None:
    seen: list[int] = []
    options: dict[str, Any] = {
        "agent": {"interrupt_on": {"send": True}},
        "rules": {"permissions": [FilesystemPermission(["write"], ["/law/**"], "interrupt")]},
        "subagent": {"subagents": [helper_with(interrupt_on={"send": True})]},
    }
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = ScriptedModel(
            lambda _: seen.append(len(said)) or call("ls", path="/"), "Hello.", "Hello again."
        )
        agent = create_deep_agent(model, tools=[send], **options[asking])
        agent.invoke({"messages": "Hello"})
        ours = [each for each in said if "checkpointer=InMemorySaver" in str(each.message)]

    assert seen == [1]
    assert len(ours) == 1
    assert ours[0].filename == __file__


def test_without_a_checkpointer_a_request_says_that_nobody_can_answer_it() -> None:
    agent = create_deep_agent(
        ScriptedModel(call("send", to="Ada")), tools=[send], interrupt_on={"send": True}
    )
    with pytest.warns(UserWarning, match="checkpointer"):
        asked = agent.invoke({"messages": "Go"})["__interrupt__"][0].value

    assert "no checkpointer keeps the thread" in asked["error"]
    assert "no checkpointer keeps the thread" in asked["action_requests"][0]["description"]


def helper_with(**own: Any) -> Any:
    return {"name": "helper", "description": "helps", "model": ScriptedModel(), **own}


@pytest.mark.parametrize("own", [{"ls": True}, {}, None], ids=repr)
def test_rules_of_a_subagent_that_let_a_gated_tool_run_are_spoken_of_at_the_callers_line(own: Any) -> None:
    gated: Any = {"send": True, "write_file": {"allowed_decisions": ["approve"]}, "read_file": False}
    with pytest.warns(UserWarning, match="'send', 'write_file'.*False") as said:
        create_deep_agent(
            ScriptedModel(), tools=[send], interrupt_on=gated, subagents=[helper_with(interrupt_on=own)]
        )

    assert len(said) == 1
    assert "'helper'" in str(said[0].message)
    assert said[0].filename == str(Path(__file__))


@pytest.mark.parametrize(
    "own",
    [
        {},
        {"interrupt_on": {"send": False}},
        {"interrupt_on": {"send": {"allowed_decisions": ["approve"]}}},
        {"interrupt_on": {"ls": True}, "tools": []},
        {"tools": []},
    ],
    ids=repr,
)
def test_nothing_is_said_of_rules_that_free_no_tool_or_say_so(own: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agent_with(ScriptedModel(), subagents=[helper_with(**own)])
