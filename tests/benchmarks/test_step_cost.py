"""A step costs little more than a bare loop's, and no more late in a run than early."""

from __future__ import annotations

import pytest

from benchmarks.probes import create_agent, deep_agent
from benchmarks.probes.calls import early_and_late

pytestmark = pytest.mark.slow

STEPS = 100


@pytest.mark.parametrize("awaited", [False, True])
def test_a_step_stays_close_to_a_bare_loop(awaited: bool) -> None:
    ours, ours_late = early_and_late(deep_agent.build, STEPS, awaited=awaited)
    bare, bare_late = early_and_late(create_agent.build, STEPS, awaited=awaited)

    assert ours <= 1.75 * bare
    assert 0 < ours_late - ours <= 1.1 * (bare_late - bare)
