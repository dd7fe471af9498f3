"""Read hooks of plugins, as Claude Code writes them: which of them run here, and what each is given."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast

from deepagents_cli.project.project import Plugin, read_text
from deepagents_cli.project.settings import Chosen, Hook
from deepagents_cli.project.tools import tools_in
from deepagents_cli.text import one_line, reason_of

_FILE: Final = "hooks/hooks.json"
_LONGEST: Final = 1 << 16
"""Bytes."""
_EVENTS: Final = {"PreToolUse": "before_tool", "PostToolUse": "after_tool", "Stop": "end_of_turn"}
_ALL_TOOLS: Final = ("", "*", ".*")
_CALLED: Final = {
    "read_file": "Read", "edit_file": "Edit", "write_file": "Write", "execute": "Bash", "grep": "Grep",
    "glob": "Glob", "ls": "LS", "write_todos": "TodoWrite", "task": "Task", "edit_lines": "Edit",
    "apply_patch": "Edit",
}  # fmt: skip
"""What Claude Code calls our tools."""


def read_hooks(plugin: Plugin) -> Chosen:
    """Read the hooks of a plugin as settings; whatever cannot be used is named."""
    path = plugin.path / _FILE
    problems: list[str] = []
    found: dict[str, tuple[Hook, ...]] = {}
    try:
        read: Any = json.loads(read_text(path, plugin.place, _LONGEST))
        for hook in _hooks_in(_object(_object(read).get("hooks")), plugin, problems):
            key = f"hooks.{hook.event}"
            found[key] = (*found.get(key, ()), hook)
    except FileNotFoundError:
        pass
    except (OSError, ValueError, RecursionError) as error:
        return Chosen(path, notices=(one_line(f"{path} is not used: {reason_of(error)}"),))
    return Chosen(path, found, tuple(one_line(f"{path}: {each}") for each in problems))


def as_claude_code(event: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a hook is given, by the names of Claude Code."""
    given = {"hook_event_name": next(name for name, ours in _EVENTS.items() if ours == event)}
    given["cwd"] = facts["directory"]
    if tool := facts.get("tool"):
        given |= {"tool_name": _CALLED.get(tool, tool), "tool_input": facts["arguments"]}
    if "result" in facts:
        given["tool_response"] = facts["result"]
    return given


def _hooks_in(events: Mapping[str, Any], plugin: Plugin, problems: list[str]) -> Iterator[Hook]:
    for name, groups in events.items():
        event = _EVENTS.get(name)
        if event is None:
            problems.append(f"there is no event {name!r} here; hooks run at {', '.join(_EVENTS)}")
            continue
        for group in _objects(groups, problems):
            yield from _hooks_of(group, event, plugin, problems)


def _hooks_of(group: Mapping[str, Any], event: str, plugin: Plugin, problems: list[str]) -> Iterator[Hook]:
    tools = () if event == "end_of_turn" else _tools_of(group.get("matcher", ""), problems)
    if tools is not None:
        for each in _objects(group.get("hooks"), problems):
            yield from _hook(each, event, tools, plugin, problems)


def _hook(
    table: Mapping[str, Any], event: str, tools: tuple[str, ...], plugin: Plugin, problems: list[str]
) -> Iterator[Hook]:
    command = table.get("command")
    if table.get("type", "command") != "command" or not isinstance(command, str) or not command.strip():
        problems.append(f"{event}: a hook is a command here, of type 'command'")
        return
    yield Hook(event, plugin.fill(command), tools, plugin.name)


def _tools_of(matcher: object, problems: list[str]) -> tuple[str, ...] | None:
    """Return the tools that a matcher names, none for all of them; `None` where no such tool is here."""
    if matcher in _ALL_TOOLS:
        return ()
    # No expression: a project could write one that takes for ever.
    named = [each.strip() for each in matcher.split("|")] if isinstance(matcher, str) else [repr(matcher)]
    return tuple(sorted(tools_in(named, problems, gives=True))) or None


def _object(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("it is not an object with an object 'hooks'")
    return cast("Mapping[str, Any]", value)


def _objects(value: object, problems: list[str]) -> Iterable[Mapping[str, Any]]:
    if not isinstance(value, list):
        problems.append("write lists of objects, as Claude Code has them")
        return
    for each in cast("list[object]", value):
        if isinstance(each, dict):
            yield cast("Mapping[str, Any]", each)
        else:
            problems.append(f"{one_line(repr(each))[:60]} is not an object")
