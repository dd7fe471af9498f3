"""Commands that take more than they may have, as root and as an ordinary user, whom no control group helps."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.sandbox.users import UNAVAILABLE, USERS, run_drills_as_all

pytestmark = [
    pytest.mark.skipif(UNAVAILABLE is not None, reason=str(UNAVAILABLE)),
    pytest.mark.parametrize("user", USERS),
    pytest.mark.slow,
]


def came_of(drill: str, user: str) -> dict[str, Any]:
    result = run_drills_as_all("tests.sandbox.limit_drills")[user][drill]
    assert isinstance(result, dict), result
    return result


def test_a_fork_bomb_ends_at_the_bound_on_processes_and_the_next_command_runs(user: str) -> None:
    ran = came_of("a_fork_bomb", user)

    started = re.search(r"started (\d+)", ran["output"])
    assert started is None or int(started[1]) <= 64
    assert "it started more than 64 processes" in ran["output"]
    assert ran["later"] == "fine"


@pytest.mark.parametrize(
    "drill",
    [
        "many_children_with_memory",
        "memory_in_files_of_memory",
        "memory_in_files_that_only_mappings_hold",
        "memory_of_a_process_that_closes_itself",
    ],
)
def test_memory_is_bounded_in_sum_wherever_it_is(user: str, drill: str) -> None:
    ran = came_of(drill, user)

    assert "survived 8" not in ran["output"]
    # Where no control group counts files of memory, there are none.
    refused = "memory_in_files" in drill and "Function not implemented" in ran["output"]
    assert refused or "it used more than 400 MiB of memory" in ran["output"]
    assert ran["later"] == "fine"


@pytest.mark.parametrize(
    "drill",
    [
        "a_full_workspace",
        "a_full_workspace_out_of_sight",
        "a_full_workspace_behind_a_closed_door",
        "a_full_workspace_that_only_mappings_hold",
        "a_full_workspace_that_only_sockets_hold",
        "one_large_file",
    ],
)
def test_a_command_that_fills_the_workspace_is_ended_and_the_next_one_can_tidy_up(
    user: str, drill: str
) -> None:
    ran = came_of(drill, user)

    # Between two looks a disk takes some more.
    assert ran["megabytes"] < 300
    assert "it wrote more than 100 MiB" in ran["output"] or "File size limit exceeded" in ran["output"]
    assert ran["after rm"] == 0


def test_full_temporary_directories_are_an_error_and_empty_for_the_next_command(user: str) -> None:
    ran = came_of("full_temporary_directories", user)

    assert ran["output"].count("No space left on device") == 2
    assert not re.search(r"\b[abc]\b", ran["later"])


def test_a_flood_of_output_grows_neither_the_answer_nor_the_harness(user: str) -> None:
    ran = came_of("an_output_flood", user)

    assert ran["truncated"]
    assert ran["ends"].startswith("first")
    assert "last" in ran["ends"]
    assert ran["size"] < 101_000
    assert ran["grown"] < 64, "MiB"


def test_fifty_commands_at_once_all_run_and_leave_nothing(user: str) -> None:
    ran = came_of("fifty_at_once", user)

    assert ran["outputs"] == [str(each) for each in range(50)]
    assert ran["files"] == sorted(f"file{each}" for each in range(50))
    assert ran["groups"] == []


def test_the_end_of_its_time_ends_the_whole_tree(user: str) -> None:
    ran = came_of("a_time_out", user)

    assert ran["exit code"] == 124
    assert ran["output"].startswith("begun")
    assert ran["left"] == []


def test_cancelling_an_awaited_command_ends_the_whole_tree(user: str) -> None:
    assert came_of("a_cancellation", user) == {"was": "cancelled", "left": [], "groups": []}


def test_what_this_machine_does_not_hold_is_said_at_start(user: str) -> None:
    ran = came_of("what_is_not_held", user)

    subjects = [sentence.partition(":")[0] for sentence in ran["not held"]]
    # Where a command runs in no control group, a watchdog alone bounds it.
    assert ("Memory" in subjects) == (not ran["groups"])
    assert subjects[-2:] == ["Disk", "Processor"]
    assert "Network" not in subjects
