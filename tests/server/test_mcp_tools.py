"""Graphs that are served use MCP servers, which their runs share, and find their tools again elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_sync_client

from deepagents_server.config import load_config
from deepagents_server.errors import ServeError
from deepagents_server.graphs import load_graphs, load_servers
from tests.mcp.servers import crooked
from tests.server.serving import serving

pytestmark = pytest.mark.slow

AGENT = """
from deepagents import create_deep_agent
from deepagents.testing import ScriptedModel, call


def answer(asked):
    return "Done." if asked.messages[-1].type == "tool" else call("mcp__one__pid")


def make(mcp):
    return create_deep_agent(ScriptedModel(always=answer), mcp=mcp)


def careful(config, mcp):
    return create_deep_agent(ScriptedModel(always=answer), mcp=mcp, interrupt_on={"mcp__one__*": True})


agent = create_deep_agent(ScriptedModel(always=answer))
"""
GO: Any = {"messages": [{"role": "user", "content": "Go."}]}


def pid_of(values: Any) -> str:
    [result] = [each for each in values["messages"] if each["type"] == "tool"]
    return result["content"]


def test_runs_share_the_servers_and_go_on_in_another_process(tmp_path: Path) -> None:
    (tmp_path / "tooled.py").write_text(AGENT)
    graphs = {name: f"{tmp_path / 'tooled.py'}:{name}" for name in ("make", "careful")}
    mcp = dict.fromkeys(graphs, {"one": crooked("pid", call="pid")})

    with serving(tmp_path, graphs=graphs, mcp=mcp) as url, get_sync_client(url=url, api_key=None) as client:
        pids = {pid_of(client.runs.wait(None, "make", input=GO)) for _ in range(2)}
        thread = client.threads.create()["thread_id"]
        asked: Any = client.runs.wait(thread, "careful", input=GO)
        assert asked["__interrupt__"]

    with serving(tmp_path, graphs=graphs, mcp=mcp) as url, get_sync_client(url=url, api_key=None) as client:
        answer: Any = {"resume": {"decisions": [{"type": "approve"}]}}
        values = client.runs.wait(thread, "careful", command=answer)

    assert len(pids) == 1
    assert pid_of(values) not in pids


@pytest.mark.parametrize(
    ("graph", "mcp", "words"),
    [
        ("tooled.py:agent", {"one": {"command": "x"}}, "must be a function with the parameter 'mcp'"),
        ("tooled.py:make", {"one": {"command": "${NOT_THERE}"}}, "'NOT_THERE', which is not set"),
        ("tooled.py:make", "none.json", "cannot be read"),
    ],
)
def test_a_mistake_keeps_the_server_from_starting(tmp_path: Path, graph: str, mcp: Any, words: str) -> None:
    (tmp_path / "tooled.py").write_text(AGENT)
    written = {"graphs": {"agent": {"path": f"./{graph}", "mcp": mcp}}}
    (tmp_path / "langgraph.json").write_text(json.dumps(written))
    config = load_config(None, tmp_path)

    with pytest.raises(ServeError, match=words):
        load_graphs(config, load_servers(config))
