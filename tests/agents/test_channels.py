"""The unnamed parts of LangGraph that `_channels` leans on still do what it needs."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import HumanMessage, RemoveMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, interrupt

from deepagents import create_deep_agent
from deepagents._state.delta_channels import MessagesChannel, messages_channel
from deepagents._state.runtime import (
    MOST_REMEMBERED,
    answer_given,
    in_graph,
    read_channel,
    reducers_of,
    run_memory,
    running_channels,
    write_channel,
)
from deepagents._state.schema import DeepAgentState
from deepagents.backends.file_changes import reduce_files
from deepagents.middleware.filesystem.state import Kept
from deepagents.testing import ScriptedModel, call, calls
from tests.conftest import CallMode

THREAD: Any = {"configurable": {"thread_id": "1"}}


def text(content: str) -> dict[str, Any]:
    return {"content": content, "encoding": "utf-8"}


def test_a_tool_sees_its_own_writes_and_they_reach_the_state(call_mode: CallMode) -> None:
    @tool
    def probe() -> str:
        """Write, then read."""
        write_channel("files", {"/a.txt": text("A")})
        return read_channel("files")["/a.txt"]["content"]

    with ScriptedModel(call("probe"), "Done.") as model:
        result = call_mode.invoke(create_deep_agent(model, tools=[probe]), {"messages": "Go"})

    assert result["messages"][-2].text == "A"
    assert result["files"]["/a.txt"]["content"] == "A"


def test_a_model_call_that_failed_after_writing_is_made_again(call_mode: CallMode) -> None:
    long = "row\n" * 100_000
    with ScriptedModel(OSError("away"), "Done.") as model:
        agent = create_deep_agent(model, checkpointer=InMemorySaver())
        with pytest.raises(OSError, match="away"):
            call_mode.invoke(agent, {"messages": long}, THREAD)
        result = call_mode.invoke(agent, None, THREAD)

    assert result["messages"][-1].text == "Done."
    assert [each["content"] for each in result["files"].values()] == [long]


def test_parallel_tools_do_not_see_each_others_writes() -> None:
    seen: list[list[str]] = []

    @tool
    def probe(path: str) -> str:
        """Write one file and look at all."""
        write_channel("files", {path: text("x")})
        seen.append(sorted(read_channel("files")))
        return "ok"

    with ScriptedModel(calls(("probe", {"path": "/a"}), ("probe", {"path": "/b"})), "Done.") as model:
        result = create_deep_agent(model, tools=[probe]).invoke({"messages": "Go"})

    assert sorted(seen) == [["/a"], ["/b"]]
    assert sorted(result["files"]) == ["/a", "/b"]


def test_reducers_and_missing_channels_are_told() -> None:
    found: dict[str, Any] = {}

    @tool
    def probe() -> str:
        """Look around."""
        found.update(
            reducers=reducers_of(running_channels()),
            missing=read_channel("no_such_channel"),
            inside=in_graph(),
        )
        return "ok"

    with ScriptedModel(call("probe"), "Done.") as model:
        create_deep_agent(model, tools=[probe]).invoke({"messages": "Go"})

    assert found["reducers"]["files"] is reduce_files
    assert found["missing"] is None
    assert found["inside"]


def test_outside_a_run_there_is_nothing_to_reach() -> None:
    assert not in_graph()
    for reach in (lambda: read_channel("files"), lambda: write_channel("files", {})):
        with pytest.raises(RuntimeError, match="inside a LangGraph graph execution"):
            reach()


@pytest.mark.parametrize("given", ["hello", ("user", "hello"), [{"role": "user", "content": "hello"}]])
def test_every_form_of_message_gets_an_id_that_stays(call_mode: CallMode, given: Any) -> None:
    agent = create_deep_agent(ScriptedModel("Hi."), checkpointer=InMemorySaver())
    call_mode.invoke(agent, {"messages": given}, THREAD)
    first = [message.id for message in agent.get_state(THREAD).values["messages"]]
    again = [message.id for message in agent.get_state(THREAD).values["messages"]]

    assert first == again
    assert all(first)


def test_removing_all_messages_starts_afresh() -> None:
    agent = create_deep_agent(ScriptedModel("Hi.", "Again."), checkpointer=InMemorySaver())
    agent.invoke({"messages": "one"}, THREAD)
    agent.update_state(THREAD, {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), HumanMessage("fresh")]})
    assert [message.text for message in agent.get_state(THREAD).values["messages"]] == ["fresh"]

    agent.invoke({"messages": "two"}, THREAD)
    assert [message.text for message in agent.get_state(THREAD).values["messages"]] == [
        "fresh",
        "two",
        "Again.",
    ]


def test_checkpoints_hold_what_is_new_and_not_everything() -> None:
    saver = InMemorySaver()
    script = [call("write_file", file_path=f"/{number}.txt", content="x" * 100) for number in range(5)]
    agent = create_deep_agent(ScriptedModel(*script, "Done."), checkpointer=saver)
    agent.invoke({"messages": "Go"}, THREAD)
    latest = saver.get_tuple(THREAD)

    assert latest is not None
    assert {"files", "messages", "file_versions"}.isdisjoint(latest.checkpoint["channel_values"])
    assert len(agent.get_state(THREAD).values["files"]) == 5


def saved_bytes(steps: int) -> int:
    def speak(state: DeepAgentState) -> Any:
        return {"messages": [HumanMessage("x" * 200)], "files": {f"/{len(state['messages'])}.txt": text("y")}}

    class State(DeepAgentState):
        files: Kept

    graph: Any = StateGraph(State)
    graph.add_node("speak", speak)
    graph.set_entry_point("speak")
    graph.add_conditional_edges("speak", lambda state: "speak" if len(state["messages"]) < steps else END)
    saver = InMemorySaver()
    agent: Any = graph.compile(checkpointer=saver)
    agent.invoke({"messages": []}, {**THREAD, "recursion_limit": steps + 5})
    latest = agent.get_state(THREAD).values
    assert (len(latest["messages"]), len(latest["files"])) == (steps, steps)
    return sum(len(blob[1]) for blob in saver.blobs.values())


def test_what_is_saved_whole_grows_with_the_steps_and_not_with_their_square() -> None:
    assert saved_bytes(1200) < 7 * saved_bytes(300)


def folded(*steps: list[Any]) -> MessagesChannel:
    """Fold steps one by one, each on a copy, as LangGraph does between steps."""
    channel = messages_channel()
    channel.key = "messages"
    for step in steps:
        channel = channel.copy()
        channel.update(step)
    return channel


def test_the_quick_way_and_the_whole_one_agree() -> None:
    one, two, three = (HumanMessage(name, id=name) for name in ("one", "two", "three"))
    steps: list[list[Any]] = [
        [[one]],
        [two],
        [[HumanMessage("changed", id="one")]],
        [[three], [RemoveMessage("two")]],
        [[HumanMessage("again", id="two"), HumanMessage("twice", id="two")]],
        [[HumanMessage("no id")]],
    ]
    whole = messages_channel()
    for step in steps:
        whole.value = whole.reducer(whole.value if whole.is_available() else [], step)

    assert [each.text for each in folded(*steps).get()] == [each.text for each in whole.get()]
    assert [each.text for each in whole.get()] == ["changed", "three", "twice", "no id"]


def test_a_copy_of_the_channel_goes_its_own_way() -> None:
    first = folded([[HumanMessage("one", id="one")]], [[HumanMessage("two", id="two")]])
    second = first.copy()
    second.update([[HumanMessage("three", id="three")]])
    first.update([[HumanMessage("other", id="three")]])

    assert [each.text for each in first.get()] == ["one", "two", "other"]
    assert [each.text for each in second.get()] == ["one", "two", "three"]


def test_a_run_remembers_what_parallel_steps_wrote_and_forgets_the_oldest() -> None:
    memory = run_memory()
    memory.update([{"a": "x" * (MOST_REMEMBERED // 2)}, {"b": "y" * (MOST_REMEMBERED // 2)}])
    assert set(memory.get()) == {"a", "b"}

    memory.update([{"c": "z"}])
    assert set(memory.get()) == {"b", "c"}
    assert memory.checkpoint() is run_memory().checkpoint()


def test_a_task_sees_the_answers_to_its_questions(call_mode: CallMode) -> None:
    seen: list[Any] = []

    @tool
    def asks() -> str:
        """Ask twice."""
        seen[:] = [answer_given(at) for at in range(3)]
        return f"{interrupt('One?')} {interrupt('Two?')}"

    with ScriptedModel(call("asks"), "Done.") as model:
        agent = create_deep_agent(model, tools=[asks], checkpointer=InMemorySaver())
        call_mode.invoke(agent, {"messages": "Go"}, THREAD)
        call_mode.invoke(agent, Command(resume="yes"), THREAD)
        call_mode.invoke(agent, Command(resume="no"), THREAD)

    assert seen == ["yes", None, None]
    assert answer_given(0) is None
