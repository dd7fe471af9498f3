from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from httpx import AsyncClient, HTTPStatusError
from langgraph_sdk.client import LangGraphClient, SyncLangGraphClient


def say(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def last(values: Any) -> str:
    return values["messages"][-1]["content"]


async def test_a_thread_keeps_what_its_runs_leave(client: LangGraphClient) -> None:
    thread = (await client.threads.create())["thread_id"]

    first = await client.runs.wait(thread, "echo", input=say("hello"))
    await client.runs.wait(thread, "echo", input=say("again"))

    assert last(first) == "Echo: hello"
    kept: Any = await client.threads.get(thread)
    assert [each["content"] for each in kept["values"]["messages"]] == [
        "hello",
        "Echo: hello",
        "again",
        "Echo: again",
    ]
    assert kept["status"] == "idle"
    assert kept["metadata"]["graph_id"] == "echo"


def test_blocking_clients_are_served_alike(sync_client: SyncLangGraphClient) -> None:
    thread = sync_client.threads.create()["thread_id"]

    run = sync_client.runs.create(thread, "echo", input=say("hello"))

    assert last(sync_client.runs.join(thread, run["run_id"])) == "Echo: hello"
    assert sync_client.runs.get(thread, run["run_id"])["status"] == "success"
    assert [each["run_id"] for each in sync_client.runs.list(thread)] == [run["run_id"]]


async def test_a_run_without_a_thread_answers_and_leaves_nothing(client: LangGraphClient) -> None:
    assert last(await client.runs.wait(None, "echo", input=say("hello"))) == "Echo: hello"


async def test_a_deep_agent_is_served(client: LangGraphClient) -> None:
    values = await client.runs.wait(None, "deep", input=say("How high is the tide?"))

    assert last(values) == "Thirteen metres."


async def test_an_answer_that_broke_off_is_no_success(client: LangGraphClient) -> None:
    thread = (await client.threads.create())["thread_id"]

    events = [each async for each in client.runs.stream(thread, "deep", input=say("How long is the tale?"))]

    assert events[-1].event == "error"
    assert events[-1].data["message"] == "The answer was cut off at a limit of tokens."
    kept: Any = await client.threads.get(thread)
    assert (kept["status"], last(kept["values"])) == ("error", "Once upon a")
    assert [run["status"] for run in await client.runs.list(thread)] == ["error"]
    again = await client.runs.wait(thread, "deep", input=say("How high is the tide?"))
    assert last(again) == "Thirteen metres."


async def test_a_failure_is_shown_without_its_trace(client: LangGraphClient) -> None:
    thread = (await client.threads.create())["thread_id"]

    failed = await client.runs.wait(thread, "echo", input=say("fail badly"), raise_error=False)

    assert failed == {"__error__": {"error": "ValueError", "message": "badly"}}
    kept = await client.threads.get(thread)
    assert kept["status"] == "error"
    (run,) = await client.runs.list(thread)
    assert run["status"] == "error"


async def test_a_question_waits_for_its_answer(client: LangGraphClient) -> None:
    thread = (await client.threads.create())["thread_id"]

    asked: Any = await client.runs.wait(thread, "echo", input=say("ask Really?"))

    assert [each["value"] for each in asked["__interrupt__"]] == ["Really?"]
    waiting = await client.threads.get(thread)
    assert waiting["status"] == "interrupted"
    assert [each["value"] for (task,) in [waiting["interrupts"].values()] for each in task] == ["Really?"]
    (run,) = await client.runs.list(thread)
    assert run["status"] == "success"

    answered = await client.runs.wait(thread, "echo", command={"resume": "yes"})

    assert last(answered) == "You said yes."
    assert (await client.threads.get(thread))["interrupts"] == {}


async def test_what_is_not_there_is_not_found(client: LangGraphClient) -> None:
    nobody = str(uuid4())

    for asked in (
        client.threads.get(nobody),
        client.runs.create(nobody, "echo", input=say("hello")),
        client.runs.wait(None, "nothing", input=say("hello")),
        client.assistants.get(nobody),
    ):
        with pytest.raises(HTTPStatusError) as refused:
            await asked
        assert refused.value.response.status_code == 404
        assert "There is no" in refused.value.response.json()["detail"]


async def test_of_a_batch_all_runs_are_made_or_none(client: LangGraphClient, url: str) -> None:
    thread = (await client.threads.create())["thread_id"]
    good = {"assistant_id": "echo", "thread_id": thread, "input": say("hello")}
    bad = [{"thread_id": str(uuid4())}, {"assistant_id": "nobody"}, {"multitask_strategy": "reject"}]
    async with AsyncClient(base_url=url) as plain:
        statuses = [
            (await plain.post("/runs/batch", json=[good, {**good, **each}])).status_code for each in bad
        ]
        assert await client.runs.list(thread) == []
        made = (await plain.post("/runs/batch", json=[good, {**good, "input": say("again")}])).json()

    assert statuses == [404, 404, 409]
    assert last(await client.runs.join(thread, made[1]["run_id"])) == "Echo: again"
    assert [each["run_id"] for each in await client.runs.list(thread)] == [
        made[1]["run_id"],
        made[0]["run_id"],
    ]


async def test_a_batch_begins_no_more_runs_than_there_is_room_for(client: LangGraphClient, url: str) -> None:
    waiting = {"assistant_id": "echo", "input": say(f"wait {uuid4()}"), "on_completion": "keep"}
    async with AsyncClient(base_url=url) as plain:
        made = (await plain.post("/runs/batch", json=[waiting] * 12)).json()
        states = [await client.runs.get(each["thread_id"], each["run_id"]) for each in made]
        for each in reversed(made):
            await client.runs.cancel(each["thread_id"], each["run_id"], wait=True)

    assert [each["status"] for each in states] == ["running"] * 10 + ["pending"] * 2
