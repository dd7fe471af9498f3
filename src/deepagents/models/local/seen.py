"""Which lines of which files the model has been shown, as far as the conversation tells. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from deepagents.models.local.signatures import TOOL, Call, closed, name_of

LINES_IN_ALL = 400

_NUMBERED = re.compile(r"^ *\d+\t(.*)$", re.MULTILINE)
_WORD = re.compile(r"\w+")
_LONG_ENOUGH_TO_RENAME = 4


def shown_lines(messages: Sequence[BaseMessage]) -> dict[str, list[str]]:
    """The lines of each file that was read, kept up with the edits made since."""
    files: dict[str, list[str]] = {}
    for name, args, result in _finished(messages):
        path = str(args.get("file_path"))
        if name == "read_file":
            files[path] = _lines("\n".join([*files.get(path, []), *_NUMBERED.findall(result)]))
        elif name == "write_file":
            files[path] = _lines(str(args.get("content")))
        elif name == "edit_file" and path in files:
            old, new = str(args.get("old_string")), str(args.get("new_string"))
            files[path] = _lines("\n".join(files[path]).replace(old, new) if old else "\n".join(files[path]))
    return {path: lines[:LINES_IN_ALL] for path, lines in files.items() if lines}


def edit_forms(tool: Mapping[str, Any], files: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """For each file that was read: replace one of its lines, or a word that it holds more than once."""
    forms: list[dict[str, Any]] = []
    for path, lines in files.items():
        target = {TOOL: {"const": name_of(tool)}, "file_path": {"const": path}}
        new = {"new_string": {"type": "string"}}
        forms.append(closed({**target, "old_string": {"enum": list(lines)}, **new}))
        if words := _repeated_words(lines):
            new = {"new_string": {"type": "string", "pattern": r"^\w+$"}}
            every = {"replace_all": {"const": True}}
            forms.append(closed({**target, "old_string": {"enum": words}, **new, **every}))
    return forms


def settled(call: Call, files: Mapping[str, Sequence[str]]) -> Call:
    """A line that is replaced by nothing goes away with its line break."""
    args = call.args
    lines = files.get(str(args.get("file_path")), ())
    old = args.get("old_string")
    if call.name != "edit_file" or args.get("new_string") != "" or old not in lines:
        return call
    whole = f"\n{old}" if old == lines[-1] else f"{old}\n"
    return Call(call.name, {**args, "old_string": whole})


def _repeated_words(lines: Sequence[str]) -> list[str]:
    counts = Counter(word for line in lines for word in _WORD.findall(line))
    return [word for word, count in counts.items() if count > 1 and len(word) >= _LONG_ENOUGH_TO_RENAME]


def _finished(messages: Sequence[BaseMessage]) -> list[tuple[str, Mapping[str, Any], str]]:
    results = {
        message.tool_call_id: message.text
        for message in messages
        if isinstance(message, ToolMessage) and message.status != "error"
    }
    return [
        (call["name"], call["args"], results[call["id"]])
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
        if call["id"] in results
    ]


def _lines(text: str) -> list[str]:
    return list(dict.fromkeys(line for line in text.splitlines() if _WORD.search(line)))
