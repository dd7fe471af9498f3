"""One attempt to meet a rubric: the rounds of grading for one request of the user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from deepagents.middleware.rubric.transcript import current_request
from deepagents.middleware.rubric.types import RubricEvaluation
from deepagents.middleware.rubric.verdict import Verdict

MOST_REMEMBERED: Final = 50
"""Evaluations that a thread keeps."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """Where an attempt stands."""

    rubric: str
    request: str | None
    run_id: str
    iteration: int
    criteria: list[str]
    evaluations: list[RubricEvaluation]

    @property
    def had_no_criteria(self) -> bool:
        """Tell whether the round before this one could not be verified."""
        mine = [each for each in self.evaluations if each["grading_run_id"] == self.run_id]
        return bool(mine) and (mine[-1]["unverified"] or not mine[-1]["criteria"])

    def evaluation(self, verdict: Verdict) -> RubricEvaluation:
        """Record how this round ended."""
        return {
            "grading_run_id": self.run_id,
            "iteration": self.iteration,
            "result": verdict.result,
            "explanation": verdict.explanation,
            "criteria": verdict.criteria,
            "unverified": verdict.unverified,
        }

    def opened(self) -> dict[str, Any]:
        """Return the state of an attempt that begins."""
        return {
            "_rubric_status": None,
            "_rubric_iterations": self.iteration,
            "_current_grading_run_id": self.run_id,
            "_active_rubric": self.rubric,
            "_rubric_criteria": self.criteria,
            "_rubric_request": self.request,
        }

    def after(self, evaluation: RubricEvaluation) -> dict[str, Any]:
        """Return the state after a round; its first criteria stay those of the attempt."""
        named = [] if evaluation["result"] == "failed" else [each["name"] for each in evaluation["criteria"]]
        return {
            **self.opened(),
            "_rubric_status": evaluation["result"],
            "_rubric_iterations": self.iteration + 1,
            "_rubric_evaluations": [*self.evaluations, evaluation][-MOST_REMEMBERED:],
            "_rubric_criteria": self.criteria or named,
        }


def standing(state: Mapping[str, Any]) -> Attempt | None:
    """Return the attempt that is open, whatever came into the conversation or the rubric since it began."""
    if not _rubric(state) or not _is_open(state):
        return None
    return Attempt(
        state["_active_rubric"],
        state.get("_rubric_request"),
        state["_current_grading_run_id"],
        state.get("_rubric_iterations", 0),
        state.get("_rubric_criteria") or [],
        state.get("_rubric_evaluations") or [],
    )


def begun(state: Mapping[str, Any]) -> Attempt | None:
    """Return a new attempt; none without a rubric.

    Raises:
        TypeError: when the rubric is no text.
    """
    if not (rubric := _rubric(state)):
        return None
    return Attempt(rubric, _request(state), str(uuid4()), 0, [], state.get("_rubric_evaluations") or [])


def at_start(state: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what the start of a run changes: an attempt of another rubric or request does not go on."""
    goes_on = standing(state)
    if goes_on and (goes_on.rubric, goes_on.request) == (_rubric(state), _request(state)):
        return None
    if attempt := begun(state):
        return attempt.opened()
    return {"_current_grading_run_id": None} if state.get("_current_grading_run_id") else None


def _is_open(state: Mapping[str, Any]) -> bool:
    began = bool(state.get("_current_grading_run_id")) and bool(state.get("_active_rubric"))
    return began and state.get("_rubric_status") in (None, "needs_revision")


def _rubric(state: Mapping[str, Any]) -> str:
    rubric: object = state.get("rubric")
    if rubric is not None and not isinstance(rubric, str):
        raise TypeError(f"rubric must be a text or None, got {rubric!r}")
    return (rubric or "").strip()


def _request(state: Mapping[str, Any]) -> str | None:
    request = current_request(state["messages"])
    return request.id if request else None
