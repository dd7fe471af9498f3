"""What is known of calls that ended without a result: for their thread, once, and within bounds."""

from __future__ import annotations

from deepagents.middleware.patch_tool_calls.outcomes import MOST_KNOWN, CallFates


def test_what_is_known_is_handed_out_once_and_to_its_thread() -> None:
    fates = CallFates()
    fates.note("1", "a", "cancelled")
    fates.note("2", "a", "waiting")

    assert fates.taken("1") == {"a": "cancelled"}
    assert fates.taken("1") == {}
    assert fates.taken("2") == {"a": "waiting"}


def test_what_is_known_is_forgotten_when_the_call_runs_again() -> None:
    fates = CallFates()
    fates.note("1", "a", "cancelled")
    fates.forget("1", "a")

    assert fates.taken("1") == {}


def test_without_a_thread_or_an_id_nothing_is_known() -> None:
    fates = CallFates()
    fates.note(None, "a", "cancelled")
    fates.note("1", None, "cancelled")

    assert fates.taken(None) == {}
    assert fates.taken("1") == {}


def test_the_oldest_go_when_there_are_too_many() -> None:
    fates = CallFates()
    for number in range(MOST_KNOWN + 1):
        fates.note("1", str(number), "cancelled")

    assert set(fates.taken("1")) == {str(number) for number in range(1, MOST_KNOWN + 1)}
