"""A history that a strict provider would refuse is told from one that it takes, and why."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage

from deepagents.testing import history_faults

ASKED = HumanMessage("Go")


def wants(*ids: str) -> AIMessage:
    return AIMessage("", tool_calls=[ToolCall(name="ls", args={}, id=each) for each in ids])


def result(call_id: str) -> ToolMessage:
    return ToolMessage("x", tool_call_id=call_id)


def test_a_valid_history_has_no_faults() -> None:
    history = [
        SystemMessage("Be kind."),
        ASKED,
        wants("1", "2"),
        result("2"),
        result("1"),
        AIMessage("Done."),
    ]

    assert history_faults(history) == []
    assert history_faults([*history, HumanMessage("More"), wants("1"), result("1")]) == []


@pytest.mark.parametrize(
    ("history", "fault"),
    [
        ([ASKED, wants("1")], "message 1: no result for call '1'"),
        ([ASKED, wants("1", "2"), result("1"), ASKED], "message 1: no result for call '2'"),
        (
            [ASKED, wants("1", "1"), result("1"), result("1")],
            "message 1: several calls have the id '1'",
        ),
        ([ASKED, result("1")], "message 1: a result that does not follow its call '1'"),
        (
            [ASKED, wants("1"), result("1"), ASKED, result("1")],
            "message 4: a result that does not follow its call '1'",
        ),
        ([ASKED, wants("1"), result("1"), result("1")], "message 3: a second result for call '1'"),
        ([ASKED, SystemMessage("Late")], "message 1: a system message behind others"),
        ([SystemMessage("Alone")], "there is no message to answer"),
    ],
)
def test_each_fault_is_named(history: list[BaseMessage], fault: str) -> None:
    assert history_faults(history) == [fault]


def test_a_result_behind_another_message_counts_as_missing_and_as_astray() -> None:
    assert history_faults([ASKED, wants("1"), HumanMessage("Wait"), result("1")]) == [
        "message 1: no result for call '1'",
        "message 3: a result that does not follow its call '1'",
    ]
