"""Events are plain values that any program can read."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from deepagents import events
from deepagents.events import (
    ApprovalGiven,
    ApprovalNeeded,
    ApprovalRequest,
    Event,
    FinalAnswer,
    PlanChanged,
    RunFailed,
    RunStarted,
    RunStopped,
    SubagentFinished,
    SubagentStarted,
    Todo,
    Token,
    ToolCalled,
    ToolFinished,
    Usage,
)

EXAMPLES: list[Event] = [
    RunStarted("t1", "tidy up", "anthropic:some", "/files"),
    Token("Hel", "researcher"),
    ToolCalled("ls", {"path": "/"}, "c1"),
    ToolFinished("c1", "ls", "success", "/a.txt"),
    PlanChanged((Todo("read", "completed"),)),
    SubagentStarted("researcher", "find it", "c2"),
    SubagentFinished("researcher", "c2", "error", "Error: no"),
    ApprovalNeeded((ApprovalRequest("i1", "write_file", {"file_path": "/a"}),)),
    ApprovalGiven("i1", "write_file", "reject", "not now"),
    Usage(10, 2),
    FinalAnswer("Done."),
    RunStopped("t1"),
    RunFailed("ValueError", "no"),
]


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: event.type)
def test_an_event_becomes_json_with_its_kind(event: Event) -> None:
    read_back = json.loads(json.dumps(event.as_dict()))

    assert read_back.pop("type") == event.type
    assert read_back.keys() == set(type(event).__slots__)


def test_every_kind_of_event_is_an_example_and_has_a_name_of_its_own() -> None:
    assert {type(event) for event in EXAMPLES} == set(get_args(events.Event))
    assert len({event.type for event in EXAMPLES}) == len(EXAMPLES)


def test_nested_values_come_along() -> None:
    event = ApprovalNeeded((ApprovalRequest("i1", "execute", {"command": "ls"}, allowed=("approve",)),))

    assert event.as_dict()["requests"] == (
        {
            "interrupt_id": "i1",
            "name": "execute",
            "args": {"command": "ls"},
            "description": "",
            "allowed": ("approve",),
        },
    )
