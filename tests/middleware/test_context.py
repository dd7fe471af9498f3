"""A request shows a summary in place of what it stands for, and every live message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from deepagents.middleware.summarization.clipping import Clipping
from deepagents.middleware.summarization.context import CompactionState, ContextReader
from deepagents.middleware.summarization.counting import ContextCounter

SUMMARY = HumanMessage("What happened so far.", id="summary")


def visible(
    messages: list[AnyMessage],
    made: Any,
    hidden: dict[str, None] | None = None,
    *,
    state: list[AnyMessage] | None = None,
) -> list[AnyMessage]:
    reader = ContextReader(ContextCounter(), Clipping())
    return reader.show(messages, CompactionState(made, hidden or {}), own=state).messages


def talk(many: int, *, ids: bool = True) -> list[AnyMessage]:
    return [HumanMessage(f"message {at}", id=f"m{at}" if ids else None) for at in range(many)]


def event(cutoff: Any, **more: Any) -> dict[str, Any]:
    return {"cutoff_index": cutoff, "summary_message": SUMMARY, "file_path": None, **more}


def texts(messages: Sequence[AnyMessage]) -> list[str]:
    return [each.text.removeprefix("message ") for each in messages]


def ids(many: int) -> dict[str, None]:
    return dict.fromkeys(f"m{at}" for at in range(many))


def test_what_was_never_summarised_is_handed_on_as_it_is() -> None:
    messages = talk(3)

    assert visible(messages, None, ids(2)) is messages


def test_a_summary_stands_first_in_place_of_what_it_sums_up() -> None:
    shown = visible(talk(5), event(3), ids(3))

    assert shown[0] is SUMMARY
    assert texts(shown[1:]) == ["3", "4"]


def test_a_result_that_stands_in_for_a_summarised_one_is_hidden_with_its_call() -> None:
    call = AIMessage("", id="m1", tool_calls=[{"name": "ls", "args": {}, "id": "1"}])
    messages = [*talk(1), call, ToolMessage("lost", tool_call_id="1", id="new"), *talk(5)[3:]]

    assert texts(visible(messages, event(3), ids(3))[1:]) == ["3", "4"]


@pytest.mark.parametrize("left", ["m2", "m6", "m8"])
def test_while_anything_is_left_of_what_there_was_the_summary_is_shown(left: str) -> None:
    messages: list[AnyMessage] = [HumanMessage("new", id="n1")]
    state = [HumanMessage("left", id=left), *messages]
    made = event(6, kept_ids=["m6", "m8"])

    assert visible(messages, made, ids(6), state=state) == [SUMMARY, *messages]


@pytest.mark.parametrize("hidden", [{}, ids(3)])
def test_a_summary_that_stands_there_already_is_not_shown_twice(hidden: dict[str, None]) -> None:
    messages = talk(5)
    shown = visible(messages, event(3), hidden)

    assert visible(shown, event(3), hidden, state=messages) == shown


def test_without_recorded_ids_positions_count() -> None:
    assert texts(visible(talk(5), event(3))[1:]) == ["3", "4"]
    assert visible(talk(2), event(3)) == [SUMMARY]


def test_messages_without_an_id_are_shown_wherever_they_stand() -> None:
    first, last = HumanMessage("first"), HumanMessage("last")

    assert texts(visible([first, *talk(5), last], event(3), ids(3))[1:]) == ["first", "3", "4", "last"]


def test_messages_without_an_id_go_by_their_position_where_no_ids_were_recorded() -> None:
    assert texts(visible(talk(5, ids=False), event(3))[1:]) == ["3", "4"]


def test_a_result_without_an_id_goes_with_its_call() -> None:
    asked = AIMessage("", tool_calls=[{"name": "ls", "args": {}, "id": "c"}], id="m1")
    made_up = ToolMessage("Cancelled.", tool_call_id="c")
    messages = [talk(1)[0], asked, made_up, *talk(5)[2:]]

    assert visible(messages, event(2), ids(2))[1:] == messages[3:]
    assert visible(messages, event(1), ids(1))[1:] == messages[1:]


# Reasoning.

THOUGHTS: list[Any] = [
    {"type": "thinking", "thinking": "hm", "signature": "s"},
    {"type": "redacted_thinking", "data": "x"},
    {"type": "reasoning_content", "reasoning_content": {"text": "hm"}},
    {"type": "reasoning", "reasoning": "hm"},
    {"type": "text", "text": "done"},
]


def thought(message_id: str = "m2", content: Any = THOUGHTS, **metadata: str) -> AIMessage:
    return AIMessage(content, id=message_id, response_metadata=metadata)


def kinds(message: AnyMessage) -> list[str]:
    return [cast("dict[str, str]", block)["type"] for block in message.content]


@pytest.mark.parametrize(
    ("metadata", "left"),
    [
        ({}, ["reasoning", "text"]),
        ({"model_provider": "anthropic"}, ["text"]),
        ({"model_provider": "bedrock_converse", "model_name": "eu.anthropic.claude-4"}, ["text"]),
        ({"model_provider": "bedrock", "model_id": "anthropic.claude-4"}, ["text"]),
        ({"model_provider": "bedrock_converse", "model_name": "nova"}, [block["type"] for block in THOUGHTS]),
        ({"model_provider": "openai"}, [block["type"] for block in THOUGHTS]),
    ],
)
def test_reasoning_bound_to_its_context_is_not_carried_over(
    metadata: dict[str, str], left: list[str]
) -> None:
    message = thought(**metadata)

    shown = visible([*talk(2), message], event(2, kept_ids=["m2"]), ids(2))

    assert kinds(shown[1]) == left
    assert kinds(message) == [block["type"] for block in THOUGHTS]


def test_answers_that_were_there_lose_their_reasoning_whatever_is_deleted() -> None:
    messages = [*talk(2), thought("m2"), thought("m3"), HumanMessage("so", id="m5"), thought("m6")]
    made = event(2, kept_ids=["m2", "gone", "m3"], created_at_index=9)

    shown = visible(messages, made, ids(2))

    assert [kinds(each) for each in shown[1:3]] == [["reasoning", "text"]] * 2
    assert shown[3:] == messages[4:]


def test_plain_text_stays_the_same_message() -> None:
    message = AIMessage("done", id="m2")

    assert visible([*talk(2), message], event(2, kept_ids=["m2"]), ids(2))[1] is message


def test_a_message_is_looked_at_once() -> None:
    reader = ContextReader(ContextCounter(), Clipping())
    made, hidden = event(2, kept_ids=["m2"]), ids(2)
    messages = [*talk(2), thought()]
    memory = CompactionState(cast(Any, made), hidden)
    first = reader.show(messages, memory).messages
    second = reader.show([*messages, HumanMessage("so", id="m3")], CompactionState(cast(Any, made), hidden))

    assert [each is other for each, other in zip(first, second.messages, strict=False)] == [True, True]
    assert second.messages[2].text == "so"


# Any changes.


@given(st.data())
def test_whatever_is_deleted_added_or_changed_every_live_message_is_shown_in_order(
    data: st.DataObject,
) -> None:
    many = data.draw(st.integers(1, 12))
    cutoff = data.draw(st.integers(1, many))
    messages = talk(many)
    for at in range(data.draw(st.integers(0, 8))):
        place = data.draw(st.integers(0, len(messages)))
        match data.draw(st.sampled_from(["delete", "add", "change"])):
            case "delete":
                del messages[place : place + 1]
            case "add":
                messages.insert(place, HumanMessage(f"new {at}", id=f"n{at}"))
            case _:
                messages[place : place + 1] = [
                    HumanMessage("changed", id=each.id) for each in messages[place : place + 1]
                ]
    hidden = ids(cutoff)

    made = event(cutoff, kept_ids=[f"m{at}" for at in range(cutoff, many)])

    live = [each for each in messages if each.id not in hidden]
    is_any_left = any(each.id in {*hidden, *made["kept_ids"]} for each in messages)
    assert visible(messages, made, hidden) == ([SUMMARY, *live] if is_any_left else messages)
