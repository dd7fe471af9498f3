"""A thousand steps with files on disk, and shorter runs that are awaited: nothing overflows or is lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.agents.long_runs import Blocking, check_all, run
from tests.conftest import CallMode

STEPS = 1_000


def test_it_is_the_same_on_disk(tmp_path: Path) -> None:
    on_disk = run(Blocking(), STEPS, tmp_path)

    assert len(on_disk.seen) == STEPS
    check_all(on_disk)


@pytest.mark.parametrize("place", ["state", "disk"])
def test_it_is_the_same_when_awaited(place: str, tmp_path: Path) -> None:
    with asyncio.Runner() as runner:
        check_all(run(CallMode("async", runner), 300, tmp_path if place == "disk" else None))
