"""What is known of calls that ended without a result: for their thread, once, and within bounds."""

from __future__ import annotations

from deepagents.middleware.patch_tool_calls.outcomes import MOST_KNOWN, CallOutcomes


def test_what_is_known_is_handed_out_once_and_to_its_thread() -> None:
    outcomes = CallOutcomes()
    outcomes.note("1", "a", "cancelled")
    outcomes.note("2", "a", "waiting")

    assert outcomes.take("1") == {"a": "cancelled"}
    assert outcomes.take("1") == {}
    assert outcomes.take("2") == {"a": "waiting"}


def test_what_is_known_is_forgotten_when_the_call_runs_again() -> None:
    outcomes = CallOutcomes()
    outcomes.note("1", "a", "cancelled")
    outcomes.forget("1", "a")

    assert outcomes.take("1") == {}


def test_without_a_thread_or_an_id_nothing_is_known() -> None:
    outcomes = CallOutcomes()
    outcomes.note(None, "a", "cancelled")
    outcomes.note("1", None, "cancelled")

    assert outcomes.take(None) == {}
    assert outcomes.take("1") == {}


def test_the_oldest_go_when_there_are_too_many() -> None:
    outcomes = CallOutcomes()
    for number in range(MOST_KNOWN + 1):
        outcomes.note("1", str(number), "cancelled")

    assert set(outcomes.take("1")) == {str(number) for number in range(1, MOST_KNOWN + 1)}
