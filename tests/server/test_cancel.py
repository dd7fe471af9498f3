"""Runs that are ended early: by a call, by a client that hangs up, one or many."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
import sqlalchemy as sa
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import NotFoundError, UnprocessableEntityError
from sqlalchemy import event

from deepagents_server.cancel import cancel_runs
from deepagents_server.config import ServerConfig
from deepagents_server.create import create_run, create_runs
from deepagents_server.database.tables import runs, threads
from deepagents_server.server import Settings, open_server
from tests.server.serving import GRAPHS
from tests.server.test_multitask import Busy
from tests.server.test_runs import last, say

pytestmark = pytest.mark.slow


async def test_a_run_at_work_is_cancelled_and_keeps_its_steps(client: LangGraphClient) -> None:
    busy = await Busy(client).begin()

    await client.runs.cancel(busy.thread, busy.run, wait=True)

    assert (await client.runs.get(busy.thread, busy.run))["status"] == "interrupted"
    assert (await client.threads.get(busy.thread))["status"] == "interrupted"
    assert await busy.contents() == ["before", "Echo: before", f"wait {busy.gate}"]
    with pytest.raises(NotFoundError, match="nothing to cancel"):
        await client.runs.cancel(busy.thread, busy.run)
    assert last(await client.runs.wait(busy.thread, "echo", input=say("on"))) == "Echo: on"


async def test_an_answer_without_a_body_says_so(client: LangGraphClient, url: str) -> None:
    """LangGraph's client for JavaScript reads JSON of every answer but 202 and 204."""
    busy = await Busy(client).begin()
    path = f"{url}/threads/{busy.thread}/runs/{busy.run}/cancel"

    answered = await asyncio.to_thread(httpx.post, path, params={"wait": True}, timeout=60)

    assert (answered.status_code, answered.content) == (204, b"")


async def test_a_run_at_work_is_cancelled_and_leaves_nothing(client: LangGraphClient) -> None:
    busy = await Busy(client).begin()

    await client.runs.cancel(busy.thread, busy.run, wait=True, action="rollback")

    with pytest.raises(NotFoundError, match="no run"):
        await client.runs.get(busy.thread, busy.run)
    assert (await client.threads.get(busy.thread))["status"] == "idle"
    assert await busy.contents() == ["before", "Echo: before"]
    assert last(await client.runs.wait(busy.thread, "echo", input=say("on"))) == "Echo: on"


@pytest.mark.parametrize("order", ["block", "execute sleep"])
async def test_a_run_is_cancelled_inside_a_tool(client: LangGraphClient, order: str) -> None:
    """A thread that blocks is left behind, and a command is killed, also in a sandbox."""
    name = f"61.{uuid4().int}"
    thread = (await client.threads.create())["thread_id"]
    asked: Any = {"stream_mode": "custom", "stream_resumable": True}
    run = (await client.runs.create(thread, "obedient", input=say(f"{order} {name}"), **asked))["run_id"]
    while order != "block" and not commands_with(name):
        await asyncio.sleep(0.05)
    if order == "block":
        async for part in client.runs.join_stream(thread, run, last_event_id="-1"):
            if part.event == "custom":
                break

    began = time.monotonic()
    await client.runs.cancel(thread, run, wait=True)

    assert time.monotonic() - began < 60, "the tool takes a minute"
    assert (await client.runs.get(thread, run))["status"] == "interrupted"
    state: Any = await client.threads.get_state(thread)
    assert [each["type"] for each in state["values"]["messages"]] == ["human", "ai"], "no result of the tool"
    assert not commands_with(name)
    await client.runs.wait(None, "gate", input=say(name))


async def test_a_run_is_cancelled_whose_node_swallows_that(client: LangGraphClient) -> None:
    busy = Busy(client)
    await busy.begin(text=f"ignore {busy.gate}")
    try:
        await client.runs.cancel(busy.thread, busy.run, wait=True)

        assert (await client.runs.get(busy.thread, busy.run))["status"] == "interrupted"
        assert last(await client.runs.wait(busy.thread, "echo", input=say("on"))) == "Echo: on"
        before = await busy.contents()
    finally:
        await busy.open()
    assert last(await client.runs.wait(busy.thread, "echo", input=say("further"))) == "Echo: further"
    assert await busy.contents() == [*before, "further", "Echo: further"]


def commands_with(text: str) -> list[str]:
    found: list[str] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found += [shown for shown in [path.read_text()] if text in shown]
    return found


async def test_a_run_is_cancelled_before_it_begins(client: LangGraphClient) -> None:
    busy = await Busy(client).begin()
    queued = await busy.add("enqueue")

    await client.runs.cancel(busy.thread, queued["run_id"], wait=True)
    assert (await client.runs.get(busy.thread, queued["run_id"]))["status"] == "interrupted"
    assert (await client.runs.get(busy.thread, busy.run))["status"] == "running"
    await busy.open()
    await client.runs.join(busy.thread, busy.run)

    assert (await client.runs.get(busy.thread, busy.run))["status"] == "success"
    assert (await client.threads.get(busy.thread))["status"] == "idle"
    assert (await busy.contents())[2:] == [f"wait {busy.gate}", f"Echo: wait {busy.gate}"]


