"""Events are plain values that any program can read."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, fields, is_dataclass
from typing import Any, get_args

import pytest

from deepagents import Price, events
from deepagents._state.runtime import EmittedType
from deepagents.events import (
    VERSION,
    AnswerBroken,
    ApprovalGiven,
    ApprovalNeeded,
    ApprovalRequest,
    CacheBroken,
    CommandEnded,
    CommandOutput,
    ContextCompacted,
    Custom,
    Event,
    FinalAnswer,
    HostRefused,
    LimitNear,
    LimitReached,
    ModelFailed,
    ModelRetry,
    PlanChanged,
    QuestionAsked,
    Reasoning,
    RunFailed,
    RunStarted,
    RunStopped,
    SubagentFinished,
    SubagentStarted,
    TaskChanged,
    Todo,
    Token,
    ToolCalled,
    ToolFinished,
    ToolProgress,
    Usage,
    from_dict,
)

EXAMPLES: list[Event] = [
    RunStarted("t1", "tidy up", "anthropic:some", "/files"),
    Reasoning("Let me see."),
    ModelFailed("TimeoutError"),
    ModelRetry("the model is overloaded", 8.0, 4, 8),
    AnswerBroken("length"),
    TaskChanged("t", "researcher", "running"),
    ContextCompacted(agent="researcher"),
    CacheBroken("messages", 0, "compaction", 1_200),
    LimitNear("tokens", 1_000.0, 900.0),
    LimitReached("seconds", 60.0, 61.5),
    Custom({"progress": 0.5}),
    Token("Hel", agent="researcher 2", agent_name="researcher", agent_call_id="c2"),
    ToolCalled("ls", {"path": "/"}, "c1"),
    CommandOutput("c1", "built\n", "stderr", "command-1"),
    CommandEnded("c1", "command-1", "serve", 143),
    ToolProgress("c1", "mcp__build__run", 3.0, 7.0, "linking"),
    HostRefused("c1", "evil.example:443 is refused: it is not among the allowed hosts (good.example)"),
    ToolFinished("c1", "ls", "success", "/a.txt"),
    PlanChanged((Todo("read", "completed"),)),
    SubagentStarted("researcher", "find it", "c2", "researcher 2"),
    SubagentFinished("researcher", "c2", "error", "Error: no", "researcher 2"),
    ApprovalNeeded((ApprovalRequest("i1", "write_file", {"file_path": "/a"}, tool_call_id="c3"),)),
    QuestionAsked("i2", {"text": "which?"}),
    ApprovalGiven("i1", "write_file", "reject", "not now", "c3"),
    Usage(10, 2, cached_tokens=8, cache_write_tokens=1, reasoning_tokens=1),
    FinalAnswer("Done.", {"done": True}),
    RunStopped("t1"),
    RunFailed("ValueError", "no"),
]


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: event.type)
def test_an_event_becomes_json_with_its_kind(event: Event) -> None:
    read_back = json.loads(json.dumps(event.as_dict()))

    assert read_back.pop("type") == event.type
    assert read_back.pop("version") == VERSION
    whose = {"agent_name", "agent_call_id"}
    assert read_back.keys() - whose == {each.name for each in fields(event)} - whose


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: event.type)
def test_an_event_comes_back_from_json(event: Event) -> None:
    assert from_dict(json.loads(json.dumps(event.as_dict()))) == event
    assert from_dict(event.as_dict()) == event


def test_a_reader_passes_over_what_newer_writers_add() -> None:
    assert from_dict({"type": "token", "version": 1, "text": "a", "call_mode": "red"}) == Token("a")


@pytest.mark.parametrize(
    ("plain", "told"),
    [
        ({"type": "tokn", "text": "a"}, "'tokn'"),
        ({"text": "a"}, "None"),
        ({"type": ["token"], "text": "a"}, "token"),
        ({"type": "token", "version": VERSION + 1, "text": "a"}, f"version {VERSION + 1}"),
        ({"type": "token"}, "text"),
        ({"type": "usage", "input_tokens": "many", "output_tokens": 1}, "input_tokens"),
    ],
)
def test_what_is_no_event_is_refused(plain: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        from_dict(plain)


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
            "tool_call_id": None,
        },
    )


def test_what_the_graph_writes_itself_is_an_event() -> None:
    assert set(get_args(EmittedType)) < {each.type for each in get_args(Event)}


def test_what_calls_used_adds_up_and_has_a_cost() -> None:
    first = Usage(1_000_000, 10, cached_tokens=500_000)
    second = Usage(1_000_000, 100_000)

    assert (first.tokens + second.tokens).cost(Price(2, 8, cached_input=0.5)) == pytest.approx(4.05008)


CLASSES = [each for each in vars(events).values() if isinstance(each, type) and is_dataclass(each)]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda each: each.__name__)
def test_nobody_changes_what_is_told_of_a_run(kind: Any) -> None:
    told = object.__new__(kind)

    for each in fields(kind):
        with pytest.raises(FrozenInstanceError, match=each.name):
            setattr(told, each.name, None)
        with pytest.raises(FrozenInstanceError, match=each.name):
            delattr(told, each.name)


def test_nobody_changes_what_an_event_counted() -> None:
    counted: Any = Usage(10, 10).tokens

    with pytest.raises(FrozenInstanceError):
        counted.input = 0
