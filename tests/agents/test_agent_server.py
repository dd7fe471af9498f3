"""Asynchronous subagents on a real agent server, in a process of its own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from deepagents import AsyncSubAgentMiddleware, create_deep_agent
from deepagents.testing import ScriptedModel, call
from deepagents.testing.scripted import Asked
from tests.waiting import until

pytestmark = pytest.mark.slow

GRAPHS = Path(__file__).with_name("served.py")
LONGEST_START = 60


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    place = tmp_path_factory.mktemp("agent-server")
    graphs = {name: f"{GRAPHS}:{name}" for name in ("digger", "boss")}
    (place / "langgraph.json").write_text(json.dumps({"dependencies": ["."], "graphs": graphs}))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload"]
    with (place / "log").open("wb") as log:
        running = subprocess.Popen(
            [*command, "--n-jobs-per-worker", "8", "--port", str(port)],
            cwd=place,
            env={**surroundings(), "HOME": str(place)},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        address = f"http://127.0.0.1:{port}"
        until(lambda: answers(f"{address}/ok") or running.poll() is not None, seconds=LONGEST_START)
        assert running.poll() is None, (place / "log").read_text()
        yield address
    finally:
        running.terminate()
        running.wait(20)


def surroundings() -> dict[str, str]:
    """Return the environment of a server that calls nobody."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("LANGSMITH_", "LANGCHAIN_", "LANGGRAPH_"))
    }
    return {**kept, "LANGGRAPH_CLI_NO_ANALYTICS": "1", "LANGSMITH_TRACING": "false"}


def answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


@pytest.fixture
def client(url: str) -> Iterator[SyncLangGraphClient]:
    with get_sync_client(url=url) as made:
        yield made


class Mine:
    """The mine as a test sees it: the newest task, and how it goes on."""

    def __init__(self, client: SyncLangGraphClient, url: str, **more: Any) -> None:
        self.client = client
        spec: Any = {"name": "digger", "description": "Digs.", "graph_id": "digger", "url": url, **more}
        self.tasks = AsyncSubAgentMiddleware(async_subagents=[spec], poll_seconds=0)
        self.task_id = ""

    def run(self, *replies: Any) -> Any:
        with ScriptedModel(*replies) as model:
            agent: Any = create_deep_agent(model, middleware=[self.tasks])
            return agent.invoke({"messages": "Dig!"})

    def ends(self, said: Any) -> Callable[[Asked], Any]:
        """Wait until the task rests, then say something."""

        def reply(asked: Asked) -> Any:
            self.find(asked)
            until(lambda: self.client.threads.get(self.task_id)["status"] != "busy")
            return said

        return reply

    def busy(self, name: str, **arguments: Any) -> Callable[[Asked], Any]:
        """Wait until the digger digs, then call a tool on its task."""

        def reply(asked: Asked) -> Any:
            self.find(asked)
            until(lambda: "tools" in self.client.threads.get_state(self.task_id)["next"])
            return call(name, task_id=self.task_id, **arguments)

        return reply

    def on(self, name: str, **arguments: Any) -> Callable[[Asked], Any]:
        return lambda asked: call(name, task_id=self.task_id, **arguments)

    def find(self, asked: Asked) -> None:
        started = [each.text for each in asked.messages if each.text.startswith("Started.")]
        self.task_id = started[-1].split("task_id: ")[1].split(".")[0]


def start(order: str) -> Any:
    return call("start_async_task", description=order, subagent_type="digger")


def notices(state: Any) -> list[str]:
    return [m.text for m in state["messages"] if "deepagents_notification" in m.additional_kwargs]


def last_result(state: Any) -> str:
    return [message.text for message in state["messages"] if isinstance(message, ToolMessage)][-1]


def status(state: Any) -> str:
    (record,) = state["async_tasks"].values()
    return record["status"]


def test_a_task_is_done_announced_and_checked(client: SyncLangGraphClient, url: str) -> None:
    mine = Mine(client, url)
    state = mine.run(start("gold"), mine.ends("Sent."), mine.on("check_async_task"), "Gold.")

    assert "Found: gold" in notices(state)[0]
    assert json.loads(last_result(state))["result"] == "Found: gold"
    assert status(state) == "success"


def test_an_update_interrupts_what_goes_on(client: SyncLangGraphClient, url: str) -> None:
    mine = Mine(client, url)
    update = mine.busy("update_async_task", message="silver")
    state = mine.run(start("dig on"), update, mine.ends("Changed."), "Silver.")

    assert "Found: silver" in notices(state)[0]
    assert len(notices(state)) == 1
    assert status(state) == "success"


