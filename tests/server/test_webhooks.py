from __future__ import annotations

import asyncio
import json
import queue
import sqlite3
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from signal import SIGKILL
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from langgraph_sdk import get_sync_client

from deepagents_server.api.app import PARTS
from deepagents_server.database import open_database
from deepagents_server.database.tables import webhooks
from deepagents_server.deliveries import Deliveries
from deepagents_server.errors import ApiError, ServeError
from deepagents_server.serialize import now, seconds_between
from deepagents_server.webhooks import Webhooks
from tests.server.serving import Process
from tests.server.test_runs import last, say


@dataclass
class Inbox:
    """A server that is told of runs."""

    url: str = ""
    bodies: queue.Queue[Any] = field(default_factory=queue.Queue[Any])


@contextmanager
def hearing() -> Generator[tuple[Inbox, HTTPServer]]:
    """Take a port, and refuse connections until the server is activated."""
    inbox = Inbox()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            inbox.bodies.put((self.headers["host"], json.loads(body)))
            self.send_response(307)
            self.send_header("location", f"{inbox.url}/elsewhere")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler, bind_and_activate=False) as server:
        server.server_bind()
        inbox.url = f"http://localhost:{server.server_address[1]}"
        yield inbox, server


@contextmanager
def answering(server: HTTPServer) -> Generator[None]:
    """Let connections in."""
    server.server_activate()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    with hearing() as (inbox, server), answering(server):
        yield inbox


@pytest.mark.slow
def test_a_webhook_hears_of_a_run_though_its_server_was_down_and_ours_killed(tmp_path: Path) -> None:
    local = {"webhooks": {"url": {"disable_loopback": False}}}
    process = Process(tmp_path, config=local)
    with hearing() as (inbox, server):
        with get_sync_client(url=process.start(), api_key=None) as client:
            thread = client.threads.create()["thread_id"]
            client.runs.wait(thread, "echo", input=say("hello"), webhook=f"{inbox.url}/done")
            run = client.runs.list(thread)[0]
        process.end(SIGKILL)
        with answering(server):
            process.start()
            _, body = inbox.bodies.get(timeout=60)
            with closing(sqlite3.connect(tmp_path / ".deepagents" / "server.db")) as database:
                while database.execute("SELECT 1 FROM webhooks").fetchall():
                    time.sleep(0.05)
        process.close()
    assert (body["run_id"], body["status"]) == (run["run_id"], "success")
    assert last(body["values"]) == "Echo: hello"


async def test_the_end_of_a_run_is_posted_once_and_redirects_lead_nowhere(inbox: Inbox) -> None:
    webhooks = Webhooks.of({"url": {"disable_loopback": False}, "headers": {"x-from": "us"}})

    assert await webhooks.post(f"{inbox.url}/done", b'{"run_id": "1"}')

    host, body = inbox.bodies.get(timeout=10)
    assert (host, body) == (inbox.url.removeprefix("http://"), {"run_id": "1"})
    assert inbox.bodies.empty()


def test_headers_take_the_variables_that_may_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LG_WEBHOOK_KEY", "k1")
    monkeypatch.setenv("HOOK_NAME", "us")
    monkeypatch.setenv("SECRET", "s")

    made = Webhooks.of(
        {"headers": {"authorization": "Bearer ${{ env.LG_WEBHOOK_KEY }}, ${{env.LG_WEBHOOK_KEY}}"}}
    )
    named = Webhooks.of({"env_prefix": "HOOK_", "headers": {"x-from": "${{ env.HOOK_NAME }}"}})

    assert made.headers == {"authorization": "Bearer k1, k1"}
    assert named.headers == {"x-from": "us"}
    for other in ("SECRET", "HOOK_NAME"):
        with pytest.raises(ServeError, match=f"'{other}'.*LG_WEBHOOK_"):
            Webhooks.of({"headers": {"x-from": f"${{{{ env.{other} }}}}"}})
    with pytest.raises(ServeError, match="'LG_WEBHOOK_GONE' is not set"):
        Webhooks.of({"headers": {"x-from": "${{ env.LG_WEBHOOK_GONE }}"}})


async def test_what_a_name_leads_to_is_asked_once_and_all_of_it_is_checked(inbox: Inbox) -> None:
    """Nobody else knows this name: what arrives was sent to the address that was checked."""
    port = httpx.URL(inbox.url).port
    answers = [["127.0.0.1"], ["127.0.0.1", "10.0.0.1"], ["::ffff:10.0.0.1"], ["fe80::1%1"]]

    async def resolve(host: str, port: int) -> list[str]:
        assert host == "hooks.example"
        return answers.pop(0)

    webhooks = replace(Webhooks.of({"url": {"disable_loopback": False}}), resolve=resolve)
    assert await webhooks.post(f"http://hooks.example:{port}/x", b"1")
    assert inbox.bodies.get(timeout=10) == (f"hooks.example:{port}", 1)
    for _ in range(3):
        with pytest.raises(ApiError, match="network"):
            await webhooks.post(f"http://hooks.example:{port}/x", b"2")
    assert answers == []
    assert inbox.bodies.empty()


