"""Many agents with five subagents each, half in threads and half on an event loop, and all that fails.

`CHAOS_AGENTS` and `CHAOS_SEED` in the environment make other runs of it; `make drills` has a hundred agents.
"""

from __future__ import annotations

import asyncio
import gc
import os
import re
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from deepagents.testing.histories import history_faults
from tests.agents.chaos import CHILDREN, Handles, Life, World, in_thread, on_loop

pytestmark = pytest.mark.slow

AGENTS = int(os.environ.get("CHAOS_AGENTS", "12"))
SEED = int(os.environ.get("CHAOS_SEED", "5"))


def lived(lives: Sequence[Life]) -> list[str]:
    """Let half of them live in threads and half on an event loop, all at the same time."""
    half = len(lives) // 2

    async def everyone() -> list[str]:
        ended = await asyncio.gather(*map(on_loop, lives[half:]))
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return ended

    with ThreadPoolExecutor(half) as pool:
        blocking = pool.map(in_thread, lives[:half])
        awaited = asyncio.run(everyone())
        return [*blocking, *awaited]


def test_every_run_ends_defined_and_nothing_is_lost_mixed_or_left_open(tmp_path: Path) -> None:
    said = f"CHAOS_SEED={SEED} CHAOS_AGENTS={AGENTS}"
    first, world = World(SEED, tmp_path / "first"), World(SEED, tmp_path / "then")
    lived([Life.of(first, number) for number in range(4)])
    released(first)
    before = Handles.now()
    lives = [Life.of(world, number) for number in range(AGENTS)]

    ended = lived(lives)
    released(world)

    met = {"ModelDown", "asked", "asked again", "cut", "answered", "timeout", "tool_failed"}
    left = Handles.now().since(before)
    wrong = [each for life, how in zip(lives, ended, strict=True) for each in wrongs(life, how)]
    assert met <= set(world.met), f"{said}: {world.met}"
    assert set(ended) <= {"answered", "cancelled"}, f"{said}: {Counter(ended)}"
    assert not left, f"{said}: {left}"
    assert not world.mixed, f"{said}: {world.mixed}"
    assert not wrong, f"{said}: {wrong}"


def released(world: World) -> None:
    """Let go what was stalled, and wait for the threads that a time-out left behind."""
    world.released.set()
    for each in threading.enumerate():
        if each.name == "deepagents-io":
            each.join(30)
    gc.collect()


def wrongs(life: Life, ended: str) -> list[str]:
    """Say what of a life is not as it has to be."""
    values = life.agent.get_state({"configurable": {"thread_id": life.me}}).values
    messages = values["messages"]
    files = life.files(values)
    done = [child for child in range(CHILDREN) if life.is_reported(child, messages)]
    found = [f"{path} holds {files.get(path)!r}" for path in life.lost(done, files)]
    if ended == "answered":
        found += history_faults(messages)
        found += [] if messages[-1].text == f"done {life.me}" else [f"ended with {messages[-1]!r}"]
    others = {name for name in re.findall(r"agent-\d+\.", f"{messages} {files}") if name != life.me}
    found += [f"holds something of {sorted(others)}"] if others else []
    return [f"{life.me} {each}" for each in found]