def test_an_update_that_waits_its_turn_comes_after_a_cancelled_one(
    client: SyncLangGraphClient, url: str
) -> None:
    mine = Mine(client, url, update_strategy="enqueue")
    update = mine.busy("update_async_task", message="silver")

    def stop_the_first(asked: Asked) -> str:
        first = client.runs.list(mine.task_id)[-1]
        client.runs.cancel(mine.task_id, first["run_id"])
        until(lambda: client.threads.get(mine.task_id)["status"] != "busy")
        return "Queued."

    state = mine.run(start("dig on"), update, stop_the_first, "Silver.")

    assert "finished what it is doing" in last_result(state)
    assert "Found: silver" in notices(state)[0]


def test_a_task_is_cancelled_and_listed(client: SyncLangGraphClient, url: str) -> None:
    mine = Mine(client, url)
    cancel = mine.busy("cancel_async_task")
    state = mine.run(start("dig on"), cancel, call("list_async_tasks"), mine.ends("Over."))

    assert client.runs.list(mine.task_id)[0]["status"] == "interrupted"
    assert "status: cancelled" in last_result(state)
    assert notices(state) == []


def test_a_task_that_waits_for_a_person_goes_on_when_one_has_answered(
    client: SyncLangGraphClient, url: str
) -> None:
    mine = Mine(client, url)

    def approve(asked: Asked) -> str:
        decision: Any = {"resume": {"decisions": [{"type": "approve"}]}}
        client.runs.wait(mine.task_id, "digger", command=decision)
        return "Approved."

    check = mine.on("check_async_task")
    state = mine.run(start("use dynamite"), mine.ends("Sent."), check, approve, "Done.")

    waiting, done = notices(state)
    assert "<status>waiting</status>" in waiting
    assert "blast" in json.dumps(json.loads(last_result(state))["interrupts"])
    assert "After that: Boom." in done


def test_who_started_a_task_on_the_same_server_is_told_while_at_rest(
    client: SyncLangGraphClient, tmp_path: Path
) -> None:
    at_rest = tmp_path / "the bosses are at rest"
    bosses = {each: client.threads.create()["thread_id"] for each in ("gold", "break")}
    orders = {thread: order(f"{each} once {at_rest}") for each, thread in bosses.items()}
    runs = [client.runs.create(thread, "boss", input=given) for thread, given in orders.items()]
    for run in runs:
        client.runs.join(run["thread_id"], run["run_id"])
    # A boss still at work would hear of an end by its own poll, in the run that is under way.
    at_rest.touch()
    for thread in bosses.values():
        until(lambda thread=thread: len(client.runs.list(thread)) == 2)
        until(lambda thread=thread: client.threads.get(thread)["status"] == "idle")

    values: Any = {each: client.threads.get(thread)["values"] for each, thread in bosses.items()}
    told = {each: of["messages"][-1]["content"] for each, of in values.items()}
    records = {each: record for each, of in values.items() for record in of["async_tasks"].values()}
    tasks = {each: client.threads.get(record["task_id"]) for each, record in records.items()}
    assert told == {"gold": "Heard: True", "break": "Heard: False"}
    assert {each: of["status"] for each, of in records.items()} == {"gold": "success", "break": "error"}
    assert {each: (task["metadata"] or {})["parent_thread_id"] for each, task in tasks.items()} == bosses


def test_a_task_ends_without_waiting_for_a_busy_parent(client: SyncLangGraphClient) -> None:
    parent, task = (client.threads.create()["thread_id"] for _ in range(2))
    busy = client.runs.create(parent, "digger", input=order("dig on"))
    until(lambda: client.threads.get(parent)["status"] == "busy")
    known = {"thread_id": parent, "assistant_id": "digger"}
    began = time.monotonic()
    run: Any = {"input": order("gold"), "config": {"configurable": {"deepagents_parent": known}}}
    values: Any = client.runs.wait(task, "digger", **run)
    took = time.monotonic() - began
    client.runs.cancel(parent, busy["run_id"], wait=True)

    assert values["messages"][-1]["content"] == "Found: gold"
    assert took < 5
    assert len(client.runs.list(parent)) == 1


def order(text: str) -> Any:
    return {"messages": [{"role": "user", "content": text}]}
