"""Keep one attempt to meet a rubric: what a grader answers, what that leads to, and what is kept. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, NotRequired, TypeAlias
from uuid import uuid4

from langchain.agents import AgentState
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AnyMessage
from pydantic import BaseModel, Field, model_validator
from typing_extensions import TypedDict

from deepagents._state.schema import NOT_SHARED
from deepagents._values import valueclass
from deepagents.middleware._history import is_from_person

RUBRIC_GRADER_MESSAGE_SOURCE: Final = "rubric_grader"
"""What the messages of a grader carry as their name and as `lc_source`."""
MAX_EVALUATIONS: Final = 50
"""Evaluations that a thread keeps."""
_NUMBER: Final = re.compile(r"^\s*\d+[.)]\s+")

GraderVerdict: TypeAlias = Literal["satisfied", "needs_revision", "failed"]
"""What a grader may say."""

RubricResult: TypeAlias = Literal[
    "satisfied", "needs_revision", "failed", "max_iterations_reached", "grader_error"
]
"""How one grading ended; all but `needs_revision` end the attempt."""


class CriterionPass(TypedDict):
    """A criterion that the work meets."""

    name: str
    passed: Literal[True]


class CriterionFail(TypedDict):
    """A criterion that it does not meet, or not demonstrably, and what is missing."""

    name: str
    passed: Literal[False]
    gap: str


CriterionEval: TypeAlias = CriterionPass | CriterionFail


class GraderResponse(BaseModel):
    """The verdict on the work, criterion by criterion."""

    result: GraderVerdict
    explanation: str = Field(description="Why, in a few sentences.")
    criteria: list[CriterionEval] = Field(description="One entry for each criterion of the rubric.")

    @model_validator(mode="after")
    def _refuse_contradictions(self) -> GraderResponse:
        failed = [each["name"] for each in self.criteria if not each["passed"]]
        if self.result == "satisfied" and failed:
            raise ValueError(f"the result is 'satisfied', but these criteria failed: {failed!r}")
        if self.result == "needs_revision" and self.criteria and not failed:
            raise ValueError("the result is 'needs_revision', but every criterion passed")
        return self


class RubricEvaluation(TypedDict):
    """One grading: which attempt and which round of it, and how it ended."""

    grading_run_id: str
    iteration: int
    result: RubricResult
    explanation: str
    criteria: list[CriterionEval]
    unverified: bool


class RubricState(AgentState[Any]):
    """The rubric, which callers set and clear, and where its grading stands."""

    rubric: NotRequired[Annotated[str | None, NOT_SHARED]]
    _rubric_status: NotRequired[Annotated[RubricResult | None, PrivateStateAttr, NOT_SHARED]]
    _rubric_iterations: NotRequired[Annotated[int, PrivateStateAttr, NOT_SHARED]]
    _rubric_evaluations: NotRequired[Annotated[list[RubricEvaluation], PrivateStateAttr, NOT_SHARED]]
    _current_grading_run_id: NotRequired[Annotated[str | None, PrivateStateAttr, NOT_SHARED]]
    _active_rubric: NotRequired[Annotated[str | None, PrivateStateAttr, NOT_SHARED]]
    _rubric_criteria: NotRequired[Annotated[list[str], PrivateStateAttr, NOT_SHARED]]
    _rubric_request: NotRequired[Annotated[str | None, PrivateStateAttr, NOT_SHARED]]


@valueclass
class Attempt:
    """The rubric, request, round and first criteria of an attempt, and the evaluations of its thread."""

    rubric: str
    request: str | None
    run_id: str
    iteration: int
    criteria: list[str]
    evaluations: list[RubricEvaluation]

    @property
    def had_no_criteria(self) -> bool:
        """Whether the round before this one could not be verified."""
        mine = [each for each in self.evaluations if each["grading_run_id"] == self.run_id]
        return bool(mine) and (mine[-1]["unverified"] or not mine[-1]["criteria"])

    def evaluation(
        self,
        result: RubricResult,
        explanation: str,
        criteria: Sequence[CriterionEval] = (),
        *,
        unverified: bool = False,
    ) -> RubricEvaluation:
        """Record how this round ended."""
        return {
            "grading_run_id": self.run_id,
            "iteration": self.iteration,
            "result": result,
            "explanation": explanation,
            "criteria": list(criteria),
            "unverified": unverified,
        }

    def to_state(self) -> dict[str, Any]:
        """Return the state keys of this attempt."""
        return {
            "_rubric_status": None,
            "_rubric_iterations": self.iteration,
            "_current_grading_run_id": self.run_id,
            "_active_rubric": self.rubric,
            "_rubric_criteria": self.criteria,
            "_rubric_request": self.request,
        }

    def state_after(self, evaluation: RubricEvaluation) -> dict[str, Any]:
        """Return the state keys after a round; the first criteria stay those of the attempt."""
        named = [] if evaluation["result"] == "failed" else [each["name"] for each in evaluation["criteria"]]
        return {
            **self.to_state(),
            "_rubric_status": evaluation["result"],
            "_rubric_iterations": self.iteration + 1,
            "_rubric_evaluations": [*self.evaluations, evaluation][-MAX_EVALUATIONS:],
            "_rubric_criteria": self.criteria or named,
        }


def open_attempt(state: Mapping[str, Any]) -> Attempt | None:
    """Return the attempt that is open, even if messages or another rubric came in since it began."""
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


def new_attempt(state: Mapping[str, Any]) -> Attempt | None:
    """Return a new attempt, `None` without a rubric.

    Raises:
        TypeError: when the rubric is not text.
    """
    if not (rubric := _rubric(state)):
        return None
    return Attempt(rubric, _request(state), str(uuid4()), 0, [], state.get("_rubric_evaluations") or [])


def start_update(state: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the update at the start of a run: an attempt at another rubric or request ends."""
    current = open_attempt(state)
    if current and (current.rubric, current.request) == (_rubric(state), _request(state)):
        return None
    if attempt := new_attempt(state):
        return attempt.to_state()
    return {"_current_grading_run_id": None} if state.get("_current_grading_run_id") else None


