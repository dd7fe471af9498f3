"""Describe a call and its result in a line each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from deepagents.tools import ToolSpec, specs_by_name
from deepagents_cli.diffs import name_in
from deepagents_cli.text import clean, one_line

_SPECS: Final = specs_by_name()
_SAYS_EXIT_CODE: Final = re.compile(r"\[Command (?:succeeded|failed) with exit code \d+\]|Exit code: \d+")
"""The line behind the output of a command: for the model, as people see a mark."""
_SAYS_MORE: Final = re.compile(r"^([\d,]+) more (?:entries|files|lines)\b.*", re.MULTILINE)
"""The line below a listing that says how much of it the model does not see."""
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
    lines = [line for line in clean(_SAYS_EDITED.sub("", text)).split("\n") if line.strip()]
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
