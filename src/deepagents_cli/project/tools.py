"""Understand what files of agents and commands say of tools, with the names of Claude Code and with ours."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from deepagents.mcp.names import PREFIX
from deepagents.tools import FILE_TOOLS, specs_by_name
from deepagents_cli.approval.rules import read_rule, split_plain
from deepagents_cli.project.markdown import names_in

_TODOS: Final = ("write_todos", "read_todos")
_FETCH, _SEARCH = "web_fetch", "web_search"
TOOLS: Final = frozenset({*(spec.name for spec in FILE_TOOLS), *_TODOS, _FETCH, _SEARCH})
_COMMANDS: Final = ("execute", "read_command", "write_command", "stop_command")
CHANGES: Final = frozenset({*_COMMANDS, *(spec.name for spec in FILE_TOOLS if spec.changes_files)})
_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "Read": ("read_file",),
    "Edit": ("edit_file",),
    "MultiEdit": ("edit_file",),
    "Write": ("write_file",),
    "Bash": _COMMANDS,
    "BashOutput": ("read_command",),
    "KillShell": ("stop_command",),
    "Grep": ("grep",),
    "Glob": ("glob",),
    "LS": ("ls",),
    "TodoWrite": _TODOS,
    "WebFetch": (_FETCH,),
    "WebSearch": (_SEARCH,),
    "execute": _COMMANDS,
    # Subagents do not delegate.
    "Task": (),
    "Agent": (),
    "task": (),
}
"""What Claude Code calls a tool, and ours of the same use."""
_PREFIX: Final = re.compile(r"(?P<words>.*?)(?::\*| \*)")
_RUNS: Final = ("Bash", "execute")
_EDITS: Final = ("Edit", "MultiEdit", "Write", "edit_file", "write_file")
_ASK: Final = (*_RUNS, *_EDITS, "delete", "write_command")
EDITS: Final = "edits"
"""The approval of edits in the directory that a command is used in."""


def names_of(tool: str) -> frozenset[str]:
    """Return the names by which settings mean a tool: its own, and of those whose place it takes."""
    spec = specs_by_name().get(tool)
    return frozenset({tool, *(spec.instead_of if spec else ())})


def tools_in(value: object, problems: list[str], *, gives: bool) -> set[str]:
    """Return the tools that a field names, for an agent to have or not; adds what is wrong to `problems`."""
    found: set[str] = set()
    for given in names_in(value):
        if pattern_of(given):
            continue
        name, bracket, _ = given.partition("(")
        known = _find_tools(name, given, problems)
        if bracket and known and not (gives and name in _RUNS):
            meant = (
                "gives the whole tool: each call is asked about as always" if gives else "takes it all away"
            )
            problems.append(f"{given!r} {meant}")
        found.update(known or ())
    return found


def pattern_of(given: str) -> str:
    """Return the pattern by which a file names tools of MCP servers, `""` for other tools.

    `mcp__tickets` is all of a server, as Claude Code has it.
    """
    if not given.startswith(PREFIX):
        return ""
    return given if "__" in given.removeprefix(PREFIX) or "*" in given else f"{given}__*"


def commands_in(value: object) -> tuple[str, ...]:
    """Return the commands to which `Bash(...)` narrows the tool; none where it is given whole too."""
    tools = names_in(value)
    named = [_inside(each) for each in tools if each.startswith("Bash(")]
    is_whole = "*" in tools or {*_RUNS, "Bash(*)", "Bash()"} & {*tools}
    return () if is_whole else tuple(named)


def approvals_in(value: object, problems: list[str]) -> tuple[str, ...]:
    """Return the rules by which a field approves calls in advance; `edits` is about the whole directory."""
    found: list[str] = []
    for given in names_in(value):
        name, bracket, _ = given.partition("(")
        if pattern := pattern_of(given):
            found.append(f"{'tools' if '*' in pattern else 'tool'}: {pattern}")
            continue
        if _find_tools(name, given, problems) is None or name not in _ASK:
            continue
        try:
            found.append(_approval(name, _inside(given) if bracket else None))
        except ValueError as error:
            problems.append(f"{given!r} approves nothing in advance: {error}")
    return tuple(dict.fromkeys(found))


def is_named(words: Sequence[str], command: str) -> bool:
    """Return whether the words of a command are one that a file names, or begin as it says."""
    found = _PREFIX.fullmatch(command)
    wanted = split_plain(found["words"] if found else command) or []
    return bool(wanted) and list(words[: len(wanted) if found else None]) == wanted


def _approval(name: str, inside: str | None) -> str:
    """Return a rule, as a person could keep it with "always".

    Raises:
        ValueError: for what is too much, or too little, to be approved in advance.
    """
    if name in _EDITS and inside is None:
        return EDITS
    if name not in _RUNS:
        raise ValueError("of the files, only edits in the whole directory can be")
    if inside in (None, "", "*"):
        raise ValueError("name how the commands begin, as in Bash(git diff:*)")
    found = _PREFIX.fullmatch(inside or "")
    return read_rule(f"commands: {found['words']}" if found else f"command: {inside}").key


def _find_tools(name: str, given: str, problems: list[str]) -> tuple[str, ...] | None:
    known = _NAMES.get(name, (name,) if name in TOOLS else None)
    if known is None:
        problems.append(f"there is no tool {given!r} here")
    return known


def _inside(given: str) -> str:
    return given.partition("(")[2].removesuffix(")").strip()
