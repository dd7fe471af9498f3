"""Kill what runs agents, again and again, and count what became of the runs and of those who read them."""

from __future__ import annotations

import asyncio
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import orjson

from benchmarks.server.programs import Program, Server, Start, deepagents, worker
from tests import postgres

_OVER = ("success", "error", "interrupted", "timeout")
_ASLEEP = 8.0
"""Seconds for which a worker is stopped: longer than others wait for it."""


@dataclass(frozen=True)
class Size:
    """How much of it."""

    runs: int = 100
    stones: int = 8
    seconds: float = 0.5
    """Each run calls a tool so many times, and each call takes so long."""
    workers: int = 3
    pause: float = 5.0
    """Seconds between two blows."""
    sleeps: int = 1
    database_restarts: int = 2
    server_restarts: int = 1
    kills: int = 1000
    """At most; they end with the runs."""


@dataclass
class Found:
    """What was counted."""

    statuses: Counter[str] = field(default_factory=Counter[str])
    errors: Counter[str] = field(default_factory=Counter[str])
    blows: Counter[str] = field(default_factory=Counter[str])
    lifted: int = 0
    lifted_again: int = 0
    results_missing: int = 0
    results_twice: int = 0
    events: int = 0
    events_lost: int = 0
    events_out_of_order: int = 0
    reconnections: int = 0
    attempts: int = 0
    seconds: float = 0

    def lines(self, size: Size) -> list[str]:
        """Say it."""
        blows = ", ".join(f"{number} x {what}" for what, number in self.blows.items())
        ended = ", ".join(f"{number} {status}" for status, number in self.statuses.items())
        return [
            f"{size.runs} runs of {size.stones} tool calls, {self.seconds:.0f} s; {blows}",
            f"ended: {ended}; begun {self.attempts} times",
            *(f"{number} x {error}" for error, number in self.errors.items()),
            f"tool calls begun: {self.lifted}, of which again after a loss: {self.lifted_again}",
            f"results in histories: {self.results_missing} missing, {self.results_twice} twice",
            f"events read: {self.events}, with {self.reconnections} reconnections; "
            f"results that no event told: {self.events_lost}; out of order: {self.events_out_of_order}",
        ]

    def is_right(self, size: Size) -> bool:
        """Tell whether nothing was lost and nothing came twice."""
        faults = (self.results_missing, self.results_twice, self.events_lost, self.events_out_of_order)
        return self.statuses == {"success": size.runs} and not any(faults)


@dataclass
class _Run:
    """A run, and what its reader has seen."""

    thread: str
    run: str
    numbers: list[int] = field(default_factory=list[int])
    told: set[str] = field(default_factory=set[str])
    attempts: int = 0
    reconnections: int = -1


@dataclass
class Scene:
    """The programs of a drill."""

    server: Server
    workers: Sequence[Program]
    lifted: Path
    cluster: Path | None = None


@contextmanager
def on_sqlite(directory: Path, size: Size) -> Generator[Scene]:
    """Run one process on a file."""
    lifted = directory / "lifted"
    options = ("--database", str(directory / "server.db"), "--runs", str(size.runs))
    server = deepagents(directory, *options, LIFTED=str(lifted))
    with _started(Scene(server, [], lifted)) as scene:
        yield scene


