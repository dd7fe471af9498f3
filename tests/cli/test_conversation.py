"""A conversation goes on until the agent has nothing left to do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from deepagents import create_deep_agent
from deepagents.events import ApprovalGiven, ApprovalNeeded, Event, RunFailed, RunStarted
from deepagents.testing import ScriptedModel, call, calls
from deepagents_cli.approval import ApproveAll, RefuseAll
from deepagents_cli.conversation import converse
from deepagents_cli.session import Decisions, Session


def shown(model: ScriptedModel, ask: ApproveAll | RefuseAll) -> list[Event]:
    agent = create_deep_agent(model, interrupt_on={"write_file": True}, checkpointer=InMemorySaver())
    events: list[Event] = []
    with asyncio.Runner() as runner:
        converse(runner, Session(agent, "t"), RunStarted("t", "go"), ask=ask, show=events.append)
    return events


def kinds(events: list[Event]) -> list[str]:
    return [event.type for event in events if event.type != "token"]


def test_each_question_is_answered_and_the_run_goes_on() -> None:
    model = ScriptedModel(
        call("write_file", file_path="/a", content="1"),
        call("write_file", file_path="/b", content="2"),
        "Both.",
    )

    assert kinds(shown(model, ApproveAll())) == [
        "run_started",
        *["tool_called", "approval_needed", "approval_given", "tool_finished"] * 2,
        "final_answer",
    ]


def test_calls_of_one_turn_are_asked_about_together() -> None:
    two = calls(*(("write_file", {"file_path": f"/{n}", "content": n}) for n in "ab"))
    ask = RefuseAll()

    events = shown(ScriptedModel(two, "Neither."), ask)

    assert kinds(events).count("approval_needed") == 1
    given = [event.tool_call_id for event in events if isinstance(event, ApprovalGiven)]
    assert given == [each["id"] for each in two.tool_calls]
    assert ask.refused == 2


def test_questions_of_parallel_subagents_are_answered_in_one_go() -> None:
    tasks = [("task", {"description": str(n), "subagent_type": "general-purpose"}) for n in (1, 2)]
    writes = [call("write_file", file_path=f"/{n}", content="x") for n in (1, 2)]

    events = shown(ScriptedModel(calls(*tasks), *writes, "one", "two", "Both."), ApproveAll())

    assert kinds(events).count("approval_needed") == 2
    assert kinds(events)[-1] == "final_answer"


def test_a_failure_is_an_event_and_then_an_error() -> None:
    model = ScriptedModel(ConnectionError("gone"))
    events: list[Event] = []
    agent = create_deep_agent(model, checkpointer=InMemorySaver())

    with asyncio.Runner() as runner, pytest.raises(ConnectionError):
        converse(runner, Session(agent, "t"), RunStarted("t", "go"), ask=ApproveAll(), show=events.append)

    assert events[-1] == RunFailed("ConnectionError", "gone")


def test_an_interrupted_question_is_an_event_and_leaves_the_call_open() -> None:
    model = ScriptedModel(call("write_file", file_path="/a", content="1"))
    agent = create_deep_agent(model, interrupt_on={"write_file": True}, checkpointer=InMemorySaver())
    events: list[Event] = []

    def leaves(needed: ApprovalNeeded, report: Callable[[ApprovalGiven], None]) -> Decisions:
        raise KeyboardInterrupt

    with asyncio.Runner() as runner:
        session = Session(agent, "t")
        with pytest.raises(KeyboardInterrupt):
            converse(runner, session, RunStarted("t", "go"), ask=leaves, show=events.append)

        assert events[-1].type == "run_stopped"
        assert runner.run(session.pending()) is not None
