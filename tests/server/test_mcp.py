from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient
from mcp.client import Client
from mcp.types import ElicitRequestFormParams, ElicitRequestParams, ElicitResult, TextContent

from tests.server.serving import AGENTS, serving
from tests.server.test_runs import say

pytestmark = pytest.mark.slow

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

    assert unknown == ("There is no assistant 'none' here; POST /assistants/search lists them.", True)
    assert failed == ("The agent failed: badly", True)


async def test_a_graph_that_cannot_be_made_hides_no_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    graphs = {"echo": f"{AGENTS}:echo", "broken": f"{AGENTS}:make_broken"}
    with serving(tmp_path, slots=0, graphs=graphs) as url:
        async with Client(f"{url}/mcp") as tools:
            listed = [each.name for each in (await tools.list_tools()).tools]
        failed = httpx.get(f"{url}/assistants/broken/schemas")

    assert listed == ["echo"]
    assert (failed.status_code, failed.json()) == (500, {"detail": "The server failed; its log says why."})
    assert "secret of the factory" in caplog.text


class Person:
    """Answers what a client of the protocol shows."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.asked: list[ElicitRequestFormParams] = []

    async def __call__(self, context: Any, params: ElicitRequestParams) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        self.asked.append(params)
        content = self._answers.pop(0)
        return ElicitResult(action="accept" if content else "decline", content=content)


async def test_a_question_is_put_to_the_person_before_the_client(url: str) -> None:
    person = Person({"answer": "because"})
    async with Client(f"{url}/mcp", elicitation_callback=person) as tools:
        answered = await call(tools, "echo", say("ask Why?"))

    assert answered == ("You said because.", False)
    (asked,) = person.asked
    assert asked.message == "Why?"
    assert asked.requested_schema["required"] == ["answer"]


async def test_a_person_decides_about_tools_through_the_client(url: str) -> None:
    person = Person({"decision_1": "approve", "decision_2": "reject", "message_2": "Not that."})
    async with Client(f"{url}/mcp", elicitation_callback=person) as tools:
        answered = await call(tools, "careful", say("one two"))

    assert not answered[1], answered
    assert "Not that." in answered[0]
    (asked,) = person.asked
    assert "/one.md" in asked.message
    assert asked.requested_schema["properties"]["decision_2"]["enum"] == ["approve", "reject", "respond"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_who_cannot_ask_reads_the_thread_on_which_to_answer(
    url: str, client: LangGraphClient, mode: Any
) -> None:
    async with Client(f"{url}/mcp", mode=mode) as tools:
        text, failed = await call(tools, "echo", say("ask Why?"))

    (thread_id,) = re.findall(r"/threads/([0-9a-f-]{36})/runs/wait", text)
    went_on: Any = await client.runs.wait(thread_id, "echo", command={"resume": "because"})
    assert failed
    assert "Why?" in text
    assert went_on["messages"][-1]["content"] == "You said because."


async def test_a_person_may_decline(url: str) -> None:
    async with Client(f"{url}/mcp", elicitation_callback=Person(None)) as tools:
        text, failed = await call(tools, "echo", say("ask Why?"))

    assert failed
    assert re.search(r"not answered.*/threads/[0-9a-f-]{36}/runs/wait", text)


async def test_an_answer_goes_only_to_what_is_asked(url: str, client: LangGraphClient) -> None:
    thread = (await client.threads.create())["thread_id"]
    answer = ElicitResult(action="accept", content={"answer": "because"})

    async with Client(f"{url}/mcp") as tools:
        for state in (thread, "no-uuid", "0d2a52b6-6a2c-4c7b-b2ad-4a1f6a3c9f10"):
            refused: Any = await tools.session.call_tool(
                "echo", say("ask Why?"), input_responses={"1": answer}, request_state=state
            )
            assert refused.is_error

    assert await client.runs.list(thread) == []


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
