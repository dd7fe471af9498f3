"""One caller asks for much, and the others are answered as if nobody did."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from deepagents_server.config import Ages
from deepagents_server.database.removal import open_remover
from tests.server.serving import Process, make_key
from tests.server.test_runs import say

pytestmark = pytest.mark.slow

MEGABYTE = 1_000_000
LONG_HISTORY = """
CREATE VIEW number AS WITH RECURSIVE counted(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM counted
WHERE n < 30000) SELECT n FROM counted;
INSERT INTO checkpoints SELECT thread_id, checkpoint_ns, '0' || n, NULL, type, checkpoint, metadata
FROM (SELECT n FROM number LIMIT 200), (SELECT * FROM checkpoints LIMIT 1);
CREATE TRIGGER long AFTER INSERT ON checkpoints BEGIN SELECT count(*) FROM number; END;
"""
"""Each copied state takes ten milliseconds or more."""


def keep_threads(file: Path, owner: str, number: int, metadata: Any = None, values: Any = None) -> None:
    """Write threads into a database, for to make large ones by runs takes long."""
    moment = "2026-01-01T00:00:00.000000+00:00"
    row = (owner, json.dumps(metadata or {}), json.dumps(values), moment, moment, moment)
    with closing(sqlite3.connect(file, timeout=60)) as opened, opened:
        opened.executemany(
            'INSERT INTO threads (thread_id, owner, metadata, "values", created_at, updated_at, '
            "state_updated_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
            [(str(uuid4()), *row) for _ in range(number)],
        )


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Process]:
    process = Process(tmp_path)
    yield process
    process.close()


@pytest.fixture
def keys(tmp_path: Path) -> dict[str, str]:
    (tmp_path / ".deepagents").mkdir()
    return {owner: make_key(tmp_path, owner) for owner in ("loud", "quiet")}


def memory(process: Process, kind: str) -> int:
    """Return the bytes that a process has (VmRSS), or has had at most (VmHWM)."""
    (line,) = (
        line for line in Path(f"/proc/{process.pid}/status").read_text().splitlines() if line.startswith(kind)
    )
    return int(line.split()[1]) * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="/proc says how much memory a process has had")
async def test_searches_take_little_memory_however_much_they_find(server: Process, tmp_path: Path) -> None:
    url = server.start()
    message = {"type": "human", "content": "x" * 1000}
    large = {"messages": [message for _ in range(MEGABYTE // 1040)]}
    keep_threads(tmp_path / ".deepagents" / "server.db", "", 30, values=large)

    async def search(client: httpx.AsyncClient, **asked: Any) -> int:
        return len((await client.post("/threads/search", json={"limit": 1000, **asked})).json())

    async with httpx.AsyncClient(base_url=url, timeout=300) as client:
        assert await search(client, select=["thread_id"]) == 30
        before = memory(server, "VmRSS")
        for number in range(30):
            item = {"namespace": ["large"], "key": str(number), "value": large}
            assert (await client.put("/store/items", json=item)).status_code == 204
        selects = (None, None, ["values"], ["values.messages"])
        assert {*await asyncio.gather(*(search(client, select=each) for each in selects))} == {30}
        found = [client.post("/store/items/search", json={"limit": 1000}) for _ in range(4)]
        assert {len(each.json()["items"]) for each in await asyncio.gather(*found)} == {30}

    assert memory(server, "VmHWM") - before < 100 * MEGABYTE
    assert server.end(signal.SIGTERM) == 0


async def test_searches_of_others_come_before_further_ones_of_one(
    keys: dict[str, str], server: Process, tmp_path: Path
) -> None:
    url = server.start()
    large = {f"key {number}": "x" * 20 for number in range(90)}
    for owner in keys:
        keep_threads(tmp_path / ".deepagents" / "server.db", owner, 500, {**large, "owner": owner})

    async def search(owner: str, client: httpx.AsyncClient) -> int:
        asked = {"metadata": {**large, "owner": owner}, "limit": 1}
        found = await client.post("/threads/search", json=asked, headers={"x-api-key": keys[owner]})
        return int(found.headers["x-pagination-total"])

    async with httpx.AsyncClient(base_url=url, timeout=300) as client:
        loud = [asyncio.create_task(search("loud", client)) for _ in range(16)]
        assert (await client.get("/ok")).json() == (await client.get("/ready")).json() == {"ok": True}
        assert await search("quiet", client) == 500
        assert sum(task.done() for task in loud) < 8
        assert {*await asyncio.gather(*loud)} == {500}


async def test_a_large_copy_lets_others_go_on_and_is_there_when_it_is_whole(
    server: Process, tmp_path: Path
) -> None:
    """Also where the server is killed in the middle; the trigger makes it long."""
    file = tmp_path / ".deepagents" / "server.db"
    async with httpx.AsyncClient(base_url=server.start(), timeout=300) as client:
        thread = (await client.post("/threads", json={})).json()["thread_id"]
        asked = {"assistant_id": "echo", "input": say("hello")}
        values = (await client.post(f"/threads/{thread}/runs/wait", json=asked)).json()
        with closing(sqlite3.connect(file, timeout=60, isolation_level=None)) as opened:
            opened.executescript(LONG_HISTORY)
            copying = asyncio.create_task(client.post(f"/threads/{thread}/copy"))
            begun = "SELECT 1 FROM checkpoints WHERE thread_id <> ?"
            while not opened.execute(begun, [thread]).fetchall():
                await asyncio.sleep(0.01)
            opened.execute("BEGIN IMMEDIATE")

            assert (await client.get("/ok")).json() == {"ok": True}
            found = (await client.post("/threads/search", json={})).json()
            assert [each["thread_id"] for each in found] == [thread]
            assert not copying.done()
            server.end(signal.SIGKILL)
            opened.execute("DROP TRIGGER long")
            opened.execute("COMMIT")
            await asyncio.gather(copying, return_exceptions=True)

    async with httpx.AsyncClient(base_url=server.start(), timeout=300) as client:
        copied = (await client.post(f"/threads/{thread}/copy")).json()
        found = (await client.post("/threads/search", json={})).json()
        assert {each["thread_id"] for each in found} == {thread, copied["thread_id"]}
        assert (await client.get(f"/threads/{copied['thread_id']}/state")).json()["values"] == values
        with open_remover(f"sqlite:///{file}") as remover:
            remover.sweep(Ages(traces=-1))
    with closing(sqlite3.connect(file)) as opened:
        for table in ("checkpoints", "writes"):
            query = f"SELECT count(*) FROM {table} GROUP BY thread_id"
            (first, second) = opened.execute(query).fetchall()
            assert first == second
    assert server.end(signal.SIGTERM) == 0
