"""Describe what happens to a run apart from its steps, in a line each."""

from __future__ import annotations

from deepagents.events import (
    AnswerBroken,
    ContextCompacted,
    Custom,
    Event,
    HostRefused,
    LimitNear,
    LimitReached,
    ModelFailed,
    ModelRetry,
    TaskChanged,
)
from deepagents.models.endings import describe_break
from deepagents_cli.text import one_line


def notice_line(event: Event) -> str | None:
    """Describe what happened to a run apart from its steps; `None` for what is shown otherwise or never.

    The command line and the conversation both show these sentences.
    """
    line = _model_line(event)
    match event:
        case ContextCompacted():
            line = "older messages were summed up"
        case LimitNear() | LimitReached():
            how = "near" if isinstance(event, LimitNear) else "reached"
            line = f"limit of {_words(event.kind)} is {how}: {event.spent:,g} of {event.limit:,g}"
        case HostRefused(text=text):
            line = one_line(text)
        case TaskChanged(name=name, status=status):
            line = f"{one_line(name)}, elsewhere: {one_line(status)}"
        case Custom(data={"type": "rubric_evaluation_end", "result": str(result)}):
            line = f"graded: {_words(result)}"
        case _:
            pass
    return line


def _model_line(event: Event) -> str | None:
    match event:
        case ModelFailed(error=error):
            return f"the model failed: {one_line(error)}"
        case ModelRetry(reason=reason, seconds=seconds, retry=retry, retries=retries):
            return f"{one_line(reason)}; trying again in {seconds:.0f} s ({retry} of {retries})"
        case AnswerBroken(kind=kind):
            return f"the answer {describe_break(kind)}"
        case _:
            return None


def _words(name: str) -> str:
    return one_line(name.replace("_", " "))
