from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient
from mcp import Client
from mcp.types import TextContent

from tests.server.test_runs import say

Connect = Callable[[], Client]


@pytest.fixture(params=["auto", "legacy"])
def connect(url: str, request: pytest.FixtureRequest) -> Connect:
    """Make a client of the protocol of today, or one of before, which begins with a handshake."""
    return lambda: Client(f"{url}/mcp", mode=request.param)


async def call(tools: Client, name: str, given: dict[str, Any]) -> tuple[str, bool]:
    answered = await tools.call_tool(name, given)
    (block,) = answered.content
    assert isinstance(block, TextContent)
    return block.text, answered.is_error


async def test_each_graph_is_a_tool(connect: Connect) -> None:
    async with connect() as tools:
        listed = {each.name: each for each in (await tools.list_tools()).tools}

    assert {"deep", "echo", "outer"} <= set(listed)
    schema = listed["deep"].input_schema
    assert schema["required"] == ["messages"]
    assert set(schema["properties"]) == {"messages", "files"}
    assert set(schema["$defs"]) == {"FileData"}


async def test_an_agent_answers_a_call(connect: Connect) -> None:
    async with connect() as tools:
        assert await call(tools, "deep", say("How deep?")) == ("Thirteen metres.", False)


async def test_what_has_no_messages_answers_with_its_values(connect: Connect) -> None:
    async with connect() as tools:
        answered = await call(tools, "notes", {"notes": ["buy stone"]})

    assert answered == ('{"notes":["buy stone"]}', False)


async def test_what_goes_wrong_is_told_to_the_model(connect: Connect) -> None:
    async with connect() as tools:
        unknown = await call(tools, "none", {})
        failed = await call(tools, "echo", say("fail badly"))
        asks = await call(tools, "echo", say("ask Why?"))

    assert unknown == ("There is no assistant 'none'.", True)
    assert failed == ("The agent failed: badly", True)
    assert "asks a person" in asks[0]


async def test_a_client_sees_that_an_agent_gets_further(connect: Connect) -> None:
    seen: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    async with connect() as tools:
        await tools.call_tool("lifter", say("Lift."), progress_callback=note)

    assert seen == sorted(set(seen))
    assert len(seen) > 3


async def test_a_run_ends_when_nobody_waits_for_its_answer(connect: Connect, client: LangGraphClient) -> None:
    works = asyncio.Event()

    async def note(progress: float, total: float | None, message: str | None) -> None:
        works.set()

    async def wait_for_ever() -> None:
        async with connect() as tools:
            await tools.call_tool("waiter", say("the end of time"), progress_callback=note)

    waiting = asyncio.create_task(wait_for_ever())
    await works.wait()
    (thread,) = await client.threads.search(metadata={"graph_id": "waiter"}, status="busy")
    (run,) = await client.runs.list(thread["thread_id"])

    waiting.cancel()
    await client.runs.join(thread["thread_id"], run["run_id"])

    assert (await client.runs.get(thread["thread_id"], run["run_id"]))["status"] == "interrupted"


def test_pages_of_others_call_no_tools(url: str) -> None:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}

    def ask(**headers: str) -> httpx.Response:
        return httpx.post(f"{url}/mcp", json=asked, headers=headers)

    assert ask().status_code == 200
    assert ask(origin="http://localhost:3000").status_code == 200
    assert ask(origin="https://evil.example").status_code == 403
    assert "evil.example" in ask(host="evil.example").json()["detail"]
