"""Many clients that stream at once, and what a run costs over calling its agent, beside `langgraph dev`."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from benchmarks.server.agents import brief
from benchmarks.server.programs import Server

_ASKED = {"messages": [{"role": "user", "content": "hello"}]}
_STREAM = {"input": _ASKED, "stream_mode": ["values", "messages-tuple"]}
_MINUTE = 60
"""Seconds, and so many values of memory: one is read each second."""


@dataclass
class Load:
    """What the clients of one server saw, in milliseconds and megabytes."""

    clients: int
    seconds: float = 0
    first_events: list[float] = field(default_factory=list[float])
    runs: list[float] = field(default_factory=list[float])
    events: int = 0
    failures: int = 0
    memory: list[float] = field(default_factory=list[float])
    processor: float = 0

    def lines(self) -> list[str]:
        """Say it."""
        runs, seconds = len(self.runs), self.seconds
        minutes = ", ".join(f"{each:.0f}" for each in [*self.memory[::_MINUTE], *self.memory[-1:]])
        return [
            f"{self.clients} clients for {seconds:.0f} s: {runs} runs, {runs / seconds:.1f} a second,"
            f" {self.failures} failures",
            f"first event: {_shown(self.first_events)}; whole run: {_shown(self.runs)}",
            f"events a second: {self.events / seconds:.0f}; processor: {self.processor / seconds:.2f} cores,"
            f" {1000 * self.processor / max(runs, 1):.0f} ms a run",
            f"memory at first, after each minute and at the end: {minutes} MB",
        ]


def _shown(values: list[float]) -> str:
    ordered = sorted(values) or [0.0]
    return f"p50 {statistics.median(ordered):.0f} ms, p95 {ordered[int(len(ordered) * 0.95)]:.0f} ms"


async def overhead(server: Server, times: int) -> list[str]:
    """Compare runs on a server, one after the other, with calls of the same agent."""
    agent: Any = brief
    async with httpx.AsyncClient(base_url=server.url, timeout=120) as client:

        async def waited() -> None:
            thread = await _new_thread(client)
            given = {"assistant_id": "brief", "input": _ASKED}
            (await client.post(f"/threads/{thread}/runs/wait", json=given)).raise_for_status()

        async def streamed() -> None:
            await _stream_once(client, "brief", Load(1))

        async def direct() -> None:
            await agent.ainvoke(_ASKED)

        kinds = {"direct": direct, "waited": waited, "streamed": streamed}
        took = {name: [await _timed(kind) for _ in range(times)] for name, kind in kinds.items()}
    least = {name: statistics.median(sorted(values)[: max(1, times // 4)]) for name, values in took.items()}
    base, calm = statistics.median(took["direct"]), least["direct"]
    return [
        f"a run {name} costs {statistics.median(took[name]) - base:.0f} ms over calling the agent (median);"
        f" {least[name] - calm:.0f} ms in the calmest quarter"
        for name in ("waited", "streamed")
    ]


async def cancelling(server: Server, times: int) -> str:
    """Cancel runs while their tool works, and wait for their ends."""
    async with httpx.AsyncClient(base_url=server.url, timeout=120) as client:
        took = sorted([await _cancel_one(client) for _ in range(times)])
    return f"a cancelled run has ended: {_shown(took)}"


async def _cancel_one(client: httpx.AsyncClient) -> float:
    path = f"/threads/{await _new_thread(client)}/runs"
    given = {"assistant_id": "talker", "input": _ASKED}
    made = (await client.post(path, json=given)).raise_for_status().json()
    # The tool takes 0.2 seconds, twice.
    await asyncio.sleep(0.15)
    began = time.perf_counter()
    (await client.post(f"{path}/{made['run_id']}/cancel?wait=true")).raise_for_status()
    return (time.perf_counter() - began) * 1000


async def _timed(work: Callable[[], Awaitable[Any]]) -> float:
    began = time.perf_counter()
    await work()
    return (time.perf_counter() - began) * 1000


async def load(server: Server, clients: int, seconds: float) -> Load:
    """Let clients start and stream runs, each one after the other, for a while."""
    found, end = Load(clients), time.monotonic() + seconds
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(base_url=server.url, timeout=120, limits=limits) as client:
        watching = asyncio.create_task(_watch(server, found))
        began, used = time.monotonic(), server.processor()
        await asyncio.gather(*(_stream_until(client, end, found) for _ in range(clients)))
        found.seconds, found.processor = time.monotonic() - began, server.processor() - used
        watching.cancel()
    return found


async def _watch(server: Server, found: Load) -> None:
    began = time.monotonic()
    while True:
        found.memory.append(server.memory())
        # By the clock: with hundreds of clients a sleep of a second is longer.
        await asyncio.sleep(began + len(found.memory) - time.monotonic())


async def _stream_until(client: httpx.AsyncClient, end: float, found: Load) -> None:
    while time.monotonic() < end:
        began = time.perf_counter()
        try:
            await _stream_once(client, "talker", found)
        except httpx.HTTPError:
            found.failures += 1
            continue
        found.runs.append((time.perf_counter() - began) * 1000)


async def _new_thread(client: httpx.AsyncClient) -> str:
    return (await client.post("/threads", json={})).raise_for_status().json()["thread_id"]


async def _stream_once(client: httpx.AsyncClient, agent: str, found: Load) -> None:
    thread, began, first = await _new_thread(client), time.perf_counter(), True
    given = {**_STREAM, "assistant_id": agent}
    async with client.stream("POST", f"/threads/{thread}/runs/stream", json=given) as answer:
        answer.raise_for_status()
        async for chunk in answer.aiter_raw():
            found.events += chunk.count(b"event: ")
            if first:
                found.first_events.append((time.perf_counter() - began) * 1000)
                first = False
