"""A conversation goes on until the agent has nothing left to do."""

from __future__ import annotations

import asyncio

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from deepagents import create_deep_agent
from deepagents.events import ApprovalGiven, ApprovalRequest, Event, RunFailed, RunStarted
from deepagents.testing import ScriptedModel, call, calls
from deepagents_cli.approval import approve, refuse
from deepagents_cli.session import Ask, Decision, converse


def shown(model: ScriptedModel, ask: Ask) -> list[Event]:
    agent = create_deep_agent(model, interrupt_on={"write_file": True}, checkpointer=InMemorySaver())
    events: list[Event] = []
    with asyncio.Runner() as runner:
        converse(runner, agent, RunStarted("t", "go"), ask=ask, show=events.append)
    return events


def kinds(events: list[Event]) -> list[str]:
    return [event.type for event in events if event.type != "token"]


def test_each_question_is_answered_and_the_run_goes_on() -> None:
    model = ScriptedModel(
        call("write_file", file_path="/a", content="1"),
        call("write_file", file_path="/b", content="2"),
        "Both.",
    )

    assert kinds(shown(model, approve)) == [
        "run_started",
        *["tool_called", "approval_needed", "approval_given", "tool_finished"] * 2,
        "final_answer",
    ]


def test_calls_of_one_turn_are_asked_about_together() -> None:
    two = calls(*(("write_file", {"file_path": f"/{n}", "content": n}) for n in "ab"))
    events = shown(ScriptedModel(two, "Neither."), refuse)

    assert kinds(events).count("approval_needed") == 1
    given = [event for event in events if isinstance(event, ApprovalGiven)]
    assert [each.tool_call_id for each in given] == [each["id"] for each in two.tool_calls]
    assert [each.decision for each in given] == ["reject", "reject"]


def test_questions_of_parallel_subagents_are_answered_in_one_go() -> None:
    tasks = [("task", {"description": str(n), "subagent_type": "general-purpose"}) for n in (1, 2)]
    writes = [call("write_file", file_path=f"/{n}", content="x") for n in (1, 2)]

    events = shown(ScriptedModel(calls(*tasks), *writes, "one", "two", "Both."), approve)

    assert kinds(events).count("approval_needed") == 2
    assert kinds(events)[-1] == "final_answer"


def test_a_failure_is_an_event_and_then_an_error() -> None:
    model = ScriptedModel(ConnectionError("gone"))
    events: list[Event] = []
    agent = create_deep_agent(model, checkpointer=InMemorySaver())

    with asyncio.Runner() as runner, pytest.raises(ConnectionError):
        converse(runner, agent, RunStarted("t", "go"), ask=approve, show=events.append)

    assert events[-1] == RunFailed("ConnectionError", "gone")


def test_an_interrupted_question_is_an_event_and_leaves_the_call_open() -> None:
    model = ScriptedModel(call("write_file", file_path="/a", content="1"))
    agent = create_deep_agent(model, interrupt_on={"write_file": True}, checkpointer=InMemorySaver())
    events: list[Event] = []

    def leaves(request: ApprovalRequest, agent: str | None) -> Decision:
        raise KeyboardInterrupt

    with asyncio.Runner() as runner, pytest.raises(KeyboardInterrupt):
        converse(runner, agent, RunStarted("t", "go"), ask=leaves, show=events.append)

    assert events[-1].type == "run_stopped"
    assert agent.get_state({"configurable": {"thread_id": "t"}}).interrupts
