"""What Bob asks with the ids of Alice finds nothing, as unknown ids do, and Alice keeps all she has."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import httpx
import pytest
from websockets.sync.client import connect

from deepagents_server.api.app import PARTS
from tests.attacks.server.conftest import CANARY, World
from tests.server.serving import make_key
from tests.server.test_runs import say

pytestmark = pytest.mark.slow

Ids = dict[str, str]
Attack = Callable[[Ids], Any]

_RUN = {"assistant_id": "echo", "input": say("mine now")}
_NOTHING: list[Attack] = [lambda ids: None]
_RUNS: list[Attack] = [
    lambda ids: _RUN,
    lambda ids: {**_RUN, "if_not_exists": "create"},
    lambda ids: {**_RUN, "multitask_strategy": "rollback"},
]
_OF_OTHERS: list[Attack] = [
    lambda ids: {**_RUN, "assistant_id": ids["assistant_id"]},
    lambda ids: {
        **_RUN,
        "checkpoint": {"thread_id": ids["thread_id"], "checkpoint_id": ids["checkpoint_id"]},
    },
    lambda ids: {**_RUN, "config": {"configurable": {"thread_id": ids["thread_id"]}}},
]


def _mark(ids: Ids) -> Any:
    return {"metadata": {"mark": CANARY}}


def _cron(ids: Ids) -> Any:
    return {**_RUN, "schedule": "0 0 1 1 *"}


def _message(method: str, params: Any) -> Any:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


ATTACKS: dict[str, list[Attack]] = {
    "GET /": _NOTHING,
    "GET /ok": _NOTHING,
    "GET /ready": _NOTHING,
    "GET /info": _NOTHING,
    "GET /docs": _NOTHING,
    "GET /openapi.json": _NOTHING,
    "GET /metrics": _NOTHING,
    "POST /assistants": [
        lambda ids: {"graph_id": "echo", "assistant_id": ids["assistant_id"], "if_exists": "do_nothing"}
    ],
    "POST /assistants/search": [lambda ids: {}, lambda ids: {"name": CANARY}, _mark],
    "POST /assistants/count": [lambda ids: {"name": CANARY}],
    "GET /assistants/{assistant_id}": _NOTHING,
    "PATCH /assistants/{assistant_id}": [lambda ids: {"name": "mine now"}],
    "DELETE /assistants/{assistant_id}": _NOTHING,
    "POST /assistants/{assistant_id}/versions": [lambda ids: {}],
    "POST /assistants/{assistant_id}/latest": [lambda ids: {"version": 1}],
    "GET /assistants/{assistant_id}/schemas": _NOTHING,
    "GET /assistants/{assistant_id}/graph": _NOTHING,
    "GET /assistants/{assistant_id}/subgraphs": _NOTHING,
    "GET /assistants/{assistant_id}/subgraphs/{namespace}": _NOTHING,
    "POST /runs/crons": [lambda ids: {**_cron(ids), "assistant_id": ids["assistant_id"]}],
    "POST /threads/{thread_id}/runs/crons": [_cron],
    "POST /runs/crons/search": [lambda ids: {}, lambda ids: {"thread_id": ids["thread_id"]}, _mark],
    "POST /runs/crons/count": [lambda ids: {"thread_id": ids["thread_id"]}],
    "GET /runs/crons/{cron_id}": _NOTHING,
    "PATCH /runs/crons/{cron_id}": [lambda ids: {"enabled": False}],
    "DELETE /runs/crons/{cron_id}": _NOTHING,
    "POST /threads": [lambda ids: {"thread_id": ids["thread_id"], "if_exists": "do_nothing"}],
    "POST /threads/search": [
        lambda ids: {},
        lambda ids: {"ids": [ids["thread_id"]]},
        lambda ids: {"status": "idle", "values": {"steps": ["answered"]}},
        _mark,
    ],
    "POST /threads/prune": [
        lambda ids: {"thread_ids": [ids["thread_id"]], "strategy": "delete"},
        lambda ids: {"thread_ids": [ids["thread_id"]], "strategy": "keep_latest"},
    ],
    "POST /threads/count": [lambda ids: {"ids": [ids["thread_id"]]}],
    "GET /threads/{thread_id}": _NOTHING,
    "PATCH /threads/{thread_id}": [_mark],
    "DELETE /threads/{thread_id}": _NOTHING,
    "POST /threads/{thread_id}/copy": _NOTHING,
    "GET /threads/{thread_id}/state": _NOTHING,
    "POST /threads/{thread_id}/state": [lambda ids: {"values": say("mine now")}],
    "POST /threads/{thread_id}/state/checkpoint": [
        lambda ids: {"checkpoint": {"checkpoint_id": ids["checkpoint_id"]}}
    ],
    "GET /threads/{thread_id}/state/{checkpoint_id}": _NOTHING,
    "GET /threads/{thread_id}/history": _NOTHING,
    "POST /threads/{thread_id}/history": [
        lambda ids: {"checkpoint": {"thread_id": ids["thread_id"]}, "before": ids["checkpoint_id"]}
    ],
    "GET /threads/{thread_id}/files": _NOTHING,
    "POST /threads/{thread_id}/rewind": [lambda ids: {"checkpoint_id": ids["checkpoint_id"]}],
    "POST /threads/{thread_id}/runs": _RUNS,
    "GET /threads/{thread_id}/runs": _NOTHING,
    "POST /threads/{thread_id}/runs/stream": _RUNS,
    "POST /threads/{thread_id}/runs/wait": _RUNS,
    "GET /threads/{thread_id}/runs/{run_id}": _NOTHING,
    "DELETE /threads/{thread_id}/runs/{run_id}": _NOTHING,
    "GET /threads/{thread_id}/runs/{run_id}/join": _NOTHING,
    "GET /threads/{thread_id}/runs/{run_id}/stream": _NOTHING,
    "POST /threads/{thread_id}/runs/{run_id}/cancel": _NOTHING,
    "GET /threads/{thread_id}/stream": _NOTHING,
    "POST /threads/{thread_id}/stream/events": [lambda ids: {"channels": ["values"]}],
    "POST /threads/{thread_id}/commands": [
        lambda ids: {"id": 1, "method": "run.start", "params": _RUN},
        lambda ids: {"id": 1, "method": "agent.getTree"},
        lambda ids: {"id": 1, "method": "input.respond", "params": {"interrupt_id": "1", "response": 1}},
    ],
    "POST /runs": _OF_OTHERS,
    "POST /runs/stream": _OF_OTHERS,
    "POST /runs/wait": _OF_OTHERS,
    "POST /runs/batch": [lambda ids: [{**_RUN, "thread_id": ids["thread_id"]}]],
    "POST /runs/cancel": [
        lambda ids: {"status": "all"},
        lambda ids: {"thread_id": ids["thread_id"], "run_ids": [ids["run_id"]]},
    ],
    "POST /v1/chat/completions": [
        lambda ids: {"model": ids["assistant_id"], "messages": [{"role": "user", "content": "mine now"}]}
    ],
    "POST /mcp": [
        lambda ids: _message("tools/list", {}),
        lambda ids: _message("tools/call", {"name": ids["assistant_id"], "arguments": say("mine now")}),
    ],
    "GET /v1/models": _NOTHING,
    "GET /v1/models/{model}": _NOTHING,
    "PUT /store/items": [
        lambda ids: {"namespace": ["notes", "deep"], "key": "tide", "value": {"mark": "mine now"}}
    ],
    "GET /store/items": _NOTHING,
    "DELETE /store/items": [lambda ids: {"namespace": ["notes", "deep"], "key": "tide"}],
    "POST /store/items/search": [
        lambda ids: {},
        lambda ids: {"namespace_prefix": ["notes"]},
        lambda ids: {"namespace_prefix": ["*"]},
        lambda ids: {"namespace_prefix": ["%"]},
        lambda ids: {"filter": {"mark": CANARY}},
    ],
    "POST /store/namespaces": [
        lambda ids: {},
        lambda ids: {"prefix": ["*"]},
        lambda ids: {"suffix": ["deep"]},
        lambda ids: {"max_depth": 1},
    ],
}


ENDPOINTS_OF_PARTS = {
    part: [each.name for each in found if each.method != "WEBSOCKET"] for part, found in PARTS.items()
}
"""The endpoints of a part are attacked one after the other: to see then what Alice has takes longer."""
SOCKETS = {
    "/threads/{thread_id}/stream/events": [
        ("subscription.subscribe", {"channels": ["values"]}),
        ("agent.getTree", None),
        ("input.respond", {"interrupt_id": "1", "response": 1}),
        ("run.start", _RUN),
    ]
}


def test_every_endpoint_is_attacked() -> None:
    endpoints = [each for found in PARTS.values() for each in found]

    assert sorted(ATTACKS) == sorted(each.name for each in endpoints if each.method != "WEBSOCKET")
    assert sorted(SOCKETS) == sorted(each.path for each in endpoints if each.method == "WEBSOCKET")


@pytest.mark.parametrize("part", ENDPOINTS_OF_PARTS)
def test_what_belongs_to_others_is_as_if_it_were_not_there(each_world: World, part: str) -> None:
    world = each_world
    with world.attacked():
        for endpoint, attack in (
            (each, attack) for each in ENDPOINTS_OF_PARTS[part] for attack in ATTACKS[each]
        ):
            unknown = {name: str(uuid4()) for name in world.ids} | {"namespace": "inner", "model": "none"}
            shown = _ask(world, endpoint, attack, {**unknown, **world.ids})
            plain = _ask(world, endpoint, attack, unknown)

            assert CANARY not in shown[1].replace(json.dumps(attack(world.ids)), ""), endpoint
            assert are_alike(shown, plain), endpoint


@pytest.mark.parametrize("path", SOCKETS)
def test_a_connection_to_what_belongs_to_others_shows_and_changes_nothing(
    each_world: World, path: str
) -> None:
    world = each_world
    where = world.url.replace("http", "ws", 1) + path.format(**world.ids)
    key = {"x-api-key": world.bob.headers["x-api-key"]}

    with world.attacked(), connect(where, additional_headers=key) as socket:
        for number, (method, params) in enumerate(SOCKETS[path]):
            socket.send(json.dumps({"id": number, "method": method, "params": params}))
            refused = json.loads(socket.recv(60))
            assert (refused["type"], refused["id"]) == ("error", number)
            assert CANARY not in refused["message"]


def test_what_others_have_is_not_counted(world: World) -> None:
    newcomer = {"x-api-key": make_key(world.place, "newcomer")}
    counted = httpx.get(f"{world.url}/metrics", headers=newcomer).text

    assert "deepagents_room" in counted
    assert not [
        line for line in counted.splitlines() if line.startswith(("deepagents_runs", "deepagents_threads"))
    ]


def _ask(world: World, endpoint: str, attack: Attack, ids: Ids) -> tuple[int, str]:
    method, path = endpoint.split(" ")
    where = "?namespace=notes.deep&key=tide" if endpoint == "GET /store/items" else ""
    answered = world.bob.request(method, path.format(**ids) + where, json=attack(ids))
    return answered.status_code, answered.text


def are_alike(of_others: tuple[int, str], unknown: tuple[int, str]) -> bool:
    """Tell whether two answers say the same, as far as anybody may learn."""
    if unknown[0] == 200 and of_others[0] != 200:
        # He may make what has a new id; that one is taken is all that he learns.
        return of_others[0] in (404, 409)
    return (of_others[0], _blank(of_others[1])) == (unknown[0], _blank(unknown[1]))


def _blank(text: str) -> str:
    """Leave out what differs between two answers to the same question: ids, times and numbers."""
    return "".join("#" if each in "0123456789abcdef" else each for each in text)
