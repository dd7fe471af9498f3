"""What runs and idle workers ask of one PostgreSQL, and how many commits with notices it takes."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import psycopg

from benchmarks.server.programs import deepagents, worker
from deepagents_server.database import open_database
from deepagents_server.database.notices import Notices
from tests import postgres

_ASKED = {"messages": [{"role": "user", "content": "hello"}]}
_RUNS = 20
_SECONDS = 8.0
_LISTENERS = 60
_NOTICES = 2500
_PLAIN = "INSERT INTO written VALUES (1);"
_NOTIFYING = f"BEGIN; {_PLAIN} SELECT pg_notify('deepagents', 'events:1'); COMMIT;"
_COUNTED = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"


def scale(directory: Path) -> Iterator[str]:
    """Measure on a PostgreSQL of one's own, and yield what was found."""
    with postgres.server() as place:
        host = dict(part.split("=") for part in place.split())["host"]
        address = f"postgresql://postgres@/postgres?host={host}"
        yield from _count_transactions(directory, place, address)
        yield from _count_commits(place, address)


def _count_transactions(directory: Path, place: str, address: str) -> Iterator[str]:
    server = deepagents(directory / "server", "--runs", "0", "--database", address)
    runs = worker(directory / "worker", "--database", address)
    server.start()
    server.wait()
    runs.start()
    try:
        with httpx.Client(base_url=server.url, timeout=60) as client:

            def run(mode: str) -> None:
                thread = client.post("/threads", json={}).raise_for_status().json()["thread_id"]
                given = {
                    "assistant_id": "brief",
                    "input": _ASKED,
                    "stream_mode": ["messages-tuple", "updates"],
                }
                client.post(f"/threads/{thread}/runs/{mode}", json=given).raise_for_status().read()

            run("stream")
            time.sleep(5)
            count, seconds = _transactions(place, lambda: time.sleep(_SECONDS))
            idle = count / seconds
            yield f"an idle server and an idle worker: {idle:.1f} transactions a second"
            for mode in ("wait", "stream"):
                count, seconds = _transactions(place, lambda mode=mode: [run(mode) for _ in range(_RUNS)])
                yield f"{mode}: {(count - idle * seconds) / _RUNS:.0f} transactions a run, on both"
    finally:
        server.end()
        runs.end()


def _transactions(place: str, work: Callable[[], object]) -> tuple[float, float]:
    """Count the transactions while something works, and the seconds."""
    with psycopg.connect(place, autocommit=True) as opened:

        def count() -> tuple[int, float]:
            # What the last transactions did is counted within a second.
            time.sleep(1.5)
            row = opened.execute(_COUNTED).fetchone()
            assert row
            return row[0], time.monotonic()

        before, began = count()
        work()
        after, ended = count()
        return after - before, ended - began


def _count_commits(place: str, address: str) -> Iterator[str]:
    """Commit as fast as `pgbench` can: alone, with a notice in each commit, and beside what we send."""
    with psycopg.connect(place, autocommit=True) as opened:
        opened.execute("CREATE TABLE written (number INT)")
    yield f"nobody listens, {_commit(place, _PLAIN, time.sleep)}"
    with ExitStack() as stack:
        for _ in range(_LISTENERS):
            opened = stack.enter_context(psycopg.connect(place, autocommit=True))
            opened.execute("LISTEN deepagents")
        yield f"{_LISTENERS} listen, a notice in each commit, {_commit(place, _NOTIFYING, time.sleep)}"
        found = _commit(place, _PLAIN, lambda seconds: asyncio.run(_send(address, seconds)))
        yield f"{_LISTENERS} listen, {_NOTICES} notices a second gathered by a process, {found}"


def _commit(place: str, script: str, meanwhile: Callable[[float], object]) -> str:
    host = dict(part.split("=") for part in place.split())["host"]
    file = Path(host) / "script.sql"
    file.write_text(script)
    command = [
        "pgbench",
        "-n",
        "-h",
        host,
        "-U",
        "postgres",
        "-c",
        "8",
        "-T",
        str(int(_SECONDS)),
        "-f",
        str(file),
    ]
    running = subprocess.Popen([*command, "postgres"], stdout=subprocess.PIPE, text=True)
    meanwhile(_SECONDS)
    lines = running.communicate()[0].splitlines()
    return next(line for line in lines if line.startswith("tps"))


async def _send(address: str, seconds: float) -> None:
    """Send notices, evenly."""
    async with open_database(address) as database:
        notices, began, sent = Notices(database), time.monotonic(), 0
        async with notices.exchanging():
            while (passed := time.monotonic() - began) < seconds:
                while sent < passed * _NOTICES:
                    notices.send(("events", f"00000000-0000-4000-8000-{sent:012d}"))
                    sent += 1
                await asyncio.sleep(0.01)