@pytest.mark.parametrize("name", ["localhost.", "127.0.0.1.", "LocalHost", "0177.1", "[::1%25lo]"])
async def test_other_spellings_of_this_machine_are_not_called(inbox: Inbox, name: str) -> None:
    with pytest.raises(ApiError, match="webhook"):
        await Webhooks.of({}).post(f"http://{name}:{httpx.URL(inbox.url).port}/x", b"1")
    assert inbox.bodies.empty()


@pytest.mark.parametrize(
    "address",
    [
        "http://localhost/x",
        "http://127.0.0.1/x",
        "http://127.1/x",
        "http://2130706433/x",
        "http://0x7f000001/x",
        "http://[::1]/x",
        "http://[::ffff:127.0.0.1]/x",
        "http://[64:ff9b::7f00:1]/x",
        "http://[64:ff9b:1::7f00:1]/x",
        "http://[2002:7f00:1::]/x",
        "http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/x",
        "http://[::127.0.0.1]/x",
        "http://[::ffff:0:127.0.0.1]/x",
        "http://[fec0::2]/x",
        "http://[fe80::1]/x",
        "http://[ff02::1]/x",
        "http://[::]/x",
        "http://[fd00::1]/x",
        "http://10.0.0.1/x",
        "http://192.168.1.1/x",
        "http://169.254.169.254/latest/meta-data",
        "http://100.64.0.1/x",
        "http://192.0.0.192/opc/v1/instance",
        "http://168.63.129.16/machine",
        "http://127。0。0。1/x",
        "http://①②⑦.0.0.1/x",
        "http://0.0.0.0/x",
        "http://224.0.0.1/x",
        "http://user:secret@example.org/x",
        "file:///etc/passwd",
        "/threads",
        "http://",
        "http://xn--a.example/x",
        "http://a..example/x",
        f"http://{'a' * 64}.example/x",
        "http://example.org:65536/x",
        "http://example.org/" + "x" * 3000,
    ],
)
def test_what_leads_into_ones_own_network_is_refused(address: str) -> None:
    with pytest.raises(ApiError, match="webhook"):
        Webhooks.of({}).check(address)


def test_a_configuration_names_hosts_and_ports() -> None:
    chosen = {"allowed_domains": ["10.0.0.1", "*.example.org"], "allowed_ports": [443], "require_https": True}
    webhooks = Webhooks.of({"url": chosen})

    assert webhooks.check("https://hooks.example.org/x")
    assert webhooks.check("https://10.0.0.1/x")
    for other in ("http://hooks.example.org/x", "https://example.com/x", "https://a.example.org:8443/x"):
        with pytest.raises(ApiError, match="webhook"):
            webhooks.check(other)


NAMING = [
    each.name
    for found in PARTS.values()
    for each in found
    if isinstance(each.body, type) and "webhook" in each.body.model_json_schema().get("properties", ())
]


@pytest.mark.parametrize("endpoint", [*NAMING, "POST /runs/batch"])
def test_such_a_webhook_is_refused_wherever_one_is_named(url: str, endpoint: str) -> None:
    method, path = endpoint.split(" ")
    body: dict[str, Any] = {"assistant_id": "echo", "schedule": "0 0 1 1 *", "input": say("hello")}
    with httpx.Client(base_url=url, timeout=60) as client:
        thread = client.post("/threads", json={}).json()["thread_id"]
        cron = client.post("/runs/crons", json=body).json()["cron_id"]
        named = {**body, "webhook": "http://127.0.0.1:1/x"}

        refused = client.request(
            method,
            path.format(thread_id=thread, cron_id=cron),
            json=[named] if path == "/runs/batch" else named,
        )

        assert refused.status_code == 422
        assert refused.json()["detail"].startswith("webhook: ")
        assert client.get(f"/threads/{thread}/runs").json() == []
        assert "webhook" not in client.get(f"/runs/crons/{cron}").json()["payload"]
        client.delete(f"/runs/crons/{cron}")


async def test_tries_that_fail_are_counted_and_lost_ones_are_not(tmp_path: Path) -> None:
    """A few processes were killed while they sent; a webhook that always kills its process is given up."""
    names: list[str] = []

    async def resolve(host: str, port: int) -> list[str]:
        names.append(host)
        raise OSError("no such name")

    begun = {"killed": (6, 0), "failed": (4, 4), "kills": (20, 0), "paused": (1, 1)}
    async with open_database(f"sqlite:///{tmp_path / 'server.db'}") as database:
        for name, (attempt, failed) in begun.items():
            row = {"run_id": name, "address": f"http://{name}.example", "body": "1"}
            tried = {"attempt": attempt, "failed": failed, "due_at": now(60 if name == "paused" else 10)}
            await database.execute(webhooks.insert().values({**row, **tried}))

        async with Deliveries(database, replace(Webhooks.of({}), resolve=resolve)).running():
            while len(left := await database.rows(sa.select(webhooks))) > 2 or not left[0]["failed"]:
                await asyncio.sleep(0.01)

    assert sorted(names) == ["failed.example", "killed.example"]
    assert {row["run_id"]: (row["attempt"], row["failed"]) for row in left} == {
        "killed": (7, 1),
        "paused": (1, 1),
    }
    assert 0 < seconds_between(now(), left[0]["due_at"]) <= 2
