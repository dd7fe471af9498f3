"""Agents that are served outlast a provider's overload."""

from __future__ import annotations

import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_sync_client

from tests.cli.openai_server import Reply, call
from tests.cli.openai_server import serving as serving_model
from tests.server.serving import Program

AGENT = "from deepagents import create_deep_agent\nagent = create_deep_agent('local-server:scripted')\n"
BUSY = Reply("Overloaded.", status=529, headers={"retry-after": "0"})


@pytest.mark.slow
def test_a_served_agent_outlasts_an_overload_and_can_be_cancelled_meanwhile(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    later = Reply("Overloaded.", status=529, headers={"retry-after": "250"})
    given: Any = {"messages": [{"role": "user", "content": "Hello."}]}
    with serving_model(call("ls", path="/"), *[BUSY] * 6, "Here I am.", later) as model, ExitStack() as stack:
        program = Program(tmp_path, "serve", "agent.py:agent", DEEPAGENTS_LOCAL_SERVER=model.address)
        stack.callback(program.end, signal.SIGTERM)
        client = stack.enter_context(get_sync_client(url=program.start()))
        thread = client.threads.create()["thread_id"]
        answered: Any = client.runs.wait(thread, "agent", input=given)
        asked = len(model.requests)
        waits: list[Any] = []
        run_id = ""
        for event in client.runs.stream(thread, "agent", input=given, stream_mode="custom"):
            if event.event == "metadata":
                run_id = event.data["run_id"]
            elif event.data.get("type") == "model_retry":
                waits.append(event.data)
                client.runs.cancel(thread, run_id)
        ended = [run["status"] for run in client.runs.list(thread)]
    assert (answered["messages"][-1]["content"], asked) == ("Here I am.", 8)
    assert [(each["reason"], each["seconds"]) for each in waits] == [("the model is overloaded", 250)]
    assert ended == ["interrupted", "success"]
