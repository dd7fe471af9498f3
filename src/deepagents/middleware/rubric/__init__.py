"""Work is graded before an agent stops, and sent back while it falls short of a rubric."""

from deepagents.middleware.rubric.middleware import RubricMiddleware
from deepagents.middleware.rubric.prompts import GRADER_SYSTEM_PROMPT
from deepagents.middleware.rubric.types import (
    RUBRIC_GRADER_MESSAGE_SOURCE,
    CriterionEval,
    CriterionFail,
    CriterionPass,
    GraderResponse,
    GraderVerdict,
    RubricEvaluation,
    RubricResult,
    RubricState,
)

__all__ = [
    "GRADER_SYSTEM_PROMPT",
    "RUBRIC_GRADER_MESSAGE_SOURCE",
    "CriterionEval",
    "CriterionFail",
    "CriterionPass",
    "GraderResponse",
    "GraderVerdict",
    "RubricEvaluation",
    "RubricMiddleware",
    "RubricResult",
    "RubricState",
]
