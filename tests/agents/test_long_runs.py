"""Two thousand steps with files in state: nothing overflows or is lost, and no step costs more."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from statistics import median
from types import FrameType
from typing import Any

import pytest
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from tests.agents.long_runs import (
    Blocking,
    Run,
    check_the_archive,
    check_the_last_request,
    check_the_prefix,
    check_the_summaries,
    check_the_window,
    run,
)

STEPS = 2_000


@pytest.fixture(scope="module")
def long_run() -> Run:
    """Many steps, blocking."""
    return run(Blocking(), STEPS)


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


CYCLE = 40
EARLY, LATE = range(40, 80), range(360, 400)
PROBED = 400


class Costs:
    """What each step costs: messages counted, functions of ours that were called, bytes saved."""

    def __init__(self) -> None:
        self.step = 0
        self.counted: Counter[int] = Counter()
        self.called: Counter[int] = Counter()
        self.saved: Counter[int] = Counter()

    def at_step(self, number: int) -> None:
        """Begin a step; those that are compared are watched."""
        self.step = number
        sys.setprofile(self._call if number in EARLY or number in LATE else None)

    def count(self, messages: Any, **options: Any) -> int:
        """Count tokens, and the messages that were counted."""
        self.counted[self.step] += len(messages)
        return count_tokens_approximately(messages, **options)

    def saver(self) -> InMemorySaver:
        """Make a saver that says how much it was given."""
        return InMemorySaver(serde=Weighing(self))

    def grows(self, costs: Counter[int]) -> float:
        """Return by how much a step costs more late than early."""
        return median(costs[step] for step in LATE) / median(costs[step] for step in EARLY)

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


@pytest.fixture
def costs() -> Iterator[Costs]:
    """Measure, and stop when the test ends."""
    yield Costs()
    sys.setprofile(None)


def test_a_late_step_calls_no_more_functions_and_saves_no_more_bytes(costs: Costs) -> None:
    run(Blocking(), PROBED, cycle=CYCLE, at_step=costs.at_step, saver=costs.saver())

    assert median(costs.called[step] for step in EARLY) > 100
    assert costs.grows(costs.called) < 1.3
    assert median(costs.saved[step] for step in EARLY) > 100
    assert costs.grows(costs.saved) < 1.3


def test_a_counter_of_the_callers_own_counts_no_more_messages_late_than_early(costs: Costs) -> None:
    long = run(Blocking(), PROBED, cycle=CYCLE, at_step=costs.at_step, token_counter=costs.count)

    assert 0 < median(costs.counted[step] for step in LATE) < 10
    check_the_window(long)
