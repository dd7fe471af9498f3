"""The unnamed parts of LangGraph that `_channels` leans on still do what it needs."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from deepagents import create_deep_agent
from deepagents._state.channels import MOST_REMEMBERED, run_memory
from deepagents._state.runtime import (
    answers_to_questions,
    in_graph,
    read_channel,
    reducers_of,
    running_channels,
    write_channel,
)
from deepagents.backends.state import reduce_files
from deepagents.testing import ScriptedModel, call, calls
from tests.agents.delegating import text
from tests.conftest import CallMode

THREAD: Any = {"configurable": {"thread_id": "1"}}


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
        with answers_to_questions() as find_answer:
            seen[:] = [find_answer()]
            for each in ("One?", "Two?"):
                interrupt(each)
                seen.append(find_answer())
        return "asked"

    with ScriptedModel(call("asks"), "Done.") as model:
        agent = create_deep_agent(model, tools=[asks], checkpointer=InMemorySaver())
        call_mode.invoke(agent, {"messages": "Go"}, THREAD)
        call_mode.invoke(agent, Command(resume="yes"), THREAD)
        call_mode.invoke(agent, Command(resume="no"), THREAD)

    assert seen == [None, "yes", "no"]
    with answers_to_questions() as find_answer:
        assert find_answer() is None
