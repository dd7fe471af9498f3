"""A harness that is killed with -9 leaves no process, no placeholder, no control group, and no planted file."""

from __future__ import annotations

import pytest

from tests.sandbox.users import UNAVAILABLE, USERS, run_drills_as_all

pytestmark = pytest.mark.slow


@pytest.mark.skipif(UNAVAILABLE is not None, reason=str(UNAVAILABLE))
@pytest.mark.parametrize("user", USERS)
def test_a_harness_killed_at_thirty_random_moments_leaves_nothing(user: str) -> None:
    left = run_drills_as_all("tests.sandbox.kill_drills")[user]["a_harness_killed_at_random_moments"]

    assert left == {}


@pytest.mark.skipif(UNAVAILABLE is not None, reason=str(UNAVAILABLE))
@pytest.mark.parametrize("user", USERS)
def test_a_harness_killed_between_two_commands_of_a_session_leaves_what_is_the_users(user: str) -> None:
    drills = run_drills_as_all("tests.sandbox.kill_drills")[user]
    left = drills["what_a_harness_leaves_that_was_killed_between_two_commands"]

    # Neither placeholders nor the planted hook, but what is of the user, and what git may keep.
    assert {".git/config", ".git/hooks/pre-push"} <= set(left)
    assert not {".git/hooks/pre-commit", ".envrc", ".vscode"} & set(left)