async def test_runs_are_cancelled_by_name_and_by_status(client: LangGraphClient) -> None:
    busy, other = await Busy(client).begin(), await Busy(client).begin()
    queued = [(await busy.add("enqueue"))["run_id"] for _ in range(3)]

    async def statuses() -> list[str]:
        return [(await client.runs.get(busy.thread, each))["status"] for each in (busy.run, *queued)]

    await client.runs.cancel_many(thread_id=busy.thread, run_ids=queued[:1])
    assert await statuses() == ["running", "interrupted", "pending", "pending"]
    await client.runs.cancel_many(thread_id=busy.thread, status="pending")
    assert await statuses() == ["running", "interrupted", "interrupted", "interrupted"]
    await client.runs.cancel_many(thread_id=busy.thread, status="all")
    await client.runs.join(busy.thread, busy.run)
    assert await statuses() == ["interrupted"] * 4

    with pytest.raises(NotFoundError, match="no such runs"):
        await client.runs.cancel_many(thread_id=busy.thread, run_ids=queued)
    with pytest.raises(UnprocessableEntityError, match="Name a status, or thread_id and run_ids"):
        await client.runs.cancel_many(thread_id=busy.thread)
    assert (await client.runs.get(other.thread, other.run))["status"] == "running"
    await other.open()
    await client.runs.join(other.thread, other.run)


@pytest.mark.parametrize(("wish", "status"), [("cancel", "interrupted"), ("continue", "success")])
async def test_a_client_that_hangs_up_may_end_its_run(
    client: LangGraphClient, wish: Any, status: str
) -> None:
    thread = (await client.threads.create())["thread_id"]
    gate = str(uuid4())
    stream = client.runs.stream(
        thread, "echo", input=say(f"wait {gate}"), stream_mode="custom", on_disconnect=wish
    )
    async for part in stream:
        if part.event == "custom":
            break
    await stream.aclose()  # pyright: ignore[reportAttributeAccessIssue]

    (run,) = await client.runs.list(thread)
    if wish == "continue":
        await client.runs.wait(None, "gate", input=say(gate))
    await client.runs.join(thread, run["run_id"])
    assert (await client.runs.get(thread, run["run_id"]))["status"] == status


async def test_a_client_that_waits_and_hangs_up_may_end_its_run(client: LangGraphClient, url: str) -> None:
    busy = await Busy(client).begin()
    waited = {"assistant_id": "echo", "input": say(f"wait {uuid4()}"), "on_disconnect": "cancel"}
    thread = (await client.threads.create())["thread_id"]
    async with httpx.AsyncClient(base_url=url) as plain:
        joined = f"/threads/{busy.thread}/runs/{busy.run}/join?cancel_on_disconnect=true"
        async with plain.stream("GET", joined) as answer:
            assert answer.status_code == 200
        async with plain.stream("POST", f"/threads/{thread}/runs/wait", json=waited) as answer:
            assert answer.status_code == 200

    for each in (busy.thread, thread):
        run = (await client.runs.list(each))[0]
        await client.runs.join(each, run["run_id"])
        assert (await client.runs.get(each, run["run_id"]))["status"] == "interrupted"


async def test_many_runs_that_wait_are_ended_together(tmp_path: Path) -> None:
    """In a few statements, be they on one thread or on many."""
    settings = Settings(f"sqlite:///{tmp_path / 'server.db'}", slots=0)
    async with open_server(ServerConfig(tmp_path, GRAPHS), settings) as server:
        asked = {"assistant_id": "echo", "input": say("hello"), "on_completion": "keep"}
        thread = (await create_run(server, asked))["thread_id"]
        await create_runs(server, [(asked, thread)] * 149)
        statements: list[str] = []

        @event.listens_for(server.database.engine.sync_engine, "before_cursor_execute")
        def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
            statements.append(statement)

        last_one = await create_run(server, {**asked, "multitask_strategy": "interrupt"}, thread)
        on_one = len(statements)
        waiting = sa.select(runs.c.run_id).where(runs.c.status == "pending")
        left = await server.database.rows(waiting)
        await create_runs(server, [(asked, None)] * 149)
        took = len(statements)
        ended = await cancel_runs(server, "interrupt")

        assert [row["run_id"] for row in left] == [last_one["run_id"]]
        assert ended == 150
        assert await server.database.rows(waiting) == []
        threads_left = await server.database.rows(sa.select(threads.c.status).distinct())
        assert [row["status"] for row in threads_left] == ["idle"]
        assert on_one < 20
        assert len(statements) - took < 20


async def test_a_run_goes_on_when_its_client_has_gone_unless_told_otherwise(
    client: LangGraphClient, url: str
) -> None:
    kept, ended = [await Busy(client).begin() for _ in range(2)]
    last_words = await kept.add("enqueue")
    threads = [(await client.threads.create())["thread_id"] for _ in range(2)]
    asked = {"assistant_id": "echo", "input": say(f"wait {kept.gate}")}
    at_work = f"/threads/{kept.thread}/runs/{kept.run}"
    left: list[tuple[str, str, Any]] = [
        ("POST", f"/threads/{threads[0]}/runs/stream", asked),
        ("POST", f"/threads/{threads[1]}/runs/wait", {**asked, "on_disconnect": "continue"}),
        ("GET", f"{at_work}/stream", None),
        ("GET", f"{at_work}/join", None),
        # It is looked for as the others are: when its run has ended, all of them have been noticed.
        ("GET", f"/threads/{ended.thread}/runs/{ended.run}/stream?cancel_on_disconnect=1", None),
    ]
    async with httpx.AsyncClient(base_url=url, timeout=60) as plain:
        for method, path, body in left:
            async with plain.stream(method, path, json=body) as answer:
                assert answer.status_code == 200

    await client.runs.join(ended.thread, ended.run)
    assert (await client.runs.get(ended.thread, ended.run))["status"] == "interrupted"
    await kept.open()
    await client.runs.join(kept.thread, last_words["run_id"])
    for thread in (kept.thread, *threads):
        for run in await client.runs.list(thread):
            await client.runs.join(thread, run["run_id"])
            assert (await client.runs.get(thread, run["run_id"]))["status"] == "success"
