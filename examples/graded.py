"""Work that is graded before the agent stops: a second model reads it and may send it back."""

from __future__ import annotations

import sys
from typing import Any

from langchain_core.language_models import BaseChatModel

from deepagents import RubricMiddleware, create_deep_agent
from deepagents.middleware import RubricEvaluation

RUBRIC = """\
- /haiku.md has exactly three lines.
- Each line speaks of rain.
- The answer quotes the haiku."""


def main(model: str | BaseChatModel, grader: str | BaseChatModel) -> tuple[str, list[RubricEvaluation]]:
    """Write a haiku until the grader has nothing to object; return the answer and each grading."""
    gradings: list[RubricEvaluation] = []
    agent = create_deep_agent(
        model, middleware=[RubricMiddleware(model=grader, max_iterations=3, on_evaluation=gradings.append)]
    )
    given: Any = {"messages": "Write a haiku about rain to /haiku.md", "rubric": RUBRIC}
    result = agent.invoke(given)
    return result["messages"][-1].text, gradings


if __name__ == "__main__":
    from deepagents.models import default_model

    answer, rounds = main(default_model(), default_model())
    for each in rounds:
        sys.stderr.write(f"{each['result']}: {each['explanation']}\n")
    sys.stdout.write(f"{answer}\n")
