"""Find which lines of which files the model has been shown, as far as the conversation tells. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from deepagents.middleware import is_from_person
from deepagents_local.signatures import (
    TOOL,
    Call,
    call_form,
    can_stand_below,
    closed,
    form_with_text,
    name_of,
)

LINES_IN_ALL = 400
SMALL_IN_LINES = 20
SMALL_IN_CHARACTERS = 1600

_NUMBERED = re.compile(r"^ *\d+\t(.*)$", re.MULTILINE)
_FILE_NAME = re.compile(r"(?<![\w/.-])[\w./-]*\w\.[A-Za-z]\w{0,9}\b")
_HEADING = re.compile(r"(/.*):")
_MATCH = re.compile(r" +\d+: (.*)")
_WORD = re.compile(r"\w+")
_LONG_ENOUGH_TO_RENAME = 4


def find_shown_lines(messages: Sequence[BaseMessage]) -> dict[str, list[str]]:
    """The lines of each file that were read or found, kept up with the edits made since."""
    files: dict[str, list[str]] = {}
    for name, args, result in _find_finished(messages):
        for path, text in _news(name, args, result, files).items():
            files[path] = _lines(text)
    return {path: lines[:LINES_IN_ALL] for path, lines in files.items() if lines}


def find_small_files(messages: Sequence[BaseMessage]) -> dict[str, str]:
    """The text of each file that was read whole and is small enough to be written anew."""
    files: dict[str, str] = {}
    for name, args, result in _find_finished(messages):
        path = str(args.get("file_path"))
        if name == "read_file" and (text := _find_whole(result)):
            files[path] = text
        elif name == "write_file":
            files[path] = str(args.get("content")).rstrip("\n")
        elif name == "edit_file" and path in files:
            times = -1 if args.get("replace_all") else 1
            files[path] = files[path].replace(str(args.get("old_string")), str(args.get("new_string")), times)
    return {path: text for path, text in files.items() if _is_small(text)}


def _find_whole(result: str) -> str:
    """The text of a file, if the result shows all of it and nothing else."""
    lines = [_NUMBERED.fullmatch(line) for line in result.split("\n")]
    whole = result.lstrip().startswith("1\t") and all(lines)
    return "\n".join(line[1] for line in lines if line) if whole else ""


def _is_small(text: str) -> bool:
    few = text.count("\n") < SMALL_IN_LINES and len(text) <= SMALL_IN_CHARACTERS
    return bool(text) and few and can_stand_below(text)


def _news(
    name: str, args: Mapping[str, Any], result: str, files: Mapping[str, Sequence[str]]
) -> Mapping[str, str]:
    path = str(args.get("file_path"))
    before = "\n".join(files.get(path, ()))
    match name:
        case "read_file":
            return {path: "\n".join([before, *_NUMBERED.findall(result)])}
        case "grep":
            return {
                found: "\n".join([*files.get(found, ()), text])
                for found, text in _read_matches(result).items()
            }
        case "write_file":
            return {path: str(args.get("content"))}
        case "edit_file" if old := str(args.get("old_string") or ""):
            return {path: before.replace(old, str(args.get("new_string")))}
        case _:
            return {}


def _read_matches(result: str) -> dict[str, str]:
    found: dict[str, str] = {}
    path = ""
    for line in result.splitlines():
        if heading := _HEADING.fullmatch(line):
            path = heading[1]
        elif path and (match := _MATCH.fullmatch(line)):
            found[path] = f"{found.get(path, '')}\n{match[1]}"
    return found


def edit_forms(tool: Mapping[str, Any], messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """For each file that was read: write it anew if it is small, else replace a line, or all of a word of the
    request that it holds more than once."""
    files, small = find_shown_lines(messages), find_small_files(messages)
    asked = set(_WORD.findall(_find_request(messages)))
    forms: list[dict[str, Any]] = [form_with_text(tool, list(small))] if small else []
    for path, lines in files.items():
        if path in small:
            continue
        target = {TOOL: {"const": name_of(tool)}, "file_path": {"const": path}}
        new = {"new_string": {"type": "string"}}
        forms.append(closed({**target, "old_string": {"enum": list(lines)}, **new}))
        if words := [word for word in _find_repeated_words(lines) if word in asked]:
            new = {"new_string": {"type": "string", "pattern": r"^\w+$"}}
            # Said first, so that the model knows what it begins.
            every = {"replace_all": {"const": True}}
            forms.append(closed({**target, **every, "old_string": {"enum": words}, **new}))
    return forms


def write_forms(tool: Mapping[str, Any], messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """Where the request names files, write only one of those, and only after a look that did not find it."""
    named = _find_named_files(messages)
    if not named:
        return [call_form(tool)]
    done = _find_finished(messages)
    known = "\n".join(f"{args.get('file_path', '')}\n{result}" for _, args, result in done)
    looked = any(name in ("ls", "glob", "read_file") for name, _, _ in done)
    missed = "\n".join(message.text for message in messages if _is_failure(message))
    fresh = [
        path for path in named if path.lstrip("/") not in known and (looked or path.lstrip("/") in missed)
    ]
    if not fresh:
        return []
    return [
        closed({TOOL: {"const": name_of(tool)}, "file_path": {"enum": fresh}, "content": {"type": "string"}})
    ]


def complete_edit(call: Call, files: Mapping[str, Sequence[str]], small: Mapping[str, str]) -> Call:
    """Say what is replaced: all of a small file, or a line, with its line break if nothing comes instead."""
    args = call.args
    if call.name == "edit_file" and "old_string" not in args:
        path = str(args.get("file_path"))
        return Call(call.name, {"file_path": path, "old_string": small.get(path, ""), **args})
    lines = files.get(str(args.get("file_path")), ())
    old = args.get("old_string")
    if call.name != "edit_file" or args.get("new_string") != "" or old not in lines:
        return call
    whole = f"\n{old}" if old == lines[-1] else f"{old}\n"
    return Call(call.name, {**args, "old_string": whole})


def _find_repeated_words(lines: Sequence[str]) -> list[str]:
    counts = Counter(word for line in lines for word in _WORD.findall(line))
    return [word for word, count in counts.items() if count > 1 and len(word) >= _LONG_ENOUGH_TO_RENAME]


def _is_failure(message: BaseMessage) -> bool:
    return isinstance(message, ToolMessage) and message.status == "error"


def _find_named_files(messages: Sequence[BaseMessage]) -> list[str]:
    return list(
        dict.fromkeys(f"/{name.lstrip('./')}" for name in _FILE_NAME.findall(_find_request(messages)))
    )


def _find_request(messages: Sequence[BaseMessage]) -> str:
    asked = [message.text for message in messages if is_from_person(message)]
    return asked[-1] if asked else ""


def _find_finished(messages: Sequence[BaseMessage]) -> list[tuple[str, Mapping[str, Any], str]]:
    results = {
        message.tool_call_id: message.text
        for message in messages
        if isinstance(message, ToolMessage) and not _is_failure(message)
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
