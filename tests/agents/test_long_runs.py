"""Many steps in state, and some on disk: nothing overflows or is lost, and no step costs more.

`LONG_RUN_STEPS` in the environment makes another run of it; `make drills` takes two thousand.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from pathlib import Path
from statistics import median
from types import FrameType
from typing import Any

import pytest
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from tests.agents.busy import CYCLE
from tests.agents.long_runs import (
    Run,
    check_the_archive,
    check_the_last_request,
    check_the_prefix,
    check_the_summaries,
    check_the_window,
    run,
)
from tests.conftest import CallMode

pytestmark = pytest.mark.slow

STEPS = int(os.environ.get("LONG_RUN_STEPS", "300"))
EARLY, LATE = range(CYCLE, 3 * CYCLE, 7), range(STEPS - 2 * CYCLE, STEPS, 7)
"""Some steps of two cycles each, so that a compaction comes at some of them only."""


class Costs:
    """What each step costs: messages counted, functions of ours that were called, bytes saved."""

    def __init__(self) -> None:
        self.step = 0
        self.counted: Counter[int] = Counter()
        self.called: Counter[int] = Counter()
        self.saved: Counter[int] = Counter()

    def begin(self, number: int) -> None:
        """Begin a step."""
        self.step = number

    def watch(self, number: int) -> None:
        """Begin a step, and count the calls of those that are compared."""
        self.begin(number)
        sys.setprofile(self._call if number in EARLY or number in LATE else None)

    def count(self, messages: Any, **options: Any) -> int:
        """Count tokens, and the messages that were counted."""
        self.counted[self.step] += len(messages)
        return count_tokens_approximately(messages, **options)

    def _call(self, frame: FrameType, event: str, argument: Any) -> None:
        path = frame.f_code.co_filename
        if event == "call" and "/deepagents/" in path and "/testing/" not in path:
            self.called[self.step] += 1


class Weighing(JsonPlusSerializer):
    """Notes the bytes of what is saved."""

    def __init__(self, costs: Costs) -> None:
        super().__init__()
        self._costs = costs

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Save."""
        kind, made = super().dumps_typed(obj)
        self._costs.saved[self._costs.step] += len(made)
        return kind, made


@pytest.fixture(scope="module")
def costs() -> Costs:
    """What the steps of the long run cost."""
    return Costs()


@pytest.fixture(scope="module")
def long_run(costs: Costs) -> Run:
    """Many steps, blocking, with files in state."""
    with asyncio.Runner() as runner:
        try:
            blocking = CallMode("sync", runner)
            return run(blocking, STEPS, at_step=costs.watch, saver=InMemorySaver(serde=Weighing(costs)))
        finally:
            sys.setprofile(None)


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


@pytest.mark.usefixtures("long_run")
def test_a_late_step_calls_no_more_functions_and_saves_no_more_bytes(costs: Costs) -> None:
    for cost in (costs.called, costs.saved):
        assert min(cost[step] for step in EARLY) > 100
        assert median(cost[late] / cost[early] for early, late in zip(EARLY, LATE, strict=True)) < 1.3


def test_it_is_the_same_on_disk_awaited_and_with_a_counter_of_the_callers_own(tmp_path: Path) -> None:
    costs, steps = Costs(), 200
    with asyncio.Runner() as runner:
        awaited = CallMode("async", runner)
        on_disk = run(awaited, steps, tmp_path, at_step=costs.begin, token_counter=costs.count)

    check_the_window(on_disk)
    check_the_summaries(on_disk)
    check_the_archive(on_disk)
    check_the_prefix(on_disk)
    check_the_last_request(on_disk)
    assert 0 < median(costs.counted[step] for step in range(steps - 50, steps)) < 10
