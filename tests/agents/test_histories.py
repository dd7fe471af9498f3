"""Every message has an id, and a history that is read back is the one that ran, on each saver."""

from __future__ import annotations

import os
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, Overwrite

from deepagents import create_deep_agent
from deepagents.testing import Asked, ScriptedModel, call, calls
from tests.conftest import CallMode

pytestmark = pytest.mark.slow


def new_thread() -> Any:
    return {"configurable": {"thread_id": os.urandom(8).hex()}}


@pytest.fixture
def thread() -> Any:
    return new_thread()


def shape(messages: Any) -> list[tuple[str | None, str, Any]]:
    return [(each.id, each.type, each.content) for each in messages]


def read_back(call_mode: CallMode, agent: Any, thread: Any) -> Any:
    return call_mode.call(agent, "get_state", thread).values["messages"]


MIXED: list[Any] = [
    ["a text in a list", ("ai", "a pair"), {"role": "user", "content": "a dict"}, HumanMessage("an object")],
    [HumanMessage([{"type": "text", "text": "blocks"}]), ("user", [{"type": "text", "text": "blocks"}])],
    Overwrite(["only this", ("ai", "and this")]),
]
SINGLE: list[Any] = [
    "a text",
    ("user", "a pair"),
    {"role": "user", "content": "a dict"},
    {"role": "user", "content": [{"type": "text", "text": "blocks"}]},
    HumanMessage("an object"),
    AIMessageChunk(content="a chunk"),
]


def test_whatever_is_given_gets_an_id_that_stays(call_mode: CallMode, saver: Any) -> None:
    agent = create_deep_agent(ScriptedModel(always=lambda _: "Hi."), checkpointer=saver)
    for given in [*MIXED, *(SINGLE if isinstance(saver, InMemorySaver) else [])]:
        thread = new_thread()
        live = call_mode.invoke(agent, {"messages": given}, thread)["messages"]
        assert all(each.id for each in live), given
        assert shape(read_back(call_mode, agent, thread)) == shape(live), given

        call_mode.call(agent, "update_state", thread, {"messages": given})
        updated = read_back(call_mode, agent, thread)
        assert all(each.id for each in updated), given
        assert shape(read_back(call_mode, agent, thread)) == shape(updated), given

        live = call_mode.invoke(agent, {"messages": "more"}, thread)["messages"]
        assert shape(live)[: len(updated)] == shape(updated), given
        assert shape(read_back(call_mode, agent, thread)) == shape(live), given


@tool
def note(said: str) -> Command[Any]:
    """Write messages of every form from within a tool."""
    forms = [
        ToolMessage(said, tool_call_id="note"),
        ("user", "a pair"),
        {"role": "user", "content": "a dict"},
    ]
    return Command(update={"messages": [*forms, AIMessageChunk(content="a chunk")]})


def test_what_tools_write_with_a_command_gets_ids_in_main_and_child(
    call_mode: CallMode, saver: Any, thread: Any
) -> None:
    wrote: Any = AIMessage("", tool_calls=[{"name": "note", "args": {"said": "noted"}, "id": "note"}])
    histories: list[Any] = []

    def child_says(asked: Asked) -> Any:
        histories.append(asked.messages[1:])
        return wrote if len(asked.messages) == 2 else "Child done."

    child: Any = {"name": "c", "description": "c", "model": ScriptedModel(always=child_says), "tools": [note]}
    script = [wrote, call("task", description="Go", subagent_type="c"), "Done."]
    with ScriptedModel(*script) as model:
        agent = create_deep_agent(model, tools=[note], subagents=[child], checkpointer=saver)
        live = call_mode.invoke(agent, {"messages": "Go"}, thread)["messages"]

    assert all(each.id for each in live)
    assert all(each.id for history in histories for each in history)
    assert shape(histories[-1])[: len(histories[0])] == shape(histories[0])
    assert shape(read_back(call_mode, agent, thread)) == shape(live)


