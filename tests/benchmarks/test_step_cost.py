"""A step costs little more than a bare loop's, and no more late in a run than early."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.architecture.source import ROOT

EARLY, LATE = 50, 400


def calls_of(agent: str, way: str) -> tuple[float, float]:
    """Return the Python calls of one step in a short and in a long run."""
    command = [sys.executable, "-m", "benchmarks.probes.calls", agent, way, str(EARLY), str(LATE)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    early, late = json.loads(done.stdout.splitlines()[-1])
    return early, late


@pytest.mark.parametrize("way", ["blocking", "awaited"])
def test_a_step_stays_close_to_a_bare_loop(way: str) -> None:
    ours, ours_late = calls_of("deep_agent", way)
    bare, bare_late = calls_of("create_agent", way)

    assert ours <= 1.7 * bare
    assert ours_late - ours <= 1.1 * (bare_late - bare)
