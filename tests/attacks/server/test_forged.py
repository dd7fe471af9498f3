"""What a client forges in paths, headers, cursors, texts and addresses leads nowhere."""

from __future__ import annotations

import hashlib
import json
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import compress, product
from typing import Any
from urllib.parse import unquote

import httpx
import pytest
from pydantic import BaseModel

from deepagents_cli.__main__ import main
from deepagents_server import api
from deepagents_server.api.app import PARTS
from deepagents_server.api.thread_streams import EventsBody
from tests.attacks.server.conftest import CANARY, World
from tests.attacks.server.test_tenants import ATTACKS, ENDPOINTS_OF_PARTS
from tests.server.serving import make_key

pytestmark = pytest.mark.slow

SQL = "x'; DROP TABLE runs; --\" OR 1=1 \\ %_"


@pytest.mark.parametrize(
    "path",
    [
        "/threads/../../etc/passwd",
        "/threads/%2e%2e/%2e%2e/etc/passwd",
        "/%2e%2e%2f%2e%2e%2fetc/passwd",
        "//etc/passwd",
        "/docs/..%2f..%2fetc%2fpasswd",
        "/ok/../threads",
        "/ok%2f..%2finfo",
        "//ok",
        "/threads/%00",
        "/threads/%ff%fe",
        "/threads/" + "a" * 10_000,
        "/v1/models/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    ],
)
def test_a_path_leads_to_no_file_and_past_no_key(world: World, path: str) -> None:
    """Sent as it stands: a client would tidy it up first."""
    for key in ("", f"x-api-key: {world.bob.headers['x-api-key']}\r\n"):
        where = httpx.URL(world.url)
        assert where.port
        with socket.create_connection((where.host, where.port), 60) as raw:
            raw.sendall(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n{key}connection: close\r\n\r\n".encode())
            answered = b"".join(iter(lambda: raw.recv(65536), b""))

        assert int(answered.split()[1]) in ((400, 404, 422) if key else (400, 401))
        assert b"root:" not in answered
        assert b"Traceback" not in answered


@pytest.mark.parametrize("last", ["-1", "0", "9" * 40, "1e3", "٣", "NaN", "1;DROP TABLE runs", "../1", ""])
def test_a_forged_cursor_shows_nothing_of_others_and_no_failure(world: World, last: str) -> None:
    header = {b"last-event-id": last.encode()}
    ids = world.ids
    paths = [
        f"/threads/{ids['thread_id']}/runs/{ids['run_id']}/stream",
        f"/threads/{ids['thread_id']}/stream",
    ]
    for path in paths:
        refused = world.bob.get(path, headers=header)
        assert refused.status_code == 404
        assert CANARY not in refused.text

    own = world.bob.post("/threads", json={}).json()["thread_id"]
    crossed = world.bob.get(f"/threads/{own}/runs/{ids['run_id']}/stream", headers=header)
    kept = world.alice.get(paths[0], headers=header)

    assert crossed.status_code == 404
    assert kept.status_code == 200
    assert "event: error" not in kept.text


@pytest.mark.parametrize("name", ["x-api-key", "x-strange", "last-event-id", "authorization"])
def test_a_header_brings_no_other_headers_into_an_answer(world: World, name: str) -> None:
    where = httpx.URL(world.url)
    assert where.port
    with socket.create_connection((where.host, where.port), 60) as raw:
        torn = "a\rset-cookie: b=c\0"
        raw.sendall(f"GET /info HTTP/1.1\r\nhost: localhost\r\n{name}: {torn}\r\n\r\n".encode())
        answered = b"".join(iter(lambda: raw.recv(65536), b""))

    assert answered.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 401 "))
    assert b"set-cookie" not in answered.lower()


def test_names_and_ids_bring_no_headers_into_an_answer(world: World) -> None:
    torn = "x%0d%0aset-cookie:%20a=b"
    for path in (f"/threads/{torn}", f"/assistants/{torn}", f"/v1/models/{torn}", "/threads/search"):
        answered = world.bob.request(
            "POST" if "search" in path else "GET", path, json={"sort_by": unquote(torn)}
        )
        assert "set-cookie" not in answered.headers
        assert answered.status_code in (404, 422)


ENDPOINTS = {
    each.body.__name__: each.name
    for part in reversed([*PARTS.values()])
    for each in reversed(part)
    if isinstance(each.body, type)
}
del ENDPOINTS[EventsBody.__name__]
"""Where the body of each model goes; the answer to one of them is a stream without an end."""
OF_PARTS = {
    part: names
    for part, endpoints in ENDPOINTS_OF_PARTS.items()
    if (names := [name for name, endpoint in ENDPOINTS.items() if endpoint in endpoints])
}
# Parts of other bodies, and commands within one.
_PARTS = {
    "CommandBody",
    "SendBody",
    "BatchRunBody",
    "Superstep",
    "TtlBody",
    "_StreamOptions",
    "_Start",
    "_Answer",
    "_Respond",
    "EventsBody",
}


def _models(above: type[BaseModel] = BaseModel) -> Iterator[type[BaseModel]]:
    for each in above.__subclasses__():
        # In which module pydantic puts `RootModel[...]` depends on its release.
        if each.__module__.startswith(api.__name__) and "[" not in each.__name__:
            yield each
        yield from _models(each)


MODELS = {each.__name__: each for each in _models()}


def test_the_body_of_every_endpoint_is_attacked() -> None:
    assert MODELS.keys() == ENDPOINTS.keys() | _PARTS


def _send(world: World, ids: dict[str, str], name: str, field: str, value: Any) -> httpx.Response:
    """Let Bob send a body in which all is his own, but for one field."""
    method, path = ENDPOINTS[name].split(" ")
    valid = ATTACKS[ENDPOINTS[name]][0]({**world.ids, **ids})
    of_bob = json.dumps(valid[0] if isinstance(valid, list) else valid or {}).replace(CANARY, "mine")
    one = {**json.loads(of_bob), field: value}
    return world.bob.request(method, path.format(**ids), json=[one] if isinstance(valid, list) else one)


@pytest.mark.parametrize("names", OF_PARTS.values(), ids=OF_PARTS)
def test_a_text_is_no_sql_in_any_field(world: World, on_postgresql: World, names: list[str]) -> None:
    with world.attacked(), on_postgresql.attacked():
        for name in names:
            tried = [*product(MODELS[name].model_fields, (SQL, [SQL], {SQL: SQL}, {"a": {SQL: [SQL]}}))]
            for each in (world, on_postgresql):
                ids = each.of_bob()
                answers = [_send(each, ids, name, *given) for given in tried]

                for given, answered in zip(tried, answers, strict=True):
                    assert answered.status_code < 500, (name, given, answered.text)
                    assert "sql" not in answered.text.replace(SQL, "").lower(), (name, given)
                # What is refused for its form gets to no database, of whatever kind.
                passed = [answered.status_code != 422 for answered in answers]
                tried = [*compress(tried, passed)]


@pytest.mark.parametrize("names", OF_PARTS.values(), ids=OF_PARTS)
def test_an_id_of_others_leads_nowhere_in_any_field(world: World, names: list[str]) -> None:
    """All of them in one list and one object, too: a key of this names one kind, which the others are not."""
    of_alice = [*world.ids.values()]
    values = [*of_alice, of_alice, world.ids]
    # Of several, one that is unknown keeps the others from being found.
    several = [[each] for each in of_alice]
    with world.attacked():
        for name in names:
            ids, fields = world.of_bob(), MODELS[name].model_fields
            lists = [field for field in fields if field.endswith("ids")]
            for given in (*product(fields, values), *product(lists, several)):
                answered = _send(world, ids, name, *given)

                assert CANARY not in answered.text, (name, given)
                assert answered.status_code < 500, (name, given, answered.text)


def test_a_body_without_an_end_is_cut_off(world: World) -> None:
    refused = world.bob.post("/threads", content=b'"' + b"x" * 33_000_000)

    assert refused.status_code == 413
    assert "32,000,000 bytes" in refused.json()["detail"]


def test_what_is_known_of_a_key_is_no_key(world: World) -> None:
    key = world.bob.headers["x-api-key"]
    digest = hashlib.sha256(key.encode()).hexdigest()
    for forged in (digest, key[:-1], f"{key}=", key.upper(), key.split("-")[1], "da-", f"{key},{key}"):
        assert httpx.get(f"{world.url}/info", headers={"x-api-key": forged}).status_code == 401


def test_a_key_that_was_in_use_ends_by_itself(world: World) -> None:
    key = make_key(world.place, "eve", "--days", "1")
    with httpx.Client(base_url=world.url, headers={"x-api-key": key}, timeout=60) as eve:
        assert eve.get("/info").status_code == 200
        with closing(sqlite3.connect(world.place / ".deepagents" / "server.db", timeout=60)) as database:
            ended = "UPDATE api_keys SET expires_at = created_at WHERE key_id = ?"
            database.execute(ended, (key.split("-")[1],))
            database.commit()

        end = time.monotonic() + 60
        while (refused := eve.get("/info")).status_code != 401:
            assert time.monotonic() < end

    assert "past its time" in refused.json()["detail"]


def test_a_key_that_was_in_use_is_worth_nothing_when_it_is_revoked(world: World) -> None:
    key = make_key(world.place, "eve")
    with httpx.Client(base_url=world.url, headers={"x-api-key": key}, timeout=60) as eve:
        assert eve.get("/info").status_code == 200
        database = str(world.place / ".deepagents" / "server.db")
        assert main(["keys", "revoke", key.split("-")[1], "--database", database]) == 0

        end = time.monotonic() + 60
        while eve.get("/info").status_code != 401:
            assert time.monotonic() < end
