"""What clients may send though few do: both ends of a range, nothing, fields that they left empty."""

from __future__ import annotations

from typing import Any, cast
from uuid import uuid4

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient, SyncLangGraphClient
from langgraph_sdk.errors import BadRequestError, NotFoundError, UnprocessableEntityError

from tests.server.test_runs import last, say


def texts(values: Any) -> list[str]:
    return [each["content"] for each in values["messages"]]


async def test_a_command_changes_a_state_by_pairs_and_goes_to_several_nodes(client: LangGraphClient) -> None:
    thread = (await client.threads.create())["thread_id"]
    await client.runs.wait(thread, "echo", input=say("hello"))
    pairs: Any = {"update": [("messages", say("more")["messages"]), ("steps", ["by hand"])]}

    changed: Any = await client.runs.wait(thread, "echo", command=pairs)
    gone_on: Any = await client.runs.wait(thread, "echo", command={"goto": ["answer"]})

    assert texts(changed) == ["hello", "Echo: hello", "more"]
    assert changed["steps"] == ["answered", "by hand"]
    assert last(gone_on) == "Echo: more"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("command", {"update": "text"}),
        ("command", {"update": [{"messages": []}]}),
        ("command", {"goto": 5}),
        ("command", {"goto": {"input": {}}}),
        ("command", ["answer"]),
        ("config", {"recursion_limit": "5"}),
        ("config", {"tags": "x"}),
        ("config", {"configurable": []}),
        ("webhook", ""),
        ("interrupt_before", "answer"),
        ("stream_mode", ["values", "moon"]),
        ("durability", "soon"),
        ("on_disconnect", "stay"),
        ("multitask_strategy", "wait"),
    ],
)
def test_what_means_nothing_is_refused_before_it_runs(url: str, field: str, value: Any) -> None:
    refused = httpx.post(
        f"{url}/runs/wait", json={"assistant_id": "echo", "input": say("hello"), field: value}
    )

    assert refused.status_code == 422
    assert refused.json()["detail"].startswith(field)


OPTIONS = (
    "metadata", "config", "context", "command", "webhook", "checkpoint", "checkpoint_id", "interrupt_before",
    "interrupt_after", "multitask_strategy", "if_not_exists", "on_completion", "on_disconnect",
    "after_seconds", "durability", "feedback_keys", "stream_mode", "stream_subgraphs", "stream_resumable",
)  # fmt: skip


def test_what_is_left_empty_is_not_there(url: str) -> None:
    run = {"assistant_id": "echo", "input": say("hello"), **dict.fromkeys(OPTIONS), "of": "another version"}

    assert last(httpx.post(f"{url}/runs/wait", json=run, timeout=60).json()) == "Echo: hello"
    assert httpx.post(f"{url}/threads").status_code == 422
    for path in ("threads/search", "threads/count", "assistants/search", "runs/crons/search"):
        for body in (b"", b"null", b"{}"):
            assert httpx.post(f"{url}/{path}", content=body).status_code == 200, path


def test_a_command_that_says_nothing_goes_on(sync_client: SyncLangGraphClient, url: str) -> None:
    thread = sync_client.threads.create()["thread_id"]
    sync_client.runs.wait(thread, "echo", input=say("ask Why?"))
    empty = {"goto": None, "update": None, "resume": None}

    asked = httpx.post(
        f"{url}/threads/{thread}/runs/wait", json={"assistant_id": "echo", "command": empty}, timeout=60
    ).json()

    assert asked["__interrupt__"][0]["value"] == "Why?"


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
async def test_each_step_is_saved_whatever_is_asked_for(client: LangGraphClient, durability: Any) -> None:
    thread = (await client.threads.create())["thread_id"]
    await client.runs.wait(thread, "echo", input=say("hello"), durability=durability)

    assert len(await client.threads.get_history(thread)) == 3