def test_edits_removals_and_a_fresh_start_are_read_back(call_mode: CallMode, saver: Any, thread: Any) -> None:
    agent = create_deep_agent(ScriptedModel(always=lambda _: "Hi."), checkpointer=saver)
    first, answer = call_mode.invoke(agent, {"messages": "one"}, thread)["messages"]
    changes: list[Any] = [
        [HumanMessage("one, edited", id=first.id), RemoveMessage(id="unknown")],
        [RemoveMessage(id=answer.id), AIMessage("put back", id=answer.id)],
        RemoveMessage(id=first.id),
        [HumanMessage("lost"), RemoveMessage(id=REMOVE_ALL_MESSAGES), answer, "fresh"],
    ]
    seen: list[list[str]] = []
    for change in changes:
        call_mode.call(agent, "update_state", thread, {"messages": change})
        seen.append([each.text for each in read_back(call_mode, agent, thread)])
        live = call_mode.invoke(agent, {"messages": "next"}, thread)["messages"]
        assert shape(read_back(call_mode, agent, thread)) == shape(live)

    assert seen[0] == ["one, edited", "Hi."]
    assert seen[1] == ["one, edited", "next", "Hi.", "put back"]
    assert seen[2] == ["next", "Hi.", "put back", "next", "Hi."]
    assert seen[3] == ["Hi.", "fresh"]


def test_a_run_that_failed_goes_on_with_the_same_history(
    call_mode: CallMode, saver: Any, thread: Any
) -> None:
    with ScriptedModel(call("ls", path="/"), OSError("away"), "Done.") as model:
        agent = create_deep_agent(model, checkpointer=saver)
        with pytest.raises(OSError, match="away"):
            call_mode.invoke(agent, {"messages": ["one", ("user", "two")]}, thread)
        before = read_back(call_mode, agent, thread)
        live = call_mode.invoke(agent, None, thread)["messages"]

    assert len(before) == 4
    assert shape(live)[:4] == shape(before)
    assert shape(read_back(call_mode, agent, thread)) == shape(live)


def long_run(steps: int) -> ScriptedModel:
    """Call a tool in each turn, two at a time, and answer in the end; any turn can be taken again."""

    def say(asked: Asked) -> Any:
        turn = sum(message.type == "ai" for message in asked.messages)
        return calls(("ls", {"path": "/"}), ("ls", {"path": "/x"})) if turn < steps else "Done."

    return ScriptedModel(always=say)


def test_a_long_run_is_read_back_and_forked_at_old_points(
    call_mode: CallMode, saver: Any, thread: Any
) -> None:
    agent = create_deep_agent(long_run(32), checkpointer=saver)
    streamed = call_mode.stream(agent, {"messages": "Go"}, thread, stream_mode="checkpoints")
    whole = read_back(call_mode, agent, thread)
    for point in streamed[:: len(streamed) // 8]:
        held = call_mode.call(agent, "get_state", point["config"]).values.get("messages", [])
        assert shape(held) == shape(point["values"].get("messages", []))

    asked = [point for point in streamed if point["next"] == ["model"]]
    old = asked[len(asked) * 3 // 4]
    before = old["values"]["messages"]
    forked = call_mode.call(agent, "update_state", old["config"], {"messages": [("user", "another way")]})
    live = call_mode.invoke(agent, None, forked)["messages"]
    assert shape(live)[: len(before)] == shape(before)
    assert live[len(before)].text == "another way"
    assert shape(read_back(call_mode, agent, thread)) == shape(live)

    again = call_mode.invoke(agent, None, old["config"])["messages"]
    assert shape(again)[: len(before)] == shape(before)
    assert [each.type for each in again] == [each.type for each in whole]
    assert shape(read_back(call_mode, agent, thread)) == shape(again)


def short_turns(call_mode: CallMode, saver: Any, durability: str) -> None:
    """Take many turns on a new thread, and read them back."""
    thread = new_thread()
    agent = create_deep_agent(
        ScriptedModel(always=lambda asked: f"{len(asked.messages)}."), checkpointer=saver
    )
    live: Any = []
    for number in range(32):
        live = call_mode.invoke(agent, {"messages": f"turn {number}"}, thread, durability=durability)[
            "messages"
        ]

    assert [each.text for each in live[::2]] == [f"turn {number}" for number in range(32)]
    assert shape(read_back(call_mode, agent, thread)) == shape(live)


def test_many_short_turns_are_read_back(call_mode: CallMode, saver: Any) -> None:
    short_turns(call_mode, saver, "exit" if call_mode.name == "sync" else "async")


def test_they_are_read_back_however_they_were_saved(call_mode: CallMode) -> None:
    for durability in ("sync", "async" if call_mode.name == "sync" else "exit"):
        short_turns(call_mode, InMemorySaver(), durability)
