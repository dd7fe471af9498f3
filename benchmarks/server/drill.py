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
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import orjson

from benchmarks.server.agents import OPENED
from benchmarks.server.programs import Program, Server, Start, deepagents, worker
from tests import postgres

_OVER = ("success", "error", "interrupted", "timeout")
_ASLEEP = 8.0
"""Seconds for which a worker is stopped: longer than others wait for it."""
_KILL, _SLEEP = "worker killed", "worker stopped and continued"
_RESTART, _KILL_SERVER = "database restarted", "server killed and started"


@dataclass(frozen=True)
class Size:
    """How much of it."""

    runs: int = 100
    stones: int = 8
    seconds: float = 5.0
    """Each run calls a tool so many times, and each call takes so long."""
    workers: int = 3
    pause: float = 3.0
    """Seconds between two blows."""
    kills: int = 12
    sleeps: int = 1
    database_restarts: int = 2
    server_kills: int = 1

    @property
    def blows(self) -> Counter[str]:
        """What is to fall."""
        return +Counter({
            _KILL: self.kills,
            _SLEEP: self.sleeps,
            _RESTART: self.database_restarts,
            _KILL_SERVER: self.server_kills,
        })  # fmt: skip


@dataclass
class Found:
    """What was counted."""

    statuses: Counter[str] = field(default_factory=Counter[str])
    errors: Counter[str] = field(default_factory=Counter[str])
    blows: Counter[str] = field(default_factory=Counter[str])
    cut_off: int = 0
    """Attempts at runs that did not come to their end."""
    lifted: int = 0
    lifted_again: int = 0
    results_missing: int = 0
    results_twice: int = 0
    answers_twice: int = 0
    events: int = 0
    events_lost: int = 0
    events_out_of_order: int = 0
    reconnections: int = 0
    seconds: float = 0

    def lines(self, size: Size) -> list[str]:
        """Say it."""
        ended = ", ".join(f"{number} {status}" for status, number in self.statuses.items())
        return [
            f"{size.runs} runs of {size.stones} tool calls of {size.seconds:g} s, {self.seconds:.0f} s;"
            f" a blow every {size.pause:g} s",
            "fallen: "
            + ", ".join(f"{self.blows[each]} of {size.blows[each]} x {each}" for each in size.blows),
            f"ended: {ended}; attempts cut off: {self.cut_off}",
            *(f"{number} x {error}" for error, number in self.errors.items()),
            f"tool calls begun: {self.lifted}, of which again after a loss: {self.lifted_again}",
            f"results in histories: {self.results_missing} missing, {self.results_twice} twice;"
            f" answers twice: {self.answers_twice}",
            f"events read: {self.events}, with {self.reconnections} reconnections; "
            f"messages that no event told: {self.events_lost}; out of order: {self.events_out_of_order}",
        ]

    def is_right(self, size: Size) -> bool:
        """Tell whether all blows fell, and nothing was lost or came twice."""
        twice = (self.results_twice, self.answers_twice, self.events_out_of_order)
        faults = (self.results_missing, self.events_lost, *twice)
        right = self.statuses == {"success": size.runs} and not any(faults)
        return right and self.blows == size.blows and self.cut_off > 0


@dataclass
class _Run:
    """A run, and what its reader has seen."""

    thread: str
    run: str
    numbers: list[int] = field(default_factory=list[int])
    told: set[str] = field(default_factory=set[str])
    """The ids of the messages of which events told."""
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
        async with asyncio.TaskGroup() as group:
            group.create_task(_strike(scene, size, found))
            for each in runs:
                group.create_task(_read(client, each))
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
                run.told.update(_messages(data) if name == "updates" else ())
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


def _messages(update: Mapping[str, Any]) -> list[str]:
    changes: list[dict[str, Any]] = [each for each in update.values() if each]
    return [message["id"] for each in changes for message in each.get("messages") or ()]


async def _count(client: httpx.AsyncClient, run: _Run, size: Size, found: Found) -> None:
    made = (await client.get(f"/threads/{run.thread}/runs/{run.run}")).raise_for_status().json()
    state = (await client.get(f"/threads/{run.thread}/state")).raise_for_status().json()
    messages: list[dict[str, Any]] = state["values"]["messages"]
    results = Counter(each["tool_call_id"] for each in messages if each["type"] == "tool")
    answers = [each for each in messages if each["type"] == "ai" and not each["tool_calls"]]
    found.statuses[made["status"]] += 1
    found.errors.update([str(made["error"])] if made.get("error") else [])
    found.results_missing += size.stones - len(results)
    found.results_twice += results.total() - len(results)
    found.answers_twice += max(0, len(answers) - 1)
    found.events += len(run.numbers)
    found.events_lost += len({each["id"] for each in messages if each["type"] != "human"} - run.told)
    found.events_out_of_order += run.numbers != sorted({*run.numbers})
    found.reconnections += run.reconnections
    found.cut_off += run.attempts - 1


async def _strike(scene: Scene, size: Size, found: Found) -> None:
    """Let all blows fall, one every few seconds, and then the runs end."""
    blows, rng = [*size.blows.elements()], random.Random(7)
    rng.shuffle(blows)
    for blow in blows:
        await asyncio.sleep(size.pause)
        await asyncio.to_thread(_blow, scene, blow, rng)
        found.blows[blow] += 1
    scene.lifted.with_name(OPENED).touch()


def _blow(scene: Scene, blow: str, rng: random.Random) -> None:
    if blow == _KILL:
        _kill(rng.choice(_at_work(scene)))
    elif blow == _SLEEP:
        sleeper = rng.choice(_at_work(scene))
        sleeper.send(signal.SIGSTOP)
        time.sleep(_ASLEEP)
        sleeper.send(signal.SIGCONT)
    elif blow == _KILL_SERVER:
        _kill(scene.server)
        scene.server.wait()
    else:
        assert scene.cluster
        _restart(scene.cluster)


def _at_work(scene: Scene) -> list[Program]:
    """Wait for workers that have called a tool since they were started; the runs end later than the blows."""
    while True:
        known = {int(line.rsplit(" ", 1)[1]) for line in scene.lifted.read_text().splitlines()}
        if found := [each for each in scene.workers if each.pid in known]:
            return found
        time.sleep(0.1)


def _kill(program: Program) -> None:
    program.end(signal.SIGKILL)
    program.start()


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