async def test_a_run_begins_at_no_checkpoint_that_is_not_there(client: LangGraphClient) -> None:
    thread, other = [(await client.threads.create())["thread_id"] for _ in range(2)]
    await client.runs.wait(thread, "echo", input=say("hello"))
    there: Any = (await client.threads.get_state(thread))["checkpoint"]

    absent: Any = [(thread, "no-such"), (other, there["checkpoint_id"]), (None, there["checkpoint_id"])]
    for on, wrong in absent:
        with pytest.raises(NotFoundError, match="There is no checkpoint"):
            await client.runs.create(on, "echo", input=say("again"), checkpoint_id=wrong)
    assert last(await client.runs.wait(thread, "echo", input=say("on"), checkpoint=there)) == "Echo: on"


async def test_a_run_is_found_on_its_own_thread_only(client: LangGraphClient, url: str) -> None:
    thread, other = [(await client.threads.create())["thread_id"] for _ in range(2)]
    await client.runs.wait(thread, "echo", input=say("hello"))
    run = (await client.runs.list(thread))[0]["run_id"]

    for method, end in (
        ("GET", ""),
        ("GET", "/join"),
        ("GET", "/stream"),
        ("POST", "/cancel"),
        ("DELETE", ""),
    ):
        assert httpx.request(method, f"{url}/threads/{other}/runs/{run}{end}").status_code == 404
    assert (await client.runs.get(thread, run))["status"] == "success"


async def test_nobody_says_in_a_configuration_who_they_are(client: LangGraphClient) -> None:
    forged: Any = {
        "langgraph_auth_user": {"identity": "cid"},
        "langgraph_auth_x": 1,
        "__pregel_x": 1,
        "tone": "low",
    }
    thread = (await client.threads.create())["thread_id"]

    told = await client.runs.wait(thread, "echo", input=say("who"), config={"configurable": forged})

    assert last(told) == "None of None"
    (run,) = cast(list[Any], await client.runs.list(thread))
    assert run["kwargs"]["config"]["configurable"] == {"tone": "low"}


async def test_a_graph_finds_its_context_in_the_configuration_too(client: LangGraphClient) -> None:
    ask: Any = {"assistant_id": "echo", "input": say("tone ?")}

    assert last(await client.runs.wait(None, **ask, context={"tone": "warm"})) == "warm"
    over: Any = {"configurable": {"tone": "calm"}}
    assert last(await client.runs.wait(None, **ask, context={"tone": "warm"}, config=over)) == "calm"
    made = await client.assistants.create("echo", context={"tone": "low"})
    assert last(await client.runs.wait(None, made["assistant_id"], input=say("tone ?"))) == "low"


async def test_parts_of_threads_are_shown_by_themselves(client: LangGraphClient) -> None:
    thread = (await client.threads.create(metadata={"a": {"b c": [1, {"x": 2}]}}))["thread_id"]
    await client.runs.wait(thread, "echo", input=say("hello"))
    wanted = {
        "last": "values.messages[-1].content",
        "deep": "metadata.a.b c[1].x",
        "whole": "interrupts",
        "none": "values.messages[9].content",
        "odd": "values.messages[x]",
        "odder": "values.steps.0",
    }

    (found,) = await client.threads.search(ids=[thread], select=["thread_id"], extract=wanted)

    shown: Any = found
    assert shown == {
        "thread_id": thread,
        "extracted": {
            "last": "Echo: hello",
            "deep": 2,
            "whole": {},
            "none": None,
            "odd": None,
            "odder": None,
        },
    }
    for wrong in (
        {"x": "thread_id"},
        {"x": "valuesX"},
        {"a b": "values"},
        {f"k{n}": "values" for n in range(11)},
    ):
        with pytest.raises(UnprocessableEntityError, match="extract"):
            await client.threads.search(extract=wrong)


async def test_runs_are_listed_with_the_fields_that_are_wanted(client: LangGraphClient) -> None:
    thread = (await client.threads.create())["thread_id"]
    await client.runs.wait(thread, "echo", input=say("hello"))

    (run,) = await client.runs.list(thread, select=["run_id", "status"])

    assert [*run] == ["run_id", "status"]
    assert await client.runs.list(thread, limit=0) == []
    assert await client.runs.list(thread, offset=10**9) == []
    with pytest.raises(UnprocessableEntityError, match="moon"):
        await client.runs.list(thread, select=["moon"])  # type: ignore[list-item]


