"""Format tool calls, their results and notices as one line each; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from deepagents.events import ContextCompacted, LimitNear, LimitReached, ModelFailed, TaskChanged, Todo
from deepagents.tools import ToolSpec, specs_by_name
from deepagents_cli.terminal import clean, one_line

Notice: TypeAlias = ContextCompacted | ModelFailed | LimitNear | LimitReached | TaskChanged

_SPECS: Final = specs_by_name()
_MARKS: Final = {"completed": "[x]", "in_progress": "[>]"}


def call_line(name: str, args: Mapping[str, Any], specs: Mapping[str, ToolSpec] = _SPECS) -> str:
    """Format a call: the tool's name and its most telling arguments."""
    spec = specs.get(name)
    keys = spec.summary_arguments if spec else tuple(args)[:1]
    shown = [str(args[key]) for key in keys if args.get(key)]
    return " ".join(map(one_line, [name, *shown]))


def result_line(name: str, status: str, text: str, specs: Mapping[str, ToolSpec] = _SPECS) -> str:
    """Shorten a result to what fits behind its call; an empty string where the mark says it all."""
    if status == "error":
        return one_line(text)
    lines = [line for line in clean(text).split("\n") if line.strip()]
    spec = specs.get(name)
    if spec and spec.changes_files and len(lines) == 1:
        return ""
    if spec and spec.result_unit and len(lines) != 1:
        return _count(len(lines), spec.result_unit)
    if not lines:
        return ""
    more = f" (+{_count(len(lines) - 1, 'line')})" if len(lines) > 1 else ""
    return f"{one_line(lines[0])}{more}"


def todo_line(todo: Todo) -> str:
    """Format one step of a plan as an entry of a checklist."""
    return f"{_MARKS.get(todo.status, '[ ]')} {one_line(todo.content)}"


def notice_line(event: Notice) -> str:
    """Describe what happened to a run apart from its steps."""
    match event:
        case ContextCompacted():
            return "older messages were summed up"
        case ModelFailed(error=error):
            return f"the model failed: {one_line(error)}"
        case LimitNear(kind=kind, limit=limit, spent=spent):
            return f"limit of {_words(kind)} is near: {spent:,g} of {limit:,g}"
        case LimitReached(kind=kind, limit=limit, spent=spent):
            return f"limit of {_words(kind)} is reached: {spent:,g} of {limit:,g}"
        case TaskChanged(name=name, status=status):
            return f"{one_line(name)}, elsewhere: {one_line(status)}"


def graded_line(data: object) -> str | None:
    """Describe the verdict of a grader; `None` for other data of the custom stream."""
    match data:
        case {"type": "rubric_evaluation_end", "result": str(result)}:
            return f"graded: {_words(result)}"
        case _:
            return None


def _words(name: str) -> str:
    return one_line(name.replace("_", " "))


def _count(number: int, noun: str) -> str:
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"