@contextmanager
def on_postgres(directory: Path, size: Size, start: Start = subprocess.Popen) -> Generator[Scene]:
    """Run a server that only answers, and workers, on a PostgreSQL of their own."""
    lifted = directory / "lifted"
    with postgres.server() as place:
        cluster = Path(dict(part.split("=") for part in place.split())["host"])
        database = ("--database", f"postgresql://postgres@/postgres?host={cluster}")
        server = deepagents(directory, *database, "--runs", "0", start=start, LIFTED=str(lifted))
        room = str(max(1, size.runs // size.workers))
        workers = [
            worker(directory, *database, "--runs", room, start=start, LIFTED=str(lifted))
            for _ in range(size.workers)
        ]
        with _started(Scene(server, workers, lifted, cluster)) as scene:
            yield scene


@contextmanager
def _started(scene: Scene) -> Generator[Scene]:
    scene.lifted.touch()
    try:
        scene.server.start()
        scene.server.wait()
        for each in scene.workers:
            each.start()
        yield scene
    finally:
        for program in (*scene.workers, scene.server):
            program.end()


async def drill(scene: Scene, size: Size) -> Found:
    """Start runs, read them all, strike, and count."""
    began, found = time.monotonic(), Found()
    timeout = httpx.Timeout(30, read=60)
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=scene.server.url, timeout=timeout, limits=limits) as client:
        runs = [await _begin(client, size) for _ in range(size.runs)]
        striking = asyncio.create_task(_strike(scene, size, found))
        await asyncio.gather(*(_read(client, each) for each in runs))
        striking.cancel()
        with suppress(asyncio.CancelledError):
            await striking
        found.seconds = time.monotonic() - began
        await asyncio.to_thread(scene.server.wait)
        for each in runs:
            await _count(client, each, size, found)
    calls = Counter(line.rsplit(" ", 1)[0] for line in scene.lifted.read_text().splitlines())
    found.lifted = calls.total()
    found.lifted_again = calls.total() - len(calls)
    return found


async def _begin(client: httpx.AsyncClient, size: Size) -> _Run:
    thread = (await client.post("/threads", json={})).raise_for_status().json()["thread_id"]
    asked = {"role": "user", "content": f"{size.stones} {size.seconds}"}
    given = {
        "assistant_id": "lifter",
        "input": {"messages": [asked]},
        "stream_mode": ["updates"],
        "stream_resumable": True,
    }
    made = (await client.post(f"/threads/{thread}/runs", json=given)).raise_for_status().json()
    return _Run(thread, made["run_id"])


async def _read(client: httpx.AsyncClient, run: _Run) -> None:
    """Read a run to its end, from the last event each time that the connection breaks."""
    path = f"/threads/{run.thread}/runs/{run.run}"
    while True:
        run.reconnections += 1
        try:
            async for number, name, data in _events(client, path, run.numbers[-1] if run.numbers else -1):
                run.numbers.append(number)
                run.attempts += name == "metadata"
                run.told.update(_results(data) if name == "updates" else ())
            if (await client.get(path)).raise_for_status().json()["status"] in _OVER:
                return
        except httpx.HTTPError:
            await asyncio.sleep(0.2)


async def _events(client: httpx.AsyncClient, path: str, last: int) -> AsyncGenerator[tuple[int, str, Any]]:
    headers = {"last-event-id": str(last)}
    async with client.stream("GET", f"{path}/stream", headers=headers) as answer:
        answer.raise_for_status()
        fields: dict[str, str] = {}
        async for line in answer.aiter_lines():
            name, _, value = line.partition(": ")
            if not line and "data" in fields:
                yield int(fields["id"]), fields["event"], orjson.loads(fields["data"])
            fields = {**fields, name: value} if line else {}


def _results(update: Mapping[str, Any]) -> list[str]:
    tools: dict[str, Any] = update.get("tools") or {}
    messages: list[dict[str, Any]] = tools.get("messages") or []
    return [message["tool_call_id"] for message in messages]


async def _count(client: httpx.AsyncClient, run: _Run, size: Size, found: Found) -> None:
    made = (await client.get(f"/threads/{run.thread}/runs/{run.run}")).raise_for_status().json()
    state = (await client.get(f"/threads/{run.thread}/state")).raise_for_status().json()
    messages: list[dict[str, Any]] = state["values"]["messages"]
    results = Counter(each["tool_call_id"] for each in messages if each["type"] == "tool")
    found.statuses[made["status"]] += 1
    found.errors.update([str(made["error"])] if made.get("error") else [])
    found.results_missing += size.stones - len(results)
    found.results_twice += results.total() - len(results)
    found.events += len(run.numbers)
    found.events_lost += len(results.keys() - run.told)
    found.events_out_of_order += run.numbers != sorted({*run.numbers})
    found.reconnections += run.reconnections
    found.attempts += run.attempts


async def _strike(scene: Scene, size: Size, found: Found) -> None:
    """Strike every few seconds: what must happen first, and then one worker after the other."""
    blows = [*["worker asleep"] * size.sleeps, *["database restarted"] * size.database_restarts]
    blows = blows if scene.workers else []
    blows += ["server restarted"] * size.server_restarts
    random.Random(7).shuffle(blows)
    kills = 0
    while True:
        await asyncio.sleep(size.pause)
        if kills < size.kills and scene.workers:
            await asyncio.to_thread(_kill, random.choice(scene.workers))
            found.blows["worker killed"] += 1
            kills += 1
            await asyncio.sleep(size.pause)
        if blows:
            await asyncio.to_thread(partial(_blow, scene, blows[-1]))
            found.blows[blows.pop()] += 1


def _kill(program: Program) -> None:
    program.end(signal.SIGKILL)
    program.start()


def _blow(scene: Scene, which: str) -> None:
    if which == "worker asleep":
        sleeper = scene.workers[0]
        sleeper.send(signal.SIGSTOP)
        time.sleep(_ASLEEP)
        sleeper.send(signal.SIGCONT)
    elif which == "server restarted":
        _kill(scene.server)
        scene.server.wait()
    else:
        assert scene.cluster
        _restart(scene.cluster)


def _restart(cluster: Path) -> None:
    """Restart a PostgreSQL, which cuts off everybody."""
    program = shutil.which("pg_ctl")
    assert program
    command = [
        program,
        "restart",
        "-w",
        "-m",
        "fast",
        "-D",
        str(cluster / "data"),
        "-l",
        str(cluster / "log"),
    ]
    owner = (cluster / "data").stat().st_uid
    subprocess.run(command, user=owner, cwd=cluster, check=True, stdout=subprocess.DEVNULL)
