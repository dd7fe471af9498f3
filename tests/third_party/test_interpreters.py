"""Models write programs in interpreters of other packages, which work on the same files as the file tools."""

from __future__ import annotations

from typing import Any

import pytest
from deepagents_monty import MontyCodeMiddleware
from langchain_core.tools import tool
from langchain_quickjs import CodeInterpreterMiddleware
from langchain_repl.middleware import ReplMiddleware
from langgraph.checkpoint.memory import InMemorySaver

from deepagents import SubAgent, create_deep_agent
from deepagents.backends import FilesystemBackend, StateBackend
from deepagents.testing import ScriptedModel, call

SHOUT = """
from pathlib import Path
Path('/b.txt').write_text(Path('/a.txt').read_text().upper())
Path('/b.txt').read_text()
"""
SECONDS = 60.0
"""The first program of a process waits until the engine is compiled."""
FAN_OUT = """
const shelves = ["/north.md", "/south.md"];
await Promise.all(shelves.map(path => tools.writeFile({file_path: path, content: "three books"})));
const read = await tools.readFile({file_path: "/north.md"});
const counts = await Promise.all(shelves.map(path =>
  task({description: `Count ${path}`, subagentType: "counter", label: path})));
JSON.stringify({read, counts})
"""
STRUCTURED = """
const verdict = await task({description: "Judge", subagentType: "counter",
  responseSchema: {type: "object", properties: {books: {type: "integer"}}, required: ["books"]}});
verdict.books + 1
"""


def answers(result: Any, name: str) -> list[str]:
    return [each.text for each in result["messages"] if each.type == "tool" and each.name == name]


async def test_a_program_works_on_files_and_delegates(tmp_path: Any) -> None:
    counter = ScriptedModel(always=lambda asked: f"counted {asked.last.split()[-1]}")
    model = ScriptedModel(call("eval", code=FAN_OUT), call("read_file", file_path="/south.md"), "Six.")
    agent = create_deep_agent(
        model,
        backend=FilesystemBackend(root_dir=tmp_path),
        middleware=[CodeInterpreterMiddleware(ptc=["write_file", "read_file", "ls"], timeout=SECONDS)],
        subagents=[SubAgent(name="counter", description="Counts.", system_prompt="Count.", model=counter)],
    )
    streamed = [each async for each in agent.astream({"messages": "How many books?"}, stream_mode="custom")]

    assert (tmp_path / "north.md").read_text() == (tmp_path / "south.md").read_text() == "three books"
    [told] = [each.last for each in model.asked if "counted" in each.last]
    assert "counted /north.md" in told
    assert "counted /south.md" in told
    assert "three books" in told
    assert "writeFile" in model.asked[0].system
    assert sorted(each["phase"] for each in streamed) == ["complete", "complete", "start", "start"]


async def test_a_program_asks_a_subagent_for_structure() -> None:
    counter = ScriptedModel(call("subagent_response", books=3))
    model = ScriptedModel(call("eval", code=STRUCTURED), "Done.")
    agent = create_deep_agent(
        model,
        middleware=[CodeInterpreterMiddleware(timeout=SECONDS)],
        subagents=[SubAgent(name="counter", description="Counts.", system_prompt="Count.", model=counter)],
    )
    result = await agent.ainvoke({"messages": "How many books?"})

    assert "4" in answers(result, "eval")[0]


def test_an_interpreter_remembers_between_runs_of_a_thread() -> None:
    model = ScriptedModel(
        call("eval", code="globalThis.books = 6"), "Kept.", call("eval", code="books * 7"), "42."
    )
    agent = create_deep_agent(
        model, middleware=[CodeInterpreterMiddleware(timeout=SECONDS)], checkpointer=InMemorySaver()
    )
    thread: Any = {"configurable": {"thread_id": "shelf"}}
    agent.invoke({"messages": "Keep six."}, thread)
    result = agent.invoke({"messages": "And seven times?"}, thread)

    assert "42" in answers(result, "eval")[-1]


@pytest.mark.parametrize("in_state", [True, False])
async def test_python_in_monty_shares_the_files(in_state: bool, tmp_path: Any) -> None:
    backend = StateBackend() if in_state else FilesystemBackend(root_dir=tmp_path)
    model = ScriptedModel(
        call("write_file", file_path="/a.txt", content="tides"),
        call("python_repl", code=SHOUT),
        call("read_file", file_path="/b.txt"),
        "Done.",
    )
    agent = create_deep_agent(model, backend=backend, middleware=[MontyCodeMiddleware(backend=backend)])
    result = await agent.ainvoke({"messages": "Shout it."})

    assert "TIDES" in answers(result, "python_repl")[0]
    assert "TIDES" in answers(result, "read_file")[0]


def test_a_small_language_calls_functions_of_the_host() -> None:
    @tool
    def double(number: int) -> int:
        """Double a number."""
        return 2 * number

    model = ScriptedModel(call("repl", code="print(double(21))"), "42.")
    agent = create_deep_agent(model, middleware=[ReplMiddleware(ptc=[double])])
    result = agent.invoke({"messages": "Twice 21?"})

    assert answers(result, "repl") == ["42"]
    assert "## REPL tool" in model.asked[0].system
