"""A thousand steps with files on disk, and shorter runs that are awaited: nothing overflows or is lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.agents.long_runs import (
    Blocking,
    Run,
    check_all,
    check_the_archive,
    check_the_last_request,
    check_the_prefix,
    check_the_summaries,
    check_the_window,
    run,
)
from tests.conftest import Colour

STEPS = 1_000


@pytest.fixture(scope="module")
def long_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Many steps, blocking."""
    return run(Blocking(), STEPS, tmp_path_factory.mktemp("root"))


def test_no_request_is_above_the_window(long_run: Run) -> None:
    check_the_window(long_run)
    assert len(long_run.seen) == STEPS


def test_summaries_stay_apart(long_run: Run) -> None:
    check_the_summaries(long_run)


def test_every_evicted_message_is_in_the_archive_as_it_was(long_run: Run) -> None:
    check_the_archive(long_run)


def test_no_shared_prefix_is_shorter_than_it_has_to_be(long_run: Run) -> None:
    check_the_prefix(long_run)


def test_the_last_request_of_the_user_is_shown_to_the_end(long_run: Run) -> None:
    check_the_last_request(long_run)


@pytest.mark.parametrize("place", ["state", "disk"])
def test_it_is_the_same_when_awaited(place: str, tmp_path: Path) -> None:
    with asyncio.Runner() as runner:
        check_all(run(Colour("async", runner), 300, tmp_path if place == "disk" else None))
