from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import ConflictError, NotFoundError

from tests.server.serving import serving
from tests.server.test_runs import last, say


async def test_threads_are_made_changed_and_removed(client: LangGraphClient) -> None:
    made = await client.threads.create(metadata={"colour": "red"})
    thread = made["thread_id"]

    await client.threads.update(thread, metadata={"size": 3})

    assert (await client.threads.get(thread))["metadata"] == {"colour": "red", "size": 3}
    assert (await client.threads.create(thread_id=thread, if_exists="do_nothing"))["thread_id"] == thread
    with pytest.raises(ConflictError):
        await client.threads.create(thread_id=thread)
    await client.threads.delete(thread)
    with pytest.raises(NotFoundError):
        await client.threads.get(thread)


async def test_what_clients_add_at_once_is_all_kept(client: LangGraphClient) -> None:
    thread = (await client.threads.create())["thread_id"]

    await asyncio.gather(*(client.threads.update(thread, metadata={f"k{n}": n}) for n in range(16)))

    assert (await client.threads.get(thread))["metadata"] == {f"k{n}": n for n in range(16)}


async def test_threads_are_found_by_what_they_say_of_themselves(client: LangGraphClient) -> None:
    mark = str(uuid4())
    plain = await client.threads.create(
        metadata={"mark": mark, "on": True, "n": 1, "in": {"a": ["x", 2], "b": None}}
    )
    other = await client.threads.create(metadata={"mark": mark, "on": 1, "n": "1", "in": {"a": ["y"]}})
    await client.runs.wait(other["thread_id"], "echo", input=say("hello"))

    async def find(**wanted: Any) -> list[str]:
        found = await client.threads.search(
            metadata={"mark": mark, **wanted}, sort_by="created_at", sort_order="asc"
        )
        return [each["thread_id"] for each in found]

    both = [plain["thread_id"], other["thread_id"]]
    assert await find() == both
    assert await find(on=True) == both[:1]
    assert await find(n=1) == both[:1]
    assert await find(n="1") == both[1:]
    assert await find(**{"in": {"a": [2]}}) == both[:1]
    assert await find(**{"in": {"b": None}}) == both[:1]
    assert await find(graph_id="echo") == both[1:]
    assert await find(**{"x' OR '1'='1": "1"}) == []
    assert await client.threads.count(metadata={"mark": mark}) == 2
    steps: Any = await client.threads.search(metadata={"mark": mark}, values={"steps": ["answered"]})
    assert [each["thread_id"] for each in steps] == both[1:]
    chosen: Any = await client.threads.search(metadata={"mark": mark}, limit=1, select=["thread_id"])
    assert [*chosen[0]] == ["thread_id"]


async def test_the_state_is_read_changed_and_remembered(client: LangGraphClient) -> None:
    thread = (await client.threads.create(graph_id="echo"))["thread_id"]
    assert (await client.threads.get_state(thread))["values"] == {}
    await client.runs.wait(thread, "echo", input=say("hello"))

    changed: Any = await client.threads.update_state(thread, {"steps": ["by hand"]})
    state: Any = await client.threads.get_state(thread)
    states: Any = await client.threads.get_history(thread)
    first: Any = await client.threads.get_state(thread, checkpoint_id=states[-2]["checkpoint_id"])

    assert state["values"]["steps"] == ["answered", "by hand"]
    assert state["checkpoint"] == changed["checkpoint"]
    assert state["next"] == []
    assert [each["metadata"]["source"] for each in states] == ["update", "loop", "loop", "input"]
    assert first["next"] == ["answer"]
    earlier: Any = await client.threads.get_history(thread, before=states[1]["checkpoint"], limit=1)
    assert earlier[0]["checkpoint"] == states[2]["checkpoint"]
    kept: Any = await client.threads.get(thread)
    assert kept["values"]["steps"] == ["answered", "by hand"]


async def test_a_run_can_begin_at_an_earlier_state(client: LangGraphClient) -> None:
    thread = (await client.threads.create())["thread_id"]
    await client.runs.wait(thread, "echo", input=say("hello"))
    states: Any = await client.threads.get_history(thread)

    again: Any = await client.runs.wait(
        thread, "echo", input=say("other"), checkpoint=states[-1]["checkpoint"]
    )

    assert [each["content"] for each in again["messages"]] == ["other", "Echo: other"]


async def test_a_copy_goes_its_own_way(client: LangGraphClient) -> None:
    thread = (await client.threads.create())["thread_id"]
    await client.runs.wait(thread, "deep", input=say("hello"))

    copied: Any = await client.threads.copy(thread)
    await client.runs.wait(copied["thread_id"], "deep", input=say("more"))

    first: Any = await client.threads.get_state(thread)
    assert len(first["values"]["messages"]) == 2
    state: Any = await client.threads.get_state(copied["thread_id"])
    assert [each["content"] for each in state["values"]["messages"]] == [
        "hello",
        "Thirteen metres.",
        "more",
        "Thirteen metres.",
    ]


async def test_strange_texts_come_back_as_they_went(client: LangGraphClient) -> None:
    thread = (await client.threads.create())["thread_id"]

    values = await client.runs.wait(thread, "echo", input=say("nul \0, quote ' and \N{SNOWMAN}"))

    assert last(values) == "Echo: nul \0, quote ' and \N{SNOWMAN}"


@pytest.mark.parametrize(
    ("path", "made"),
    [
        ("/threads", {}),
        ("/assistants", {"graph_id": "echo"}),
        ("/runs/crons", {"assistant_id": "echo", "schedule": "0 0 1 1 *"}),
    ],
)
def test_metadata_that_grows_by_changes_has_the_bound_of_a_body(
    tmp_path: Path, path: str, made: dict[str, str]
) -> None:
    with (
        serving(tmp_path, slots=0, bounds={"max_body": 1000}) as url,
        httpx.Client(base_url=url, timeout=60) as client,
    ):
        one = f"{path}/{next(iter(client.post(path, json=made).json().values()))}"
        assert client.patch(one, json={"metadata": {"first": "x" * 600}}).status_code == 200

        refused = client.patch(one, json={"metadata": {"second": "x" * 600}})

        assert (refused.status_code, refused.json()["detail"]) == (413, "The metadata may have 1,000 bytes.")
        assert client.patch(one, json={"metadata": {"first": "less"}}).status_code == 200
        assert client.get(one).json()["metadata"].get("second") is None
