"""Work is graded before an agent stops, and sent back while it falls short of a rubric."""

from deepagents._deprecation import legacy
from deepagents.middleware.rubric.attempt import (
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
from deepagents.middleware.rubric.grader import GRADER_SYSTEM_PROMPT
from deepagents.middleware.rubric.middleware import RubricMiddleware

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

__getattr__ = legacy(__name__)
