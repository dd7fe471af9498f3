"""Values that are JSON, but not what anybody means, are refused with a sentence."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest

from tests.attacks.server.conftest import World

pytestmark = pytest.mark.slow

_DEEP: Any = json.loads('{"a":' * 150 + "1" + "}" * 150)
_CRON = {"assistant_id": "echo", "schedule": "0 9 * * *"}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/threads/search", {"metadata": _DEEP}),
        ("/threads/search", {"values": {f"key {number}": number for number in range(3000)}}),
        ("/threads/search", {"ids": [str(uuid4()) for _ in range(1001)]}),
        ("/runs/cancel", {"thread_id": str(uuid4()), "run_ids": [str(uuid4()) for _ in range(1001)]}),
        ("/threads", {"supersteps": [{"updates": 5}]}),
        ("/threads", {"supersteps": [{"updates": [{"as_node": 5}]}]}),
        ("/threads/{thread_id}/state/checkpoint", {"checkpoint": {"checkpoint_id": {"a": 1}}}),
        ("/threads/{thread_id}/history", {"before": {"checkpoint_id": {"a": 1}}}),
        ("/threads/{thread_id}/history", {"metadata": {"a' OR 1=1 --": 1}}),
        ("/runs/wait", {"assistant_id": "echo", "config": {"configurable": 5}}),
        ("/assistants", {"graph_id": "echo", "config": {"configurable": [1]}}),
        ("/store/namespaces", {"prefix": [""]}),
        ("/store/namespaces", {"suffix": ["a.b"]}),
        ("/store/namespaces", {"prefix": ["a\0"]}),
        ("/store/items/search", {"namespace_prefix": ["a.b"]}),
        ("/runs/crons", {**_CRON, "schedule": "0 0 30 2 *"}),
        ("/runs/crons", {**_CRON, "end_time": "0001-01-01T00:00:00+14:00"}),
    ],
)
def test_a_strange_body_is_refused(world: World, path: str, body: Any) -> None:
    refused = world.alice.post(path.format(**world.ids), json=body)

    assert refused.status_code == 422
    assert "failed" not in refused.json()["detail"]


@pytest.mark.parametrize("number", ["offset=" + "0" * 20 + "9" * 25, "limit=" + "9" * 9999])
def test_a_strange_number_is_refused(world: World, number: str) -> None:
    path = f"/threads/{world.ids['thread_id']}/runs?{number}"

    assert world.alice.get(path).status_code == 422


def test_a_part_of_what_has_no_parts_is_left_out(world: World) -> None:
    asked = {"select": ["status.id", "values", "values.messages"], "limit": 1000}

    assert all(each["status"] == {} for each in world.alice.post("/threads/search", json=asked).json())


def test_numbers_that_no_database_holds_are_looked_for_in_vain(world: World) -> None:
    wanted = {"n": 2**64 - 1, "in": {"a": [2**63, 1e300]}}

    assert world.alice.post("/threads/search", json={"metadata": wanted}).json() == []
    assert world.alice.get("/assistants/echo/graph?xray=²").status_code == 422


@pytest.mark.parametrize(
    "message",
    [
        {"content": "hello"},
        {"role": "moon", "content": "hello"},
        {"role": ["user"], "content": "hello"},
        {"role": "user", "content": 5},
        {"role": "user", "content": "hello", "name": 5},
        {"role": "tool", "content": "hello"},
        {"role": "assistant", "content": "", "tool_calls": [5]},
    ],
)
def test_what_is_no_message_is_refused_as_openai_does(world: World, message: Any) -> None:
    asked = {"model": "echo", "messages": [{"role": "user", "content": "hello"}, message]}

    refused = world.alice.post("/v1/chat/completions", json=asked)

    assert refused.status_code == 400
    assert refused.json()["error"]["message"].startswith("messages.1: this is not a message (")


def test_a_history_begins_where_nothing_is_said(world: World) -> None:
    thread = world.alice.post("/threads", json={}).json()["thread_id"]
    say = {"assistant_id": "echo", "input": {"messages": [{"role": "user", "content": "hello"}]}}
    world.alice.post(f"/threads/{thread}/runs/wait", json=say, timeout=60)

    assert len(world.alice.post(f"/threads/{thread}/history", json={"before": {}}).json()) == 3