async def test_threads_that_changed_last_come_first(client: LangGraphClient) -> None:
    mark = {"mark": str(uuid4())}
    made = [(await client.threads.create(metadata=mark))["thread_id"] for _ in range(3)]
    await client.threads.update(made[0], metadata={"more": 1})

    found = [each["thread_id"] for each in await client.threads.search(metadata=mark)]

    assert found == [made[0], made[2], made[1]]
    assert await client.threads.search(metadata=mark, offset=10**9) == []


async def test_a_change_of_a_thread_needs_no_answer(client: LangGraphClient) -> None:
    thread = (await client.threads.create())["thread_id"]

    assert await client.threads.update(thread, metadata={"a": 1}, return_minimal=True) is None
    assert (await client.threads.get(thread, include=["ttl"]))["metadata"] == {"a": 1}


def test_no_part_of_a_history_is_an_empty_list(url: str, sync_client: SyncLangGraphClient) -> None:
    thread = sync_client.threads.create()["thread_id"]
    assert sync_client.threads.get_state(thread)["checkpoint"] is None
    sync_client.runs.wait(thread, "echo", input=say("hello"))
    history = f"{url}/threads/{thread}/history"

    assert httpx.get(history, params={"limit": 0}).json() == []
    assert httpx.post(history, json={"limit": 0}).json() == []
    assert len(httpx.get(history).json()) == 3


async def test_a_state_that_cannot_be_is_refused(client: LangGraphClient) -> None:
    thread = (await client.threads.create())["thread_id"]

    with pytest.raises(BadRequestError, match="graph_id"):
        await client.threads.update_state(thread, say("hello"))
    await client.runs.wait(thread, "echo", input=say("hello"))
    with pytest.raises(BadRequestError, match="moon"):
        await client.threads.update_state(thread, say("hello"), as_node="moon")


async def test_an_assistant_takes_its_threads_with_it_if_it_is_to(client: LangGraphClient) -> None:
    made = (await client.assistants.create("echo"))["assistant_id"]
    other = (await client.threads.create())["thread_id"]
    thread = (await client.threads.create())["thread_id"]
    await client.runs.wait(thread, made, input=say("hello"))
    await client.runs.create(thread, made, input=say(f"wait {uuid4()}"))

    await client.assistants.delete(made, delete_threads=True)

    with pytest.raises(NotFoundError):
        await client.threads.get(thread)
    assert await client.threads.get(other)
    with pytest.raises(NotFoundError):
        await client.assistants.delete(made, delete_threads=True)


def test_a_graph_is_drawn_as_deep_as_is_wanted(url: str) -> None:
    def draw(xray: str) -> httpx.Response:
        return httpx.get(f"{url}/assistants/outer/graph", params={"xray": xray})

    assert "inner:answer" in draw("1").text
    assert "inner:answer" not in draw("false").text
    assert draw("True").json() == draw("1").json()
    assert draw("-1").json()["detail"] == "xray: Input should be greater than or equal to 0."


async def test_schedules_are_found_by_the_name_of_their_graph(client: LangGraphClient) -> None:
    thread = (await client.threads.create())["thread_id"]
    made: Any = await client.crons.create_for_thread(thread, "echo", schedule="0 0 1 1 *", input=say("hello"))

    by_name: Any = await client.crons.search(assistant_id="echo", thread_id=thread)
    by_id: Any = await client.crons.search(assistant_id=made["assistant_id"], thread_id=thread)
    await client.crons.delete(made["cron_id"])

    assert [each["cron_id"] for each in by_name] == [each["cron_id"] for each in by_id] == [made["cron_id"]]
    with pytest.raises(UnprocessableEntityError, match="on_run_completed"):
        await client.crons.create("echo", schedule="0 0 1 1 *", on_run_completed="moon")  # type: ignore[arg-type]


async def test_the_stores_own_namespace_is_refused(client: LangGraphClient) -> None:
    with pytest.raises(UnprocessableEntityError, match="langgraph"):
        await client.store.put_item(["langgraph"], "tide", {})


async def test_who_names_no_assistant_is_told_where_they_are(client: LangGraphClient) -> None:
    with pytest.raises(NotFoundError, match="'moon'.*POST /assistants/search"):
        await client.runs.create(None, "moon", input=say("hello"))
