"""The database is away, or its disk full: the server says so, in few words, and goes on when it is back."""

from __future__ import annotations

import resource
import sys
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import LiteralString

import httpx
import psycopg
import pytest

from tests import postgres as postgres_server
from tests.server.serving import Process
from tests.server.test_runs import last, say

pytestmark = pytest.mark.slow


def wait_for(client: httpx.Client, status: int) -> None:
    """Ask whether the server is ready until it answers so; an answer is good for a second."""
    while (answered := client.get("/ready")).status_code != status:
        time.sleep(0.05)
    assert answered.json() == {"ok": status == 200}
    assert client.get("/ok?check_db=1").status_code == status


def test_while_the_database_is_away_requests_say_when_to_come_back(tmp_path: Path) -> None:
    if missing := postgres_server.missing():
        pytest.skip(f"PostgreSQL is not installed: {', '.join(missing)} not on the search path")
    stack = ExitStack()
    with postgres_server.server() as connection:
        host = connection.split()[0].removeprefix("host=")
        process = Process(tmp_path, "--database", f"postgresql://postgres@/postgres?host={host}")
        process.log = tmp_path / "log"
        stack.callback(process.close)
        client = stack.enter_context(httpx.Client(base_url=process.start(), timeout=60))
        thread = client.post("/threads", json={}).json()["thread_id"]
        assert client.get("/ready").status_code == 200
    with stack:
        for _ in range(30):
            for path, body in (
                ("search", {}),
                (f"{thread}/runs", {"assistant_id": "echo", "input": say("hi")}),
            ):
                refused = client.post(f"/threads/{path}", json=body)
                assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
        assert client.get("/ok").status_code == 200
        wait_for(client, 503)
    log = (tmp_path / "log").read_text()
    assert "Traceback" not in log
    assert log.count("/threads/search failed, since the database cannot be used: ") == 1


def test_while_the_database_can_only_be_read_writes_wait(tmp_path: Path, postgres: str) -> None:
    """As after a failover, until the standby is promoted: a run at work then goes on."""
    host = postgres.split()[0].removeprefix("host=")
    process = Process(tmp_path, "--database", f"postgresql://postgres@/postgres?host={host}")
    process.log = tmp_path / "log"
    with (
        closing(process),
        psycopg.connect(postgres, autocommit=True) as operator,
        httpx.Client(base_url=process.start(), timeout=60) as client,
    ):
        wait_for(client, 200)
        thread = client.post("/threads", json={}).json()["thread_id"]
        run = {"assistant_id": "echo", "input": say("wait for me")}
        path = f"/threads/{thread}/runs/{client.post(f'/threads/{thread}/runs', json=run).json()['run_id']}"
        while client.get(path).json()["status"] != "running":
            time.sleep(0.05)
        set_read_only(operator, "on")
        try:
            wait_for(client, 503)
            for asked in ("/threads", f"/threads/{thread}/runs"):
                refused = client.post(asked, json=run)
                assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
            assert client.post("/threads/search", json={"ids": [thread]}).json()[0]["thread_id"] == thread
            assert client.get("/ok").status_code == 200
        finally:
            set_read_only(operator, "off")
        wait_for(client, 200)
        opened = client.post("/runs/wait", json={"assistant_id": "gate", "input": say("for me")})
        assert opened.status_code == 200
        assert last(client.get(f"{path}/join").json()) == "Echo: wait for me"
    assert "Traceback" not in (tmp_path / "log").read_text()


def set_read_only(operator: psycopg.Connection, value: LiteralString) -> None:
    operator.execute(f"ALTER SYSTEM SET default_transaction_read_only = {value}")
    operator.execute("SELECT pg_reload_conf()")


@pytest.mark.skipif(sys.platform != "linux", reason="the bound of another process's files is set by Linux")
def test_with_a_full_disk_a_server_lives_and_is_not_ready(tmp_path: Path) -> None:
    process = Process(tmp_path)
    process.log = tmp_path / "log"
    with closing(process), httpx.Client(base_url=process.start(), timeout=60) as client:
        wait_for(client, 200)
        before = resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        assert client.post("/threads", json={}).status_code == 503
        assert client.get("/ok").status_code == 200
        wait_for(client, 503)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, before)
        wait_for(client, 200)
        assert client.post("/threads", json={}).status_code == 200
    assert "Traceback" not in (tmp_path / "log").read_text()


def test_without_its_file_a_server_is_not_ready_and_makes_no_other(tmp_path: Path) -> None:
    process = Process(tmp_path)
    with closing(process), httpx.Client(base_url=process.start(), timeout=60) as client:
        wait_for(client, 200)
        file, elsewhere = tmp_path / ".deepagents" / "server.db", tmp_path / "moved.db"
        file.rename(elsewhere)
        wait_for(client, 503)
        assert not file.exists()
        elsewhere.rename(file)
        wait_for(client, 200)
