"""One owner who asks for more than a server can do, and what another, quiet one, sees of it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from benchmarks.contenders import ROOT, child_environment
from benchmarks.server.programs import deepagents

_ASKED = {"messages": [{"role": "user", "content": "hello"}]}
_AHEAD = 150


async def share(directory: Path, times: int) -> list[str]:
    """Measure the runs of the quiet owner, alone and beside the noisy one."""
    server = deepagents(directory, "--database", str(directory / "server.db"))
    keys = {owner: _make_key(directory, owner) for owner in ("quiet", "noisy")}
    server.start()
    try:
        server.wait()
        quiet = httpx.AsyncClient(base_url=server.url, timeout=300, headers={"x-api-key": keys["quiet"]})
        noisy = httpx.AsyncClient(base_url=server.url, timeout=300, headers={"x-api-key": keys["noisy"]})
        async with quiet, noisy:
            await _run(quiet)
            alone = await _measure(quiet, times)
            async with _noise(noisy):
                beside = await _measure(quiet, times)
    finally:
        server.end()
    return [
        f"a run of the quiet owner alone: {_shown(alone)}",
        f"beside one who has {_AHEAD} runs waiting, all urgent: {_shown(beside)}",
    ]


def _make_key(directory: Path, owner: str) -> str:
    command = [sys.executable, "-m", "deepagents_cli", "keys", "create", owner]
    command += ["--database", str(directory / "server.db")]
    environment = {**child_environment(), "PYTHONPATH": str(ROOT / "src")}
    made = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return made.stdout.strip()


async def _run(client: httpx.AsyncClient) -> None:
    given = {"assistant_id": "talker", "input": _ASKED}
    (await client.post("/runs/wait", json=given)).raise_for_status()


async def _measure(client: httpx.AsyncClient, times: int) -> list[float]:
    took: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        await _run(client)
        took.append((time.perf_counter() - began) * 1000)
    return sorted(took)


@asynccontextmanager
async def _noise(client: httpx.AsyncClient) -> AsyncGenerator[None]:
    """Keep so many runs waiting."""
    given = {"assistant_id": "talker", "input": _ASKED, "metadata": {"priority": 10}}

    async def again() -> None:
        while True:
            made = (await client.post("/runs", json=given)).raise_for_status().json()
            await client.get(f"/threads/{made['thread_id']}/runs/{made['run_id']}/join")

    async def fill() -> None:
        await asyncio.gather(*(again() for _ in range(_AHEAD)))

    filling = asyncio.create_task(fill())
    await asyncio.sleep(5)
    try:
        yield
    finally:
        filling.cancel()
        await asyncio.wait([filling])


def _shown(took: list[float]) -> str:
    return f"p50 {took[len(took) // 2]:.0f} ms, p95 {took[int(len(took) * 0.95)]:.0f} ms"
