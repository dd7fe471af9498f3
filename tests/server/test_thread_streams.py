from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any
from uuid import uuid4

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient, SyncLangGraphClient

from tests.server.test_runs import say


@pytest.mark.parametrize("transport", ["sse", "websocket"])
async def test_a_thread_tells_its_messages_in_blocks(client: LangGraphClient, transport: Any) -> None:
    async with client.threads.stream(assistant_id="deep", transport=transport) as thread:
        started = await thread.run.start(input=say("How deep?"))
        messages = [message async for message in thread.messages]
        spoken = [await message.text for message in messages]
        left: Any = await thread.output

    assert spoken == ["Thirteen metres."]
    assert left["messages"][-1]["content"] == "Thirteen metres."
    assert (await client.runs.get(thread.thread_id, started["run_id"]))["status"] == "success"


@pytest.mark.parametrize("transport", ["sse", "websocket"])
def test_a_blocking_client_hears_of_a_graph_inside(sync_client: SyncLangGraphClient, transport: Any) -> None:
    with sync_client.threads.stream(assistant_id="outer", transport=transport) as thread:
        thread.run.start(input=say("hello"))
        seen = [(event["method"], event["params"]) for event in thread.events]

    ends = [
        (len(params["namespace"]), params["data"]["event"]) for name, params in seen if name == "lifecycle"
    ]
    assert ends == [(0, "running"), (1, "started"), (1, "completed"), (0, "completed")]
    assert {name for name, _ in seen} == {
        "lifecycle", "values", "updates", "tasks", "checkpoints", "messages"
    }  # fmt: skip


async def test_a_question_is_answered_on_the_thread(client: LangGraphClient) -> None:
    async with client.threads.stream(assistant_id="echo") as thread:
        await thread.run.start(input=say("ask Why?"))
        async for _ in thread.values:
            pass
        asked = [*thread.interrupts]
        await thread.run.respond("because")
        left: Any = await thread.output

    assert [each["value"] for each in asked] == ["Why?"]
    assert left["messages"][-1]["content"] == "You said because."


async def test_whoever_comes_back_reads_on(client: LangGraphClient) -> None:
    async with client.threads.stream(assistant_id="deep") as thread:
        await thread.run.start(input=say("How deep?"))
        first = await _until_over(thread.events)
    async with client.threads.stream(thread.thread_id, assistant_id="deep") as again:
        repeated = await _until_over(again.events)

    assert [event["event_id"] for event in repeated] == [event["event_id"] for event in first]
    assert [event["seq"] for event in first] == sorted(event["seq"] for event in first)


async def test_a_subscription_can_begin_in_the_middle_and_be_narrow(
    client: LangGraphClient, url: str
) -> None:
    async with client.threads.stream(assistant_id="outer") as thread:
        await thread.run.start(input=say("hello"))
        all_of_it = await _until_over(thread.events)
    wanted = [event for event in all_of_it if event["method"] == "updates"]
    inner = [event for event in wanted if event["params"]["namespace"]]
    wish = {"channels": ["updates", "lifecycle"], "namespaces": [["inner"]], "depth": 0}

    async with (
        httpx.AsyncClient(base_url=url, timeout=60) as plain,
        plain.stream(
            "POST",
            f"/threads/{thread.thread_id}/stream/events",
            json={**wish, "since": all_of_it[2]["seq"]},
        ) as told,
    ):
        lines = (line async for line in told.aiter_lines() if line.startswith("id: "))
        numbers = [int((await anext(lines))[4:]) for _ in range(3)]

    assert len(inner) == 1
    assert inner[0]["seq"] in numbers
    assert numbers[0] > all_of_it[2]["seq"]


async def test_the_stream_of_a_thread_outlives_its_runs(client: LangGraphClient) -> None:
    thread = (await client.threads.create())["thread_id"]
    seen = asyncio.ensure_future(_until_done(client, thread, "-1", 2))

    for text in ("one", "two"):
        await client.runs.wait(thread, "echo", input=say(text))
    parts = await seen
    (first_end, _) = _ends(parts)
    rest = await _until_done(client, thread, first_end.id, 1)

    assert [part.data["messages"][-1]["content"] for part in parts if part.event == "values"][1::2] == [
        "Echo: one",
        "Echo: two",
    ]
    assert [part.id for part in rest] == [part.id for part in parts[parts.index(first_end) + 1 :]]


async def _until_over(events: Any) -> list[Any]:
    seen: list[Any] = []
    async with aclosing(events):
        async for event in events:
            seen.append(event)
            told = event["params"]
            if (
                event["method"] == "lifecycle"
                and told["data"]["event"] == "completed"
                and not told["namespace"]
            ):
                break
    return seen


def _ends(parts: list[Any]) -> list[Any]:
    return [part for part in parts if part.event == "metadata" and "status" in part.data]


async def _until_done(client: LangGraphClient, thread: str, last: str, runs: int) -> list[Any]:
    parts: list[Any] = []
    stream: Any = await client.threads.join_stream(thread, last_event_id=last)
    async with aclosing(stream):
        async for part in stream:
            parts.append(part)
            if len(_ends(parts)) == runs:
                break
    return parts


def test_a_command_is_refused_with_the_status_of_any_request(
    sync_client: SyncLangGraphClient, url: str
) -> None:
    thread = sync_client.threads.create()["thread_id"]
    sync_client.runs.create(thread, "echo", input=say("later"), after_seconds=9999)
    run: dict[str, Any] = {"assistant_id": "echo", "input": say("hello")}
    marked = {**run, "metadata": {"a": "nul \0"}}

    def tell(method: str, params: Any, of: str = thread) -> tuple[int, str, str]:
        command = {"id": 7, "method": method, "params": params}
        answer = httpx.post(f"{url}/threads/{of}/commands", json=command)
        told = answer.json()
        assert (told["type"], told["id"]) == ("error", 7)
        return answer.status_code, told["error"], told["message"]

    busy = tell("run.start", {**run, "multitask_strategy": "reject"})
    assert busy[:2] == (409, "invalid_argument")
    assert "busy" in busy[2]
    assert tell("run.start", {**run, "assistant_id": "moon"})[0] == 404
    assert tell("run.start", run, "no-uuid")[0] == 422
    assert tell("run.start", marked)[0] == 422
    assert tell("agent.getTree", {}, str(uuid4()))[0] == 404
    assert tell("input.respond", {"interrupt_id": "1"}, str(uuid4()))[0] == 404


def test_a_wrong_command_has_an_answer_of_the_protocol(sync_client: SyncLangGraphClient, url: str) -> None:
    thread = sync_client.threads.create()["thread_id"]

    def tell(command: Any) -> tuple[int, Any]:
        answer = httpx.post(f"{url}/threads/{thread}/commands", json=command)
        return answer.status_code, answer.json().get("error")

    wrong = {"interrupt_id": "none", "response": 1}
    assert tell([]) == (400, "invalid_argument")
    assert tell({"id": 1, "method": "sing"}) == (200, "unknown_command")
    assert tell({"id": 1, "method": "run.start"}) == (200, "invalid_argument")
    assert tell({"id": 1, "method": "run.start", "params": {"assistant_id": "none"}}) == (
        404,
        "invalid_argument",
    )
    assert tell({"id": 1, "method": "input.respond", "params": wrong}) == (200, "no_such_interrupt")
    assert tell({"id": 1, "method": "agent.getTree"}) == (200, "no_such_run")
    assert (
        httpx.post(f"{url}/threads/{thread}/stream/events", json={"channels": ["smoke"]}).status_code == 422
    )
