"""Rules of approval that cannot hold are refused while building, and answers without end harm no thread."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langgraph.types import Command, interrupt

from deepagents.errors import ConfigError
from deepagents.testing import ScriptedModel, call, calls
from tests.agents.letters import APPROVE, THREAD, agent_with, decide
from tests.conftest import CallMode

MOST = 20


def results(result: Any) -> list[tuple[str | None, str]]:
    return [
        (each.additional_kwargs.get("error_code"), each.text)
        for each in result["messages"]
        if each.type == "tool"
    ]


def test_after_twenty_wrong_answers_the_call_is_not_run_and_the_thread_goes_on(call_mode: CallMode) -> None:
    with ScriptedModel(call("send", to="Ada"), "Not sent.", "Hello.") as model:
        agent = agent_with(model)
        call_mode.invoke(agent, {"messages": "Go"}, THREAD)
        waiting = [call_mode.invoke(agent, decide(), THREAD) for _ in range(MOST - 1)]
        done = call_mode.invoke(agent, decide(), THREAD)
        later = call_mode.invoke(agent, {"messages": "Hello"}, THREAD)

    ((code, text),) = results(done)
    assert all("__interrupt__" in each for each in waiting)
    assert code == "not_run"
    assert f"{MOST} answers" in text
    assert [message.type for message in done["messages"]] == ["human", "ai", "tool", "ai"]
    assert later["messages"][-1].text == "Hello."


def test_the_last_answer_of_all_can_still_be_right() -> None:
    with ScriptedModel(call("send", to="Ada"), "Sent.") as model:
        agent = agent_with(model)
        agent.invoke({"messages": "Go"}, THREAD)
        for _ in range(MOST - 1):
            agent.invoke(decide(), THREAD)
        done = agent.invoke(decide(APPROVE), THREAD)

    assert results(done) == [(None, "sent to Ada")]


def test_only_the_calls_that_were_asked_about_are_given_up() -> None:
    turn = calls(("send", {"to": "Ada"}), ("send", {"to": "Bob"}), ("ls", {"path": "/"}))
    only_ada: Any = {
        "send": {
            "allowed_decisions": ["approve"],
            "when": lambda request: request.tool_call["args"]["to"] == "Ada",
        }
    }
    with ScriptedModel(turn, "Done.") as model:
        agent = agent_with(model, interrupt_on=only_ada)
        agent.invoke({"messages": "Go"}, THREAD)
        for _ in range(MOST - 1):
            agent.invoke(decide(), THREAD)
        done = agent.invoke(decide(), THREAD)

    given = {each.tool_call_id: each for each in done["messages"] if each.type == "tool"}
    ada, bob, ls = (given[each["id"]] for each in turn.tool_calls)
    assert ada.additional_kwargs["error_code"] == "not_run"
    assert (bob.text, ls.status) == ("sent to Bob", "success")


def test_a_request_is_described_once_for_each_answer() -> None:
    described: list[str] = []

    def describe(tool_call: Any, state: Any, runtime: Any) -> str:
        described.append(tool_call["name"])
        return "May I?"

    config: Any = {"send": {"allowed_decisions": ["approve"], "description": describe}}
    with ScriptedModel(call("send", to="Ada"), "Sent.") as model:
        agent = agent_with(model, interrupt_on=config)
        agent.invoke({"messages": "Go"}, THREAD)
        for _ in range(10):
            agent.invoke(decide(), THREAD)
        agent.invoke(decide(APPROVE), THREAD)

    assert len(described) == 12


@pytest.mark.parametrize("message", [None, 5, {"a": 1}, [1]], ids=repr)
def test_words_that_are_no_text_are_a_wrong_answer(message: Any) -> None:
    with ScriptedModel(call("send", to="Ada"), "Done.") as model:
        agent = agent_with(model)
        agent.invoke({"messages": "Go"}, THREAD)
        again = agent.invoke(decide({"type": "respond", "message": message}), THREAD)
        done = agent.invoke(decide({"type": "respond", "message": "None"}), THREAD)

    assert "'message'" in again["__interrupt__"][0].value["error"]
    assert results(done) == [(None, "None")]


def test_a_function_of_the_caller_may_ask_too() -> None:
    config: Any = {
        "send": {"allowed_decisions": ["approve"], "description": lambda *_: interrupt("How shall I ask?")}
    }
    with ScriptedModel(call("send", to="Ada"), "Sent.") as model:
        agent = agent_with(model, interrupt_on=config)
        first = agent.invoke({"messages": "Go"}, THREAD)["__interrupt__"][0]
        then = agent.invoke(Command(resume="Politely."), THREAD)["__interrupt__"][0]
        done = agent.invoke(decide(APPROVE), THREAD)

    assert first.value == "How shall I ask?"
    assert then.value["action_requests"][0]["description"] == "Politely."
    assert results(done) == [(None, "sent to Ada")]


@pytest.mark.parametrize("entry", [None, ["approve"], "approve", 1], ids=repr)
def test_an_entry_that_is_no_rule_is_refused_by_the_name_of_its_tool(entry: Any) -> None:
    with pytest.raises(TypeError, match=r"'send'.*allowed_decisions"):
        agent_with(ScriptedModel(), interrupt_on={"send": entry})


@pytest.mark.parametrize("entry", [["aprove"], "approve", None, [], ["approve", 5]], ids=repr)
def test_decisions_that_do_not_exist_are_refused_with_those_that_do(entry: Any) -> None:
    with pytest.raises(ConfigError, match=r"'send'.*'approve', 'edit', 'reject', 'respond'"):
        agent_with(ScriptedModel(), interrupt_on={"send": {"allowed_decisions": entry}})


def test_interrupt_on_that_is_no_mapping_is_refused() -> None:
    with pytest.raises(TypeError, match=r"interrupt_on.*\['send'\]"):
        agent_with(ScriptedModel(), interrupt_on=["send"])


def test_rules_of_a_subagent_are_looked_at_while_building() -> None:
    helper: Any = {"name": "helper", "description": "helps", "interrupt_on": {"send": None}}
    with pytest.raises(ConfigError, match="'send'"):
        agent_with(ScriptedModel(), subagents=[helper])


def own_approval(**options: Any) -> Any:
    standing: Any = {"interrupt_on": {"send": True}, **options}
    return {"interrupt_on": None, "middleware": [HumanInTheLoopMiddleware(**standing)]}


def test_an_approval_that_the_caller_brought_keeps_its_words_and_asks_again(call_mode: CallMode) -> None:
    own = own_approval(description_prefix="Please look", edit_notice="Somebody changed this.")
    edit = {"type": "edit", "edited_action": {"name": "send", "args": {"to": "Bob"}}}
    with ScriptedModel(call("send", to="Ada"), "Sent.") as model:
        agent = agent_with(model, **own)
        first = call_mode.invoke(agent, {"messages": "Go"}, THREAD)["__interrupt__"][0].value
        again = call_mode.invoke(agent, decide(), THREAD)["__interrupt__"][0].value
        done = call_mode.invoke(agent, decide(edit), THREAD)

    assert first["action_requests"][0]["description"].startswith("Please look")
    assert "tool_call_id" in first["action_requests"][0]
    assert "error" in again
    assert results(done)[0][1].startswith("Somebody changed this.")


@pytest.mark.parametrize("mode", ["batched", "per_call"])
def test_new_words_instead_of_a_decision_about_a_brought_approval(mode: str) -> None:
    with ScriptedModel(call("send", to="Ada"), "I see.") as model:
        agent = agent_with(model, **own_approval(interrupt_mode=mode))
        agent.invoke({"messages": "Go"}, THREAD)
        done = agent.invoke({"messages": "Leave it"}, THREAD)

    ((code, text),) = results(done)
    assert code == "not_run"
    assert "was not run" in text


def test_an_approval_may_ask_for_each_call_by_itself() -> None:
    turn = calls(("send", {"to": "Ada"}), ("send", {"to": "Bob"}))
    with ScriptedModel(turn, "Done.") as model:
        agent = agent_with(model, **own_approval(interrupt_mode="per_call"))
        asked = agent.invoke({"messages": "Go"}, THREAD)["__interrupt__"]
        answers = {each.id: APPROVE for each in asked}
        done = agent.invoke(Command(resume=answers), THREAD)

    assert {each.value["tool_call_id"] for each in asked} == {each["id"] for each in turn.tool_calls}
    assert sorted(text for _, text in results(done)) == ["sent to Ada", "sent to Bob"]
