"""What a run does arrives as events, in order, from the right agent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, Interrupt

from deepagents import create_deep_agent
from deepagents.events import (
    ApprovalNeeded,
    Event,
    FinalAnswer,
    PlanChanged,
    SubagentFinished,
    SubagentStarted,
    Todo,
    Token,
    ToolCalled,
    ToolFinished,
    Usage,
)
from deepagents.observe import Observer, aobserve, interrupts_to_event, observe
from deepagents.testing import ScriptedModel, call, calls
from tests.conftest import Colour

CONFIG: Any = {"configurable": {"thread_id": "t"}}
HELLO: Any = {"messages": [("user", "hello")]}


class Observed:
    """An agent whose stream is events."""

    def __init__(self, agent: Any, observer: Observer | None = None) -> None:
        self._agent = agent
        self._observer = observer

    def stream(self, given: Any) -> Iterator[Event]:
        return observe(self._agent, given, CONFIG, observer=self._observer)

    def astream(self, given: Any) -> AsyncIterator[Event]:
        return aobserve(self._agent, given, CONFIG, observer=self._observer)


def events_of(colour: Colour, model: ScriptedModel, **options: Any) -> list[Event]:
    return colour.stream(Observed(create_deep_agent(model, **options)), HELLO)


def of_kind(events: list[Event], *kinds: type[Any]) -> list[Any]:
    return [event for event in events if isinstance(event, kinds)]


def test_an_answer_is_streamed_and_then_final(colour: Colour) -> None:
    events = events_of(colour, ScriptedModel("Good morning."))

    assert events == [Token("Good "), Token("morning."), FinalAnswer("Good morning.")]


def test_a_tool_call_is_followed_by_its_result(colour: Colour) -> None:
    asked = call("write_file", file_path="/a.txt", content="hi")

    events = events_of(colour, ScriptedModel(asked, "Done."))

    call_id = asked.tool_calls[0]["id"] or ""
    assert of_kind(events, ToolCalled, ToolFinished) == [
        ToolCalled("write_file", {"file_path": "/a.txt", "content": "hi"}, call_id),
        ToolFinished(call_id, "write_file", "success", "Updated file /a.txt"),
    ]


def test_a_failed_call_has_an_error_result(colour: Colour) -> None:
    events = events_of(colour, ScriptedModel(call("read_file", file_path="/none"), "No such file."))

    (finished,) = of_kind(events, ToolFinished)
    assert finished.status == "error"
    assert "/none" in finished.text


def test_a_plan_is_told_when_it_changes(colour: Colour) -> None:
    plan = [{"content": "look", "status": "in_progress"}, {"content": "act", "status": "pending"}]

    events = events_of(colour, ScriptedModel(call("write_todos", todos=plan), "Planned."))

    assert of_kind(events, PlanChanged) == [
        PlanChanged((Todo("look", "in_progress"), Todo("act", "pending")))
    ]


def test_tokens_that_were_used_are_told(colour: Colour) -> None:
    used = AIMessage("Hi", usage_metadata={"input_tokens": 7, "output_tokens": 2, "total_tokens": 9})

    assert of_kind(events_of(colour, ScriptedModel(used)), Usage) == [Usage(7, 2)]


def test_parallel_subagents_of_one_name_are_told_apart(colour: Colour) -> None:
    tasks = [("task", {"description": f"part {n}", "subagent_type": "general-purpose"}) for n in (1, 2)]
    model = ScriptedModel(calls(*tasks), "one", "two", "Both done.")

    events = events_of(colour, model)

    started = of_kind(events, SubagentStarted)
    assert [(each.name, each.task, each.agent) for each in started] == [
        ("general-purpose", "part 1", None),
        ("general-purpose", "part 2", None),
    ]
    assert {token.agent for token in of_kind(events, Token)} == {
        None,
        "general-purpose",
        "general-purpose 2",
    }
    finished = of_kind(events, SubagentFinished)
    assert {(each.call_id, each.status) for each in finished} == {
        (each.call_id, "success") for each in started
    }
    assert {each.text for each in finished} == {"one", "two"}
    assert of_kind(events, FinalAnswer) == [FinalAnswer("Both done.")]


def test_what_a_subagent_does_carries_its_name(colour: Colour) -> None:
    worker: Any = {
        "name": "writer",
        "description": "writes",
        "system_prompt": "",
        "model": ScriptedModel(call("write_file", file_path="/a", content="x"), "written"),
    }
    model = ScriptedModel(call("task", description="write", subagent_type="writer"), "Done.")

    events = events_of(colour, model, subagents=[worker])

    (called,) = of_kind(events, ToolCalled)
    (finished,) = of_kind(events, ToolFinished)
    assert (called.name, called.agent) == ("write_file", "writer")
    assert (finished.status, finished.agent) == ("success", "writer")


def test_calls_that_wait_for_a_person_are_asked_for_once(colour: Colour) -> None:
    tasks = [("task", {"description": str(n), "subagent_type": "general-purpose"}) for n in (1, 2)]
    writes = [call("write_file", file_path=f"/{n}", content="x") for n in (1, 2)]
    model = ScriptedModel(calls(*tasks), *writes, "one", "two", "Done.")
    agent = create_deep_agent(model, interrupt_on={"write_file": True}, checkpointer=InMemorySaver())
    observed = Observed(agent, Observer())

    first = colour.stream(observed, HELLO)
    needed = of_kind(first, ApprovalNeeded)
    answers = {each.requests[0].interrupt_id: {"decisions": [{"type": "approve"}]} for each in needed}
    second = colour.stream(observed, Command(resume=answers))

    assert {each.requests[0].args["file_path"] for each in needed} == {"/1", "/2"}
    assert {each.agent for each in needed} == {"general-purpose", "general-purpose 2"}
    assert {each.agent for each in of_kind(second, ToolFinished)} == {each.agent for each in needed}
    assert of_kind(second, ApprovalNeeded) == []
    assert of_kind(second, FinalAnswer) == [FinalAnswer("Done.")]


def test_a_rejected_call_is_finished_with_an_error(colour: Colour) -> None:
    model = ScriptedModel(call("write_file", file_path="/a", content="x"), "As you wish.")
    agent = create_deep_agent(model, interrupt_on={"write_file": True}, checkpointer=InMemorySaver())
    observed = Observed(agent, Observer())
    (needed,) = of_kind(colour.stream(observed, HELLO), ApprovalNeeded)
    no = {needed.requests[0].interrupt_id: {"decisions": [{"type": "reject", "message": "not now"}]}}

    events = colour.stream(observed, Command(resume=no))

    (finished,) = of_kind(events, ToolFinished)
    assert finished.status == "error"
    assert "not now" in finished.text


def test_a_repaired_history_is_not_told_again(colour: Colour) -> None:
    model = ScriptedModel(call("write_file", file_path="/a", content="x"), "Something else, then.")
    agent = create_deep_agent(model, interrupt_on={"write_file": True}, checkpointer=InMemorySaver())
    colour.stream(Observed(agent), HELLO)

    events = colour.stream(Observed(agent), {"messages": [("user", "never mind")]})

    assert of_kind(events, ToolCalled, ToolFinished) == []
    assert events[-1] == FinalAnswer("Something else, then.")


def test_an_error_of_the_model_reaches_the_caller(colour: Colour) -> None:
    with pytest.raises(ConnectionError, match="gone"):
        events_of(colour, ScriptedModel(ConnectionError("gone")))


def test_interrupts_of_other_kinds_ask_for_no_approval() -> None:
    assert interrupts_to_event([Interrupt(value="what is your name?", id="i")]) is None


def test_chunks_of_any_shape_are_understood() -> None:
    see = Observer().see

    assert list(see(((), "updates", {"model": None}))) == []
    assert list(see(((), "updates", {"tools": [{"messages": []}, None]}))) == []
    assert list(see(((), "updates", {"model": {"messages": AIMessage("alone")}}))) == [FinalAnswer("alone")]
