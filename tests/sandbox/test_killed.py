"""A harness that is killed with -9 leaves no process, no placeholder, no control group, and no planted file."""

from __future__ import annotations

import pytest

from tests.sandbox.users import UNAVAILABLE, USERS, run_drills


@pytest.mark.skipif(UNAVAILABLE is not None, reason=str(UNAVAILABLE))
@pytest.mark.parametrize("user", USERS)
def test_a_harness_killed_at_thirty_random_moments_leaves_nothing(user: str) -> None:
    left = run_drills("tests.sandbox.kill_drills", user)["a_harness_killed_at_random_moments"]

    assert left == {}
