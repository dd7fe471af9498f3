"""The drill of the server, small: `python -m benchmarks.server drill` runs it at full size."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from benchmarks.server.drill import Size, drill, on_postgres
from tests import postgres, programs

pytestmark = pytest.mark.slow


@pytest.mark.slow
@pytest.mark.skipif(bool(postgres.missing()), reason="PostgreSQL is not installed")
def test_every_run_ends_once_whatever_is_killed(tmp_path: Path) -> None:
    size = Size(runs=6, stones=2, seconds=0.5, workers=2, pause=1, kills=1, sleeps=0, database_restarts=1)

    with on_postgres(tmp_path, size, programs.start) as opened:
        found = asyncio.run(drill(opened, size))

    assert found.is_right(size), found.lines(size)
    assert found.lifted == 12 + found.lifted_again
