"""Describe what happens in a line each: a call, its result, and what is apart from the steps of a run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

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
    ToolCalled,
    ToolFinished,
)
from deepagents.models.endings import describe_break
from deepagents.tools import ToolSpec, specs_by_name
from deepagents_cli.diffs import name_in
from deepagents_cli.text import clean, one_line

_SPECS: Final = specs_by_name()
_SAYS_EXIT_CODE: Final = re.compile(
    r"\[Command (?:succeeded|failed) with exit code \d+\]|Exit code: -?\d+(?: \(.*\))?"
)
"""The line behind the output of a command: for the model, as people see a mark."""
_SAYS_MORE: Final = re.compile(r"^([\d,]+) more (?:entries|files|lines)\b.*", re.MULTILINE)
"""The line below a listing that says how much of it the model does not see."""
_FENCES: Final = re.compile(r"</?web_(?:page|results)_[0-9a-f]+\b.*>|What follows is from the web\..*")
"""How a page of the web is set apart, for the model."""
_SAYS_EDITED: Final = re.compile(r"\ANote: a human reviewer [^\n]*\n\nTool response:\n*")  # LangChain's


def call_line(
    name: str, args: Mapping[str, Any], specs: Mapping[str, ToolSpec] = _SPECS, *, directory: str = ""
) -> str:
    """Format a call: the tool's name and its most telling arguments, a path as it lies in the directory."""
    spec = specs.get(name)
    keys = spec.summary_arguments if spec else tuple(args)[:1]
    path = spec.path_argument if spec else None
    shown = [
        name_in(str(args[key]), directory) if key == path else str(args[key]) for key in keys if args.get(key)
    ]
    if spec and spec.split:
        shown = [name_in(path, directory) for path in spec.paths_in(args)]
    return " ".join(map(one_line, [name, *shown]))


def result_line(
    name: str, status: str, text: str, specs: Mapping[str, ToolSpec] = _SPECS, *, exit_code: int | None = None
) -> str:
    """Shorten a result to what fits behind its call; an empty string where the mark says it all."""
    if exit_code:
        # Its output is that of any command: too much for one line.
        printed = result_line(name, "success", text, specs, exit_code=0)
        return f"exit code {exit_code}{': ' if printed else ''}{printed}"
    if status == "error":
        return one_line(text)
    shown = (line for line in clean(_SAYS_EDITED.sub("", text)).split("\n") if line.strip())
    lines = [line for line in shown if not _FENCES.fullmatch(line)]
    if lines and exit_code is not None and _SAYS_EXIT_CODE.fullmatch(lines[-1]):
        lines.pop()
    spec = specs.get(name)
    if spec and spec.changes_files and len(lines) == 1:
        return ""
    if spec and spec.result_unit and len(lines) != 1:
        left_out = _SAYS_MORE.search(text)
        listed = lines[: lines.index(left_out[0])] if left_out and left_out[0] in lines else lines
        return f"{count_of(len(listed), spec.result_unit)}{f', {left_out[1]} more' if left_out else ''}"
    more = f" (+{count_of(len(lines) - 1, 'line')})" if len(lines) > 1 else ""
    return f"{one_line(lines[0])}{more}" if lines else ""


def count_of(number: int, noun: str) -> str:
    """Return a number and its noun, in the plural where it is not 1."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"


def line_of(event: Event, directory: str) -> str | None:
    """Describe a call, its result or another event in a line; `None` for what is shown otherwise or never."""
    match event:
        case ToolCalled(name=name, args=args):
            return call_line(name, args, directory=directory)
        case ToolFinished(name=name, status=status, text=text):
            return result_line(name, status, text, exit_code=event.exit_code)
        case ModelFailed(error=error):
            return f"the model failed: {one_line(error)}"
        case ModelRetry(reason=reason, seconds=seconds, retry=retry, retries=retries):
            return f"{one_line(reason)}; trying again in {seconds:.0f} s ({retry} of {retries})"
        case AnswerBroken(kind=kind):
            return f"the answer {describe_break(kind)}"
        case _:
            return _notice_line(event)


def _notice_line(event: Event) -> str | None:
    match event:
        case ContextCompacted():
            return "older messages were summed up"
        case LimitNear() | LimitReached():
            how = "near" if isinstance(event, LimitNear) else "reached"
            return f"limit of {_words(event.kind)} is {how}: {event.spent:,g} of {event.limit:,g}"
        case HostRefused(text=text):
            return one_line(text)
        case TaskChanged(name=name, status=status):
            return f"{one_line(name)}, elsewhere: {one_line(status)}"
        case Custom(data=data):
            return _sent_back_line(data)
        case _:
            return None


def _sent_back_line(data: object) -> str | None:
    match data:
        case {"type": "rubric_evaluation_end", "result": str(result)}:
            return f"graded: {_words(result)}"
        case {"type": "finish_check", "why": str(why)}:
            return f"asked whether this is the end: {one_line(why)}"
        case {"type": "edit_checks", "new": str(new)}:
            return f"checked after the edit: {one_line(new)}"
        case _:
            return None


def _words(name: str) -> str:
    return one_line(name.replace("_", " "))
