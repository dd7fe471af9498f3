"""What streams show of files and of subagents that fail: the values a reader can use."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from deepagents import create_deep_agent
from deepagents.graph import DeepAgentState
from deepagents.testing import ScriptedModel, call
from tests.conftest import CallMode

pytestmark = pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")

PATH = "/a.txt"
FILES: Any = {
    "messages": "Go",
    "files": {
        PATH: {"content": "one\ntwo\n", "encoding": "utf-8"},
        "/b.txt": {"content": "b", "encoding": "utf-8"},
    },
}


def editor() -> ScriptedModel:
    return ScriptedModel(
        call("edit_file", file_path=PATH, old_string="two", new_string="2"),
        call("write_file", file_path="/new.txt", content="new"),
        call("delete", file_path="/b.txt"),
        "Done.",
    )


def delegating() -> Any:
    worker: Any = {"name": "editor", "description": "edits", "model": editor()}
    model = ScriptedModel(call("task", description="Go", subagent_type="editor"), "Done.")
    return create_deep_agent(model, subagents=[worker])


def file_updates(payload: Any) -> list[dict[str, Any]]:
    """Find each mapping under the key `files` of a streamed value."""
    if isinstance(payload, dict):
        own = [payload["files"]] if isinstance(payload.get("files"), dict) else []
        return own + [
            each for key, value in payload.items() if key != "files" for each in file_updates(value)
        ]
    if isinstance(payload, (list, tuple)):
        pair = len(payload) == 2 and payload[0] == "files" and isinstance(payload[1], dict)
        return [payload[1]] if pair else [each for value in payload for each in file_updates(value)]
    return []


def records(chunks: Any) -> dict[str, Any]:
    """Fold all streamed files, the latest last; each must be a record of a file, or `None`."""
    shown: dict[str, Any] = {}
    for files in file_updates(chunks):
        for path, record in files.items():
            assert record is None or {"content", "encoding"} <= record.keys(), (path, record)
            assert record is None or not {"base", "edit", "append", "delete"} & record.keys(), (path, record)
            shown[path] = record and record["content"]
    return shown


@pytest.mark.parametrize("mode", ["updates", "tasks", "debug"])
def test_streams_show_file_records_and_none_for_deleted_files(mode: Any) -> None:
    chunks = list(create_deep_agent(editor()).stream(FILES, stream_mode=mode))

    assert records(chunks) == {PATH: "one\n2\n", "/new.txt": "new", "/b.txt": None}


@pytest.mark.parametrize("mode", ["updates", ["updates", "custom"]])
@pytest.mark.parametrize("version", ["v1", "v2"])
def test_streams_of_subagents_show_file_records_too(call_mode: CallMode, mode: Any, version: str) -> None:
    chunks = call_mode.stream(delegating(), FILES, stream_mode=mode, subgraphs=True, version=version)

    assert records(chunks) == {PATH: "one\n2\n", "/new.txt": "new", "/b.txt": None}


def test_a_surrounding_graph_streams_file_records() -> None:
    graph: Any = StateGraph(DeepAgentState)
    graph.add_node("agent", create_deep_agent(editor()))
    graph.add_edge(START, "agent")

    chunks = list(graph.compile().stream({"messages": "Go"}, stream_mode="updates", subgraphs=True))

    assert records(chunks)["/new.txt"] == "new"


def test_checkpoints_keep_the_change_alone() -> None:
    """The record in a stream is not saved, so that threads grow with what is new."""
    saver, big = InMemorySaver(), "x" * 10_000
    agent = create_deep_agent(editor(), checkpointer=saver)
    thread: Any = {"configurable": {"thread_id": "t"}}
    given = {**FILES, "files": {**FILES["files"], PATH: {"content": f"two{big}", "encoding": "utf-8"}}}

    list(agent.stream(given, thread, stream_mode="updates"))

    saved = [str(value) for writes in saver.writes.values() for *_, value, _ in writes.values()]
    assert sum(big in each for each in saved) <= 1


def failing() -> Any:
    worker: Any = {
        "name": "helper",
        "description": "helps",
        "model": ScriptedModel(ValueError("out of order")),
    }
    fine: Any = {"name": "fine", "description": "works", "model": ScriptedModel("fine")}
    model = ScriptedModel(
        call("task", description="Go", subagent_type="helper"),
        call("task", description="Go", subagent_type="fine"),
        "Done.",
    )
    return create_deep_agent(model, subagents=[worker, fine])


def test_a_failed_subagent_is_failed_in_newer_events(call_mode: CallMode) -> None:
    async def watch() -> Any:
        run = await failing().astream_events({"messages": "Go"}, version="v3")
        handles = [handle async for handle in run.subagents]
        return handles, await run.output()

    if call_mode.name == "async":
        handles, output = asyncio.run(watch())
    else:
        run: Any = failing().stream_events({"messages": "Go"}, version="v3")
        handles, output = list(run.subagents), run.output

    assert [(each.name, each.status) for each in handles] == [("helper", "failed"), ("fine", "completed")]
    assert "out of order" in handles[0].error
    assert handles[1].error is None
    assert output["messages"][-1].text == "Done."


def test_lifecycle_events_say_that_a_subagent_failed() -> None:
    run: Any = failing().stream_events({"messages": "Go"}, version="v3")

    ends = [
        each["event"] for each in run.lifecycle if len(each["namespace"]) == 1 and each["event"] != "started"
    ]
    assert ends == ["failed", "completed"]
