from __future__ import annotations

import asyncio
import re
from contextlib import closing
from http.client import HTTPConnection
from typing import Any

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient, SyncLangGraphClient

from tests.server.test_runs import say


async def events(stream: Any) -> list[tuple[str, Any]]:
    return [(part.event, part.data) async for part in stream]


async def test_each_mode_has_its_events(client: LangGraphClient) -> None:
    modes: Any = ["values", "updates", "custom", "messages-tuple", "tasks", "checkpoints", "debug"]

    seen = await events(client.runs.stream(None, "echo", input=say("progress half"), stream_mode=modes))

    names = [name for name, _ in seen]
    assert names[0] == "metadata"
    assert {*names} == {
        "metadata",
        "values",
        "updates",
        "custom",
        "messages",
        "tasks",
        "checkpoints",
        "debug",
    }
    of_name = dict(seen)
    assert of_name["custom"] == {"progress": "half"}
    assert of_name["updates"]["answer"]["steps"] == ["answered"]
    assert of_name["messages"][0]["content"] == "Echo: progress half"
    assert of_name["messages"][1]["langgraph_node"] == "answer"
    assert [each["type"] for each in of_name["values"]["messages"]] == ["human", "ai"]


def test_a_blocking_client_streams_too(sync_client: SyncLangGraphClient) -> None:
    made: list[Any] = []
    thread = sync_client.threads.create()["thread_id"]

    seen = list(
        sync_client.runs.stream(
            thread, "deep", input=say("hello"), stream_mode="messages", on_run_created=made.append
        )
    )

    assert made[0]["thread_id"] == thread
    assert seen[0].data == {"run_id": made[0]["run_id"], "attempt": 1}
    assert {part.event for part in seen} >= {"messages/metadata", "messages/partial"}
    assert seen[-1].data[0]["content"] == "Thirteen metres."
    assert {part.data[0]["type"] for part in seen if part.event == "messages/partial"} == {"ai"}


@pytest.mark.parametrize("mode", ["checkpoints", "debug"])
async def test_a_stream_begins_with_the_first_checkpoint(client: LangGraphClient, mode: Any) -> None:
    """It may be there before a client of the stream is."""
    seen = await events(client.runs.stream(None, "echo", input=say("hello"), stream_mode=mode))

    shown = [data for name, data in seen if name == mode and data.get("type", "checkpoint") == "checkpoint"]
    assert [each.get("payload", each)["metadata"]["step"] for each in shown] == [-1, 0, 1]


def test_no_browser_guesses_what_an_answer_is(url: str) -> None:
    asked = {"assistant_id": "echo", "input": say("hello")}
    for path in ("runs/stream", "runs/wait", "v1/chat/completions"):
        answered = httpx.post(f"{url}/{path}", json=asked, timeout=60)
        assert answered.headers["x-content-type-options"] == "nosniff", path
    assert httpx.get(f"{url}/metrics").headers["x-content-type-options"] == "nosniff"


async def test_graphs_inside_are_named(client: LangGraphClient) -> None:
    stream = client.runs.stream(
        None, "outer", input=say("hello"), stream_mode="updates", stream_subgraphs=True
    )

    names = [name for name, _ in await events(stream)]

    assert [name for name in names if name.startswith("updates|inner:")]
    assert "updates" in names


async def test_every_callback_is_an_event(client: LangGraphClient) -> None:
    seen = await events(
        client.runs.stream(None, "echo", input=say("hello"), stream_mode=["events", "values"])
    )

    assert [name for name, _ in seen].count("values") == 2
    assert {data["event"] for name, data in seen if name == "events"} >= {"on_chain_start", "on_chain_end"}


async def test_a_question_and_a_failure_are_events(client: LangGraphClient) -> None:
    thread = (await client.threads.create())["thread_id"]

    asked = await events(
        client.runs.stream(thread, "echo", input=say("ask Why?"), stream_mode=["updates", "values"])
    )
    failed = await events(client.runs.stream(None, "echo", input=say("fail badly")))

    (question,) = [
        data["__interrupt__"] for name, data in asked if name == "updates" and "__interrupt__" in data
    ]
    assert question[0]["value"] == "Why?"
    assert failed[-1] == ("error", {"error": "ValueError", "message": "badly"})


async def test_a_resumable_run_can_be_read_again_from_any_event(client: LangGraphClient) -> None:
    thread = (await client.threads.create())["thread_id"]
    first = [
        part async for part in client.runs.stream(thread, "echo", input=say("hello"), stream_resumable=True)
    ]
    run = first[0].data["run_id"]

    again = [part async for part in client.runs.join_stream(thread, run, last_event_id="-1")]
    rest = [part async for part in client.runs.join_stream(thread, run, last_event_id=first[1].id)]

    assert again == first
    assert rest == first[2:]


async def test_a_run_that_keeps_nothing_leaves_an_empty_stream(client: LangGraphClient) -> None:
    thread = (await client.threads.create())["thread_id"]
    run = (await client.runs.create(thread, "echo", input=say("hello")))["run_id"]
    await client.runs.join(thread, run)

    assert await events(client.runs.join_stream(thread, run)) == []


@pytest.mark.slow
async def test_a_stream_that_is_cut_anywhere_goes_on_behind_the_last_whole_event(
    client: LangGraphClient, url: str
) -> None:
    text = "Bücher über 🐋 und 鯨"
    thread = (await client.threads.create())["thread_id"]
    asked: Any = {"stream_mode": ["custom", "values"], "stream_resumable": True}
    run = (await client.runs.create(thread, "echo", input=say(f"progress {text}"), **asked))["run_id"]
    await client.runs.join(thread, run)
    path = f"/threads/{thread}/runs/{run}/stream"
    whole = await asyncio.to_thread(read, url, path, "-1")
    assert whole.count(text.encode()) > 1

    characters = [at for at in range(len(whole)) if whole[at] & 0xC0 == 0x80]
    ends = [at for at in range(len(whole)) if whole[:at].endswith(b"\n")]
    for cut in {*characters, *ends, *(at - 1 for at in ends), *(at + 1 for at in ends)}:
        begun = await asyncio.to_thread(read, url, path, "-1", cut)
        taken = re.match(rb"(?:.+?\r?\n\r?\n)*", begun, re.DOTALL)
        events = taken.group() if taken else b""
        last_id = (re.findall(rb"^id: (\S+)", events, re.MULTILINE) or [b"-1"])[-1]
        assert events + await asyncio.to_thread(read, url, path, last_id.decode()) == whole


def read(url: str, path: str, last_id: str, most: int | None = None) -> bytes:
    """Read so many bytes of a stream, and break the connection off."""
    with closing(HTTPConnection(url.removeprefix("http://"), timeout=60)) as connection:
        connection.request("GET", path, headers={"Last-Event-ID": last_id})
        return connection.getresponse().read(most)
