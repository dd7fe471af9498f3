"""A server with keys, and two owners on it: Alice has something of everything, and Bob attacks."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from tests.server.serving import Process, make_key
from tests.server.test_runs import say

CANARY = "canary-of-alice"


@dataclass
class World:
    """What Alice has, and a client for each of the two."""

    url: str
    place: Path
    alice: httpx.Client
    bob: httpx.Client
    ids: dict[str, str] = field(default_factory=dict[str, str])
    _seen: list[Any] | None = None
    """What Alice saw at the end of the last attack, if she asked for nothing since."""

    def __post_init__(self) -> None:
        self.alice.event_hooks = {"request": [lambda _: self._forget()]}

    def _forget(self) -> None:
        self._seen = None

    def make(self, path: str, body: Any) -> Any:
        """Let Alice make something."""
        made = self.alice.post(path, json=body)
        assert made.status_code == 200, made.text
        return made.json()

    def fill(self) -> None:
        """Give Alice something of everything."""
        marked = {"metadata": {"mark": CANARY}}
        thread = self.make("/threads", marked)["thread_id"]
        asked = {"assistant_id": "echo", "input": say(CANARY), "stream_resumable": True}
        self.make(f"/threads/{thread}/runs/wait", asked)
        assistant = {"graph_id": "echo", "name": CANARY, **marked}
        self.ids = {
            "thread_id": thread,
            "run_id": self.alice.get(f"/threads/{thread}/runs").json()[0]["run_id"],
            "checkpoint_id": self.alice.get(f"/threads/{thread}/state").json()["checkpoint_id"],
            "assistant_id": self.make("/assistants", assistant)["assistant_id"],
        }
        cron = {"assistant_id": "echo", "schedule": "0 0 1 1 *", "input": say(CANARY), **marked}
        self.ids["cron_id"] = self.make(f"/threads/{thread}/runs/crons", cron)["cron_id"]
        item = {"namespace": ["notes", "deep"], "key": "tide", "value": {"mark": CANARY}}
        assert self.alice.put("/store/items", json=item).status_code == 204

    def of_bob(self) -> dict[str, str]:
        """Let Bob have something of everything too, so that he gets as far as the database."""
        thread = self.bob.post("/threads", json={}).json()["thread_id"]
        self.bob.post(f"/threads/{thread}/runs/wait", json={"assistant_id": "echo", "input": say("hello")})
        schedule = {"assistant_id": "echo", "schedule": "0 0 1 1 *"}
        return {
            "thread_id": thread,
            "run_id": self.bob.get(f"/threads/{thread}/runs").json()[0]["run_id"],
            "checkpoint_id": self.bob.get(f"/threads/{thread}/state").json()["checkpoint_id"],
            "assistant_id": self.bob.post("/assistants", json={"graph_id": "echo"}).json()["assistant_id"],
            "cron_id": self.bob.post(f"/threads/{thread}/runs/crons", json=schedule).json()["cron_id"],
            "namespace": "inner",
            "model": "echo",
        }

    @contextmanager
    def attacked(self) -> Generator[None]:
        """Let Bob attack in this block, after which Alice has what she had."""
        before = self._seen or self._all_of_alice()
        # An attack that fails for another reason may have changed it, and the next is not to blame.
        self._forget()
        yield
        after = self._all_of_alice()
        assert after == before
        self._seen = after

    def _all_of_alice(self) -> list[Any]:
        thread, assistant = (self.ids[name] for name in ("thread_id", "assistant_id"))
        read = [
            f"/threads/{thread}",
            f"/threads/{thread}/runs",
            f"/threads/{thread}/history",
            f"/assistants/{assistant}",
            f"/runs/crons/{self.ids['cron_id']}",
            "/store/items?namespace=notes.deep&key=tide",
        ]
        search = ["/threads/search", "/assistants/search", "/runs/crons/search", "/store/items/search"]
        answers = [self.alice.get(path) for path in read]
        answers += [self.alice.post(path, json={}) for path in search]
        return [answered.raise_for_status().json() for answered in answers]


@contextmanager
def inhabited(place: Path, *options: str) -> Generator[World]:
    """Serve the two, with what Alice has."""
    keys = [{"x-api-key": make_key(place, owner, *options)} for owner in ("alice", "bob")]
    process = Process(place, *options)
    url = process.start()
    clients = [httpx.Client(base_url=url, headers=key, timeout=60) for key in keys]
    world = World(url, place, clients[0], clients[1])
    try:
        world.fill()
        yield world
    finally:
        for client in clients:
            client.close()
        process.close()


# Not longer than for the attacks: what serves looks for work all the time.
@pytest.fixture(scope="package")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with inhabited(tmp_path_factory.mktemp("attacked")) as world:
        yield world


@pytest.fixture(scope="package")
def on_postgresql(tmp_path_factory: pytest.TempPathFactory, postgres: str) -> Iterator[World]:
    host = dict(part.split("=") for part in postgres.split())["host"]
    name = "attacked"
    with psycopg.connect(postgres, autocommit=True) as opened:
        opened.execute(f"CREATE DATABASE {name}")
    database = f"postgresql://postgres@/{name}?host={host}"
    with inhabited(tmp_path_factory.mktemp("attacked"), "--database", database) as world:
        yield world


@pytest.fixture(params=["world", "on_postgresql"])
def each_world(request: pytest.FixtureRequest) -> World:
    """The same world, on either database."""
    return request.getfixturevalue(request.param)
