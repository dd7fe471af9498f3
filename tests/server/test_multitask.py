from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import httpx
import pytest
import sqlalchemy as sa
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import ConflictError, NotFoundError
from sqlalchemy.exc import IntegrityError

from deepagents_server.config import ServerConfig
from deepagents_server.create import create_run
from deepagents_server.database.tables import runs
from deepagents_server.server import Settings, open_server
from tests.server.serving import GRAPHS
from tests.server.test_runs import last, say


class Busy:
    """A thread whose run waits at a gate, which the test opens."""

    def __init__(self, client: LangGraphClient) -> None:
        self.client = client
        self.gate = str(uuid4())
        self.thread = ""
        self.run = ""

    async def begin(self, graph: str = "echo", text: str = "") -> Busy:
        self.thread = (await self.client.threads.create())["thread_id"]
        if graph == "echo":
            await self.client.runs.wait(self.thread, graph, input=say("before"))
        run = await self.client.runs.create(
            self.thread,
            graph,
            input=say(text or f"wait {self.gate}"),
            stream_mode="custom",
            stream_resumable=True,
        )
        self.run = run["run_id"]
        async for part in self.client.runs.join_stream(self.thread, self.run, last_event_id="-1"):
            if part.event == "custom":
                break
        return self

    async def open(self) -> None:
        await self.client.runs.wait(None, "gate", input=say(self.gate))

    async def add(self, strategy: Any) -> Any:
        return await self.client.runs.create(
            self.thread, "echo", input=say("next"), multitask_strategy=strategy
        )

    async def contents(self) -> list[str]:
        state: Any = await self.client.threads.get_state(self.thread)
        return [each["content"] for each in state["values"]["messages"]]


async def test_a_busy_thread_refuses_if_asked_to(client: LangGraphClient) -> None:
    busy = await Busy(client).begin()
    assert (await client.threads.get(busy.thread))["status"] == "busy"

    with pytest.raises(ConflictError):
        await busy.add("reject")

    await busy.open()
    await client.runs.join(busy.thread, busy.run)


async def test_runs_wait_for_each_other(client: LangGraphClient) -> None:
    busy = await Busy(client).begin()
    queued = await busy.add("enqueue")
    assert (await client.runs.get(busy.thread, queued["run_id"]))["status"] == "pending"

    await busy.open()
    values = await client.runs.join(busy.thread, queued["run_id"])

    contents = [each["content"] for each in values["messages"]]
    assert contents[2:] == [f"wait {busy.gate}", f"Echo: wait {busy.gate}", "next", "Echo: next"]


async def test_a_run_can_interrupt_another(client: LangGraphClient) -> None:
    busy = await Busy(client).begin()

    run = await busy.add("interrupt")
    await client.runs.join(busy.thread, run["run_id"])

    assert (await client.runs.get(busy.thread, busy.run))["status"] == "interrupted"
    assert await busy.contents() == ["before", "Echo: before", f"wait {busy.gate}", "next", "Echo: next"]


async def test_a_run_can_take_anothers_place(client: LangGraphClient) -> None:
    busy = await Busy(client).begin()

    run = await busy.add("rollback")
    await client.runs.join(busy.thread, run["run_id"])

    with pytest.raises(NotFoundError):
        await client.runs.get(busy.thread, busy.run)
    assert await busy.contents() == ["before", "Echo: before", "next", "Echo: next"]


async def test_a_message_reaches_an_agent_at_its_next_step(client: LangGraphClient) -> None:
    """The tool at work is waited for, its result stays, and the next request to the model has the message."""
    busy = Busy(client)
    await busy.begin("waiter", busy.gate)

    steering = await client.runs.create(
        busy.thread, "waiter", input=say("and hurry"), multitask_strategy=cast(Any, "steer")
    )
    await busy.open()
    values = await client.runs.join(busy.thread, steering["run_id"])

    assert last(values) == f"I know: {busy.gate}, {busy.gate} happened, and hurry"
    assert (await client.runs.get(busy.thread, busy.run))["status"] == "interrupted"
    assert (await client.threads.get(busy.thread))["status"] == "idle"


async def test_a_run_takes_anothers_place_whole_or_not_at_all(tmp_path: Path) -> None:
    """A database that fails between the two keeps no run that waits for one which nobody ends."""
    settings = Settings(f"sqlite:///{tmp_path / 'server.db'}", slots=0)
    async with open_server(ServerConfig(tmp_path, GRAPHS), settings) as server:
        asked = {"assistant_id": "echo", "input": say("hello")}
        former = await create_run(server, {**asked, "on_completion": "keep"})
        fails = (
            "CREATE TRIGGER fails BEFORE UPDATE OF cancelled ON runs "
            "BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
        )
        await server.database.execute(sa.text(fails))
        for strategy in ("interrupt", "rollback", "steer"):
            with pytest.raises(IntegrityError, match="disk"):
                await create_run(server, {**asked, "multitask_strategy": strategy}, former["thread_id"])

        (left,) = await server.database.rows(sa.select(runs))

        assert (left["run_id"], left["status"]) == (former["run_id"], "pending")


async def test_a_message_reaches_a_run_that_has_not_begun(client: LangGraphClient) -> None:
    """It waits behind another; its own message is kept, and it leaves the answer to the one that steers."""
    busy = Busy(client)
    await busy.begin("waiter", busy.gate)
    waiting = await busy.add("enqueue")

    steering = await busy.add("steer")
    await busy.open()
    values = await client.runs.join(busy.thread, steering["run_id"])

    contents = [each["content"] for each in values["messages"] if each["content"]]
    assert contents == [busy.gate, f"{busy.gate} happened", "next", "next", "Echo: next"]
    ended = [(await client.runs.get(busy.thread, each))["status"] for each in (busy.run, waiting["run_id"])]
    assert ended == ["interrupted", "interrupted"]


@pytest.mark.parametrize("strategy", ["interrupt", "rollback", "steer"])
async def test_a_run_takes_the_place_of_one_of_the_same_batch(
    client: LangGraphClient, url: str, strategy: str
) -> None:
    thread, gate = (await client.threads.create())["thread_id"], str(uuid4())
    former = {"assistant_id": "waiter", "thread_id": thread, "input": say(gate)}
    latter = {
        "assistant_id": "echo",
        "thread_id": thread,
        "input": say("next"),
        "multitask_strategy": strategy,
    }
    async with httpx.AsyncClient(base_url=url) as plain:
        made = (await plain.post("/runs/batch", json=[former, latter])).json()

    async with asyncio.timeout(20):
        values = await client.runs.join(thread, made[1]["run_id"])

    assert last(values) == "Echo: next"
    left = {each["run_id"]: each["status"] for each in await client.runs.list(thread)}
    assert left.get(made[0]["run_id"]) == (None if strategy == "rollback" else "interrupted")