def _is_open(state: Mapping[str, Any]) -> bool:
    has_begun = bool(state.get("_current_grading_run_id")) and bool(state.get("_active_rubric"))
    return has_begun and state.get("_rubric_status") in (None, "needs_revision")


def _rubric(state: Mapping[str, Any]) -> str:
    rubric: object = state.get("rubric")
    if rubric is not None and not isinstance(rubric, str):
        raise TypeError(f"rubric must be a text or None, got {rubric!r}")
    return (rubric or "").strip()


def _request(state: Mapping[str, Any]) -> str | None:
    request = current_request(state["messages"])
    return request.id if request else None


def current_request(messages: Sequence[AnyMessage], known: str | None = None) -> AnyMessage | None:
    """Return the message of that id, else the last one that a user wrote."""
    request = next((each for each in messages if known and each.id == known), None)
    return request or next((each for each in reversed(messages) if is_from_person(each)), None)


def find_gap(response: GraderResponse, criteria: Sequence[str]) -> str | None:
    """Describe what keeps an answer from covering the rubric; a verdict `failed` needs no criteria."""
    if response.result == "failed":
        return None
    given = {_normalise(each["name"]) for each in response.criteria}
    if missing := [name for name in criteria if _normalise(name) not in given]:
        return f"it leaves out {', '.join(map(repr, missing))}"
    return None if given else "it names no criteria"


def _normalise(name: str) -> str:
    """Return a name without its number in the checklist, case, extra spaces and full stop, to compare it."""
    return " ".join(_NUMBER.sub("", name).casefold().split()).rstrip(".") or name


def decide(attempt: Attempt, response: GraderResponse, problem: str | None) -> RubricEvaluation:
    """Take a complete answer as it is; else send the work back once as unverified, then give up."""
    result: RubricResult = response.result
    text, unverified = response.explanation, True
    if problem and attempt.had_no_criteria:
        result = "grader_error"
        text = f"The grader's answers could not be used: {problem}. Its explanation: {text}"
    elif problem and result == "satisfied":
        result = "needs_revision"
        text = f"The grader called the work done, but {problem}, so that is not verified."
    else:
        unverified = False
    return attempt.evaluation(result, text, response.criteria, unverified=unverified)


def limit_rounds(evaluation: RubricEvaluation, most: int) -> RubricEvaluation:
    """End the attempt when a revision is wanted but no round is left."""
    if evaluation["result"] == "needs_revision" and evaluation["iteration"] + 1 >= most:
        return {**evaluation, "result": "max_iterations_reached"}
    return evaluation
