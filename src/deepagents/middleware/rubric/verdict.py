"""What a grader's answer is worth, and what follows from it; pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from deepagents.middleware.rubric.types import CriterionEval, GraderResponse, RubricResult

_NUMBER: Final = re.compile(r"^\s*\d+[.)]\s+")


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one grading ended."""

    result: RubricResult
    explanation: str
    criteria: list[CriterionEval] = field(default_factory=list[CriterionEval])
    unverified: bool = False


def shortfall(response: GraderResponse, criteria: Sequence[str]) -> str | None:
    """Say what keeps an answer from covering the rubric; a verdict of `failed` needs no criteria."""
    if response.result == "failed":
        return None
    given = {_plain(each["name"]) for each in response.criteria}
    if missing := [name for name in criteria if _plain(name) not in given]:
        return f"it leaves out {', '.join(map(repr, missing))}"
    return None if given else "it names no criteria"


def _plain(name: str) -> str:
    """Return a name as it is compared: without the number of the checklist, case, space and full stop."""
    return " ".join(_NUMBER.sub("", name).casefold().split()).rstrip(".") or name


def weighed(response: GraderResponse, problem: str | None, *, again: bool) -> Verdict:
    """Take a complete answer as it is; else send the work back unverified once, then give the grader up."""
    given = Verdict(response.result, response.explanation, response.criteria)
    if problem is None:
        return given
    if again:
        said = f"The grader's answers could not be used: {problem}. It said: {response.explanation}"
        return replace(given, result="grader_error", explanation=said, unverified=True)
    if response.result == "satisfied":
        said = f"The grader called the work done, but {problem}, so that is not verified."
        return replace(given, result="needs_revision", explanation=said, unverified=True)
    return given


def bounded(verdict: Verdict, iteration: int, most: int) -> Verdict:
    """End the attempt when a revision is wanted and there is no round left."""
    if verdict.result == "needs_revision" and iteration + 1 >= most:
        return replace(verdict, result="max_iterations_reached")
    return verdict
