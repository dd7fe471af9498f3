"""Two subagents side by side: one judges, in a form that a program can read; one corrects."""

from __future__ import annotations

import sys
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from pydantic import BaseModel

from deepagents import SubAgent, create_deep_agent

DRAFT = "Tides are cause by the moon, and a little by the sun.\n"


class Verdict(BaseModel):
    """What the judge thinks."""

    grade: Literal["good", "fair", "poor"]
    reason: str


def main(model: str | BaseChatModel, judge_model: Any = None, corrector_model: Any = None) -> dict[str, Any]:
    """Return the corrected draft and what the agent said."""
    judge = SubAgent(
        name="judge",
        description="Judges the draft in /draft.md for truth. Changes nothing.",
        system_prompt="You judge drafts for truth, strictly.",
        response_format=Verdict,
        model=judge_model or model,
    )
    corrector = SubAgent(
        name="corrector",
        description="Corrects spelling and grammar in /draft.md.",
        system_prompt="You correct spelling and grammar and leave the sense alone.",
        model=corrector_model or model,
    )
    agent = create_deep_agent(model, subagents=[judge, corrector])
    files = {"/draft.md": {"content": DRAFT, "encoding": "utf-8"}}
    result = agent.invoke({"messages": "Have /draft.md judged and corrected, both at once.", "files": files})
    return {"draft": result["files"]["/draft.md"]["content"], "answer": result["messages"][-1].text}


if __name__ == "__main__":
    from deepagents.models import default_model

    for name, text in main(default_model()).items():
        sys.stdout.write(f"{name}: {text}\n")
