"""Calls that share an id get ids of their own, so that each has one result, as strict providers demand."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, InvalidToolCall, ToolCall
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from deepagents import create_deep_agent
from deepagents.testing import ScriptedModel, history_faults

THREAD: Any = {"configurable": {"thread_id": "1"}}
APPROVE, REJECT = {"type": "approve"}, {"type": "reject", "message": "no"}


@tool
def send(to: str) -> str:
    """Send a letter."""
    return f"sent to {to}"


def two(content: Any = "", ids: tuple[str | None, ...] = ("1", "1")) -> AIMessage:
    made = [
        ToolCall(name="send", args={"to": to}, id=each) for to, each in zip(("Ada", "Bob"), ids, strict=True)
    ]
    return AIMessage(content, tool_calls=made)


def ran(said: AIMessage, *decisions: Any) -> tuple[list[Any], ScriptedModel]:
    model = ScriptedModel(said, "Done.")
    asks: Any = {"send": True} if decisions else None
    agent = create_deep_agent(model, [send], interrupt_on=asks, checkpointer=InMemorySaver())
    result = agent.invoke({"messages": "Go"}, THREAD)
    if decisions:
        result = agent.invoke(Command(resume={"decisions": [*decisions]}), THREAD)
    return result["messages"], model


def ids(messages: list[Any]) -> list[str]:
    made = next(each for each in messages if each.type == "ai")
    return [call["id"] for call in (*made.tool_calls, *made.invalid_tool_calls)]


def answers(messages: list[Any]) -> dict[str, str]:
    return {each.tool_call_id: each.text for each in messages if each.type == "tool"}


@pytest.mark.parametrize("given", [("1", "1"), ("", ""), (None, None), (None, "1")], ids=repr)
def test_each_call_has_an_id_and_a_result_of_its_own(given: Any) -> None:
    messages, model = ran(two(ids=given))

    first, second = ids(messages)
    assert first
    assert second not in ("", None, first)
    assert answers(messages) == {first: "sent to Ada", second: "sent to Bob"}
    assert history_faults(model.asked[1].messages[1:]) == []


def test_ids_that_differ_stay_as_they_are() -> None:
    assert ids(ran(two(ids=("1", "2")))[0]) == ["1", "2"]


@pytest.mark.parametrize("decisions", [(REJECT, APPROVE), (APPROVE, REJECT)])
def test_one_of_two_is_rejected_and_the_other_runs(decisions: Any) -> None:
    messages, model = ran(two(), *decisions)

    said = [answers(messages)[each] for each in ids(messages)]
    for to, decision, answer in zip(("Ada", "Bob"), decisions, said, strict=True):
        assert (answer == f"sent to {to}") is (decision is APPROVE)
    assert len(answers(messages)) == 2
    assert history_faults(model.asked[1].messages[1:]) == []


def test_a_malformed_call_with_the_id_of_a_good_one_is_told_apart() -> None:
    good = ToolCall(name="send", args={"to": "Ada"}, id="1")
    bad = InvalidToolCall(name="send", args="{", id="1", error="no end", type="invalid_tool_call")
    messages, model = ran(AIMessage("", tool_calls=[good], invalid_tool_calls=[bad]))

    first, second = ids(messages)
    assert first == "1" != second
    assert "nothing of it was run" in answers(messages)[first]
    assert "could not be parsed" in answers(messages)[second]
    assert history_faults(model.asked[1].messages[1:]) == []


@pytest.mark.parametrize(
    ("block", "key"),
    [
        ({"type": "tool_use", "name": "send", "input": {}}, "id"),
        ({"type": "tool_call", "name": "send", "args": {}}, "id"),
        ({"type": "function_call", "name": "send", "arguments": "{}", "id": "fc_1"}, "call_id"),
    ],
    ids=lambda each: each["type"] if isinstance(each, dict) else each,
)
def test_blocks_of_the_content_have_the_ids_of_their_calls(block: Any, key: str) -> None:
    text = {"type": "text", "text": "I send two."}
    messages, _ = ran(two([text, {**block, key: "1"}, {**block, key: "1"}]))

    made = next(each for each in messages if each.type == "ai")
    assert [each.get(key) for each in made.content if each["type"] != "text"] == ids(messages)
    assert made.content[0] == text
