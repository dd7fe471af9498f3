"""What runs and idle workers ask of one PostgreSQL, and how many commits with notices it takes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import psycopg
import sqlalchemy as sa

from benchmarks.contenders import ROOT, child_environment
from benchmarks.server.programs import deepagents, worker
from deepagents_server.database import open_database
from deepagents_server.database.notices import Notices
from tests import postgres

_ASKED = {"messages": [{"role": "user", "content": "hello"}]}
_RUNS = 20
_SECONDS = 10.0
_LISTENERS = 60
_WRITERS, _TASKS = 2, 6
_COUNTED = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"


def scale(directory: Path) -> Iterator[str]:
    """Measure on a PostgreSQL of one's own, and yield what was found."""
    with postgres.server() as place:
        host = dict(part.split("=") for part in place.split())["host"]
        address = f"postgresql://postgres@/postgres?host={host}"
        yield from _count_transactions(directory, place, address)
        yield _write(place, address, listeners=0)
        yield _write(place, address, listeners=_LISTENERS)


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


def _write(place: str, address: str, listeners: int) -> str:
    """Let processes commit, each time with a notice, while others listen."""
    with ExitStack() as stack:
        for _ in range(listeners):
            opened = stack.enter_context(psycopg.connect(place, autocommit=True))
            opened.execute("LISTEN deepagents")
        command = [sys.executable, "-m", "benchmarks.server.scale", address]
        environment = {**child_environment(), "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
        began = [
            subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
            for _ in range(_WRITERS)
        ]
        done = sum(float(each.communicate()[0]) for each in began)
    return f"{_WRITERS} processes, {listeners} that listen: {done:.0f} commits with a notice a second"


async def _commit(address: str) -> float:
    """Commit again and again, a notice with each commit; return how often in a second."""
    async with open_database(address) as database:
        notices, done, end = Notices(database), 0, time.monotonic() + _SECONDS

        async def work(task: int) -> None:
            nonlocal done
            text = sa.text("INSERT INTO written VALUES (:task)").bindparams(task=task)
            while time.monotonic() < end:
                async with notices.write(database) as (connection, said):
                    await connection.execute(text)
                    said.append(("events", f"00000000-0000-4000-8000-{done:012d}"))
                done += 1

        await database.execute(sa.text("CREATE TABLE IF NOT EXISTS written (task INT)"))
        async with notices.exchanging():
            await asyncio.gather(*(work(each) for each in range(_TASKS)))
    return done / _SECONDS


if __name__ == "__main__":
    print(asyncio.run(_commit(sys.argv[1])))
