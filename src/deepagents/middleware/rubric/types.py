"""What a grader answers, what becomes of it, and what an agent keeps of both."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, NotRequired, TypeAlias

from langchain.agents import AgentState
from langchain.agents.middleware.types import PrivateStateAttr
from pydantic import BaseModel, Field, model_validator
from typing_extensions import TypedDict

from deepagents._state.schema import NOT_SHARED

RUBRIC_GRADER_MESSAGE_SOURCE: Final = "rubric_grader"
"""What the messages of a grader carry as their name and as `lc_source`."""

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
