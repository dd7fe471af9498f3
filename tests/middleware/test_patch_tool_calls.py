"""A history that a crash left with unanswered calls is valid again before the model reads it."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, InvalidToolCall, ToolCall, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from deepagents import create_deep_agent
from deepagents.testing import ScriptedModel, call
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


def test_a_number_too_large_for_a_checkpoint_does_not_end_the_run(colour: Colour) -> None:
    with ScriptedModel(call("read_file", file_path="/a.txt", offset=10**30), "Done.") as model:
        agent = create_deep_agent(model, checkpointer=InMemorySaver())
        result = colour.invoke(agent, {"messages": "Go"}, {"configurable": {"thread_id": "1"}})

    assert [message.type for message in result["messages"]] == ["human", "ai", "tool", "ai"]
    assert result["messages"][1].tool_calls[0]["args"]["offset"] == "1" + "0" * 30
    assert result["messages"][2].status == "error"


def test_arguments_that_can_be_saved_stay_as_they_are(colour: Colour) -> None:
    args = {"path": "/", "n": [2**64 - 1, -(2**63), True, 1.5, {"x": None}]}
    with ScriptedModel(AIMessage("", tool_calls=[ToolCall(name="ls", args=args, id="1")]), "Done.") as model:
        result = colour.invoke(create_deep_agent(model), {"messages": "Go"})

    assert result["messages"][1].tool_calls[0]["args"] == args


def nested(levels: int) -> Any:
    value: Any = "core"
    for _ in range(levels):
        value = [value]
    return value


def depth(value: Any) -> int:
    levels = 0
    while isinstance(value, list):
        levels, value = levels + 1, value[0]
    return levels


@pytest.mark.parametrize("levels", [350, 480, 900, 20_000])
def test_arguments_nested_without_end_do_not_end_the_run(colour: Colour, levels: int) -> None:
    with ScriptedModel(call("ls", path="/", deep=nested(levels)), "Done.") as model:
        agent = create_deep_agent(model, checkpointer=InMemorySaver())
        result = colour.invoke(agent, {"messages": "Go"}, {"configurable": {"thread_id": "1"}})

    kept = result["messages"][1].tool_calls[0]["args"]["deep"]
    assert [message.type for message in result["messages"]] == ["human", "ai", "tool", "ai"]
    assert 90 < depth(kept) <= 100


def test_what_is_nested_too_deep_stays_readable(colour: Colour) -> None:
    with ScriptedModel(call("ls", path="/", deep=nested(110)), "Done.") as model:
        result = colour.invoke(create_deep_agent(model), {"messages": "Go"})

    kept = result["messages"][1].tool_calls[0]["args"]["deep"]
    while isinstance(kept, list):
        kept = kept[0]
    assert kept.count("[") == kept.count("]") > 0
    assert '"core"' in kept


def test_a_second_answer_to_one_call_is_dropped(colour: Colour) -> None:
    first, second = ToolMessage("x", tool_call_id="1"), ToolMessage("y", tool_call_id="1")
    read = read_by_model(colour, HumanMessage("Go"), wants("1"), first, second, HumanMessage("So?"))

    assert [message.type for message in read] == ["human", "ai", "tool", "human"]
    assert read[2].text == "x"


def test_an_answer_to_no_call_is_dropped(colour: Colour) -> None:
    stray = ToolMessage("x", tool_call_id="7")
    read = read_by_model(colour, stray, HumanMessage("Go"), AIMessage("Yes?"), stray, HumanMessage("So?"))

    assert [message.type for message in read] == ["human", "ai", "human"]


def test_calls_that_share_an_id_keep_an_answer_each(colour: Colour) -> None:
    answers = ToolMessage("x", tool_call_id="1"), ToolMessage("y", tool_call_id="1")
    read = read_by_model(colour, HumanMessage("Go"), wants("1", "1"), *answers, HumanMessage("So?"))

    assert [message.text for message in read if message.type == "tool"] == ["x", "y"]
