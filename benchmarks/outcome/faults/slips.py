"""The faults that models make with a call that they mean right, and what they then say."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from random import Random
from types import MappingProxyType
from typing import Any, Final, Literal

from langchain_core.messages import AIMessage, InvalidToolCall

from benchmarks.outcome.faults.drifts import WAYS, drift, is_told_apart
from benchmarks.outcome.faults.forms import (
    TOOLS,
    WAYS_OF,
    Form,
    find_change,
    write_anchors,
    write_patch,
)
from benchmarks.outcome.faults.tasks import Files, Step

Kind = Literal["drift", "no JSON", "argument", "tool", "root", "repeat", "announced", "error as answer"]
LIKELIHOOD: Final[Mapping[Kind, int]] = MappingProxyType(
    {
        "drift": 3, "no JSON": 1, "argument": 1, "tool": 1, "root": 2,
        "repeat": 1, "announced": 1, "error as answer": 1,
    }
)  # fmt: skip
_MISNAMED: Final = MappingProxyType(
    {
        "file_path": "filename", "path": "directory", "content": "text", "old_string": "old_str",
        "new_string": "new_str", "replace_all": "all_occurrences", "command": "cmd", "patch": "diff",
        "edits": "changes",
    }
)  # fmt: skip
_INVENTED: Final = MappingProxyType(
    {
        "read_file": "view_document", "write_file": "create_file", "edit_file": "str_replace",
        "execute": "run_shell", "ls": "list_dir",
    }
)  # fmt: skip
_ANNOUNCED: Final = (
    "Next I will see to {what}.",
    "I see. Let me look at {what} now.",
    "Now to {what}:",
    "The next step would be {what}.",
    "",
)


@dataclass(frozen=True)
class Slip:
    """One fault: its kind, and the drift, the right argument or tool, the root, or the words."""

    kind: Kind
    detail: str = ""


def choose(
    step: Step, files: Files, host: str, failed: bool, random: Random, form: Form = "replace"
) -> Slip | None:
    """Choose a fault that this call can have; after a failure also the one that ends there."""
    possible: list[Kind] = [kind for kind in LIKELIHOOD if _can_have(kind, step, failed)]
    kind = random.choices(possible, [LIKELIHOOD[each] for each in possible])[0]
    match kind:
        case "drift":
            ways = [way for way in WAYS_OF[form] if can_drift(way, step, files)]
            return Slip(kind, random.choice(ways)) if ways else None
        case "argument":
            return Slip(kind, random.choice(sorted(_names(step, form))))
        case "tool":
            return Slip(kind, _tool(step, form))
        case "announced":
            return Slip(kind, random.choice(_ANNOUNCED))
        case "root":
            return Slip(kind, random.choice(["/workspace", "/home/user/project", host]))
        case _:
            return Slip(kind)


def _tool(step: Step, form: Form) -> str:
    return TOOLS[form] if step.tool == "edit_file" else step.tool


def _names(step: Step, form: Form) -> Collection[str]:
    if step.tool != "edit_file" or form == "replace":
        return step.arguments
    return ("file_path", "edits") if form == "anchors" else ("patch",)


def can_drift(way: str, step: Step, files: Files) -> bool:
    """Return whether this way makes another quote of it, that stands nowhere in the file."""
    if way not in WAYS:
        return way != "the last line left out" or "\n" in str(step.arguments["old_string"]).strip("\n")
    old = str(step.arguments["old_string"])
    drifted, _ = drift(way, old, str(step.arguments["new_string"]))
    return is_told_apart(files.get(step.path, ""), old, drifted)


def _can_have(kind: Kind, step: Step, failed: bool) -> bool:
    match kind:
        case "drift":
            return step.tool == "edit_file"
        case "root":
            return bool(step.path)
        case "repeat":
            return step.tool in ("read_file", "ls") and not failed
        case "error as answer":
            return failed
        case _:
            return True


def say(
    step: Step,
    slip: Slip | None,
    call_id: str,
    last_error: str = "",
    form: Form = "replace",
    content: str = "",
) -> AIMessage:
    """Make the message of a model that means this step and errs in this way; `content` is in the file now."""
    match slip:
        case Slip("no JSON"):
            return _broken(_tool(step, form), _arguments(step, None, form, content), call_id)
        case Slip("announced", words):
            return AIMessage(words.format(what=step.path or "the command"))
        case Slip("error as answer"):
            return AIMessage(last_error)
        case _:
            tool = _INVENTED[step.tool] if slip and slip.kind == "tool" else _tool(step, form)
            given = _arguments(step, slip, form, content)
            made: Any = {"name": tool, "args": given, "id": call_id, "type": "tool_call"}
            return AIMessage("", tool_calls=[made])


def _arguments(step: Step, slip: Slip | None, form: Form, content: str) -> dict[str, object]:
    given = dict(step.arguments)
    if form != "replace" and step.tool == "edit_file":
        return _in_form(step, slip, form, content)
    match slip:
        case Slip("drift", way):
            old, new = drift(way, str(given["old_string"]), str(given["new_string"]))
            return {**given, "old_string": old, "new_string": new}
        case Slip("argument", name):
            return {_MISNAMED[key] if key == name else key: value for key, value in given.items()}
        case Slip("root", root):
            return {**given, "file_path" if "file_path" in given else "path": root + step.path}
        case _:
            return given


def _in_form(step: Step, slip: Slip | None, form: Form, content: str) -> dict[str, object]:
    root = slip.detail if slip and slip.kind == "root" else ""
    way = slip.detail if slip and slip.kind == "drift" else ""
    old, new = str(step.arguments["old_string"]), str(step.arguments["new_string"])
    everywhere = bool(step.arguments.get("replace_all"))
    change = find_change(content, root + step.path, old, new, everywhere=everywhere)
    given = write_anchors(change, way) if form == "anchors" else write_patch(change, way)
    if slip and slip.kind == "argument":
        return {_MISNAMED[key] if key == slip.detail else key: value for key, value in given.items()}
    return given


def _broken(tool: str, given: Mapping[str, object], call_id: str) -> AIMessage:
    arguments = json.dumps(given).replace('", "', '" "').removesuffix("}")
    error = f"Function {tool} arguments:\n\n{arguments}\n\nare not valid JSON."
    call = InvalidToolCall(type="invalid_tool_call", name=tool, args=arguments, id=call_id, error=error)
    return AIMessage("", invalid_tool_calls=[call])
