"""A history that a crash left with unanswered calls is valid again before the model reads it."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, InvalidToolCall, ToolCall, ToolMessage

from deepagents import create_deep_agent
from deepagents.testing import ScriptedModel
from tests.conftest import Colour


def wants(*ids: str) -> AIMessage:
    return AIMessage("", tool_calls=[ToolCall(name="ls", args={"path": "/"}, id=each) for each in ids])


def read_by_model(colour: Colour, *history: Any) -> list[Any]:
    with ScriptedModel("Hello.") as model:
        colour.invoke(create_deep_agent(model), {"messages": [*history]})
    return model.asked[0].messages[1:]


def test_an_unanswered_call_gets_an_answer_right_behind_it(colour: Colour) -> None:
    read = read_by_model(colour, HumanMessage("Go"), wants("1"), HumanMessage("Still there?"))

    assert [message.type for message in read] == ["human", "ai", "tool", "human"]
    assert (read[2].tool_call_id, read[2].status) == ("1", "error")
    assert "may have been cancelled" in read[2].text


def test_only_what_is_missing_is_added(colour: Colour) -> None:
    read = read_by_model(
        colour, HumanMessage("Go"), wants("1", "2"), ToolMessage("x", tool_call_id="2"), HumanMessage("?")
    )

    assert sorted(message.tool_call_id for message in read if message.type == "tool") == ["1", "2"]


def test_an_id_used_again_later_hides_nothing(colour: Colour) -> None:
    read = read_by_model(
        colour,
        HumanMessage("Go"),
        wants("1"),
        HumanMessage("?"),
        wants("1"),
        ToolMessage("x", tool_call_id="1"),
    )

    assert [message.type for message in read] == ["human", "ai", "tool", "human", "ai", "tool"]


def test_malformed_calls_are_told_apart(colour: Colour) -> None:
    broken = InvalidToolCall(name="ls", args="{", id="1", error="no end", type="invalid_tool_call")
    read = read_by_model(
        colour, HumanMessage("Go"), AIMessage("", invalid_tool_calls=[broken]), HumanMessage("?")
    )

    assert "could not be parsed" in read[2].text


def test_a_whole_history_is_left_as_it_is(colour: Colour) -> None:
    history = [HumanMessage("Go", id="a"), wants("1"), ToolMessage("x", tool_call_id="1", id="c")]

    assert [message.type for message in read_by_model(colour, *history)] == ["human", "ai", "tool"]


def test_an_answer_that_stands_too_late_is_moved_behind_its_call(colour: Colour) -> None:
    late = ToolMessage("late", tool_call_id="1")
    read = read_by_model(
        colour, HumanMessage("Go"), wants("1"), HumanMessage("Wait"), late, HumanMessage("So?")
    )

    assert [message.type for message in read] == ["human", "ai", "tool", "human", "human"]
    assert read[2].text == "late"
