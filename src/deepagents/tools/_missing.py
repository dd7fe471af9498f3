"""Say what is there instead of a path that was not found: a file of the same name, or names that are near."""

from __future__ import annotations

import time
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

from langgraph.errors import GraphBubbleUp

from deepagents._paths import CommandPaths, name, parent
from deepagents.backends import operations as ops
from deepagents.backends.handle import FileCalls
from deepagents.backends.results import GlobResult, LsResult
from deepagents.errors import BackendError, ToolFailure

_SECONDS: Final = 2.0
"""How long backends that do not bound their work may take for all of it: it is only a hint."""
SAME_NAME: Final = "There is"
_SHOWN: Final = 3
_LISTED: Final = 10
_COMPARED: Final = 1000
"""How many names are compared with the one that is missing, which takes up to 0.1 ms each."""
_NOT_IN_PATTERNS: Final = frozenset("*?[]{}!\\,")


async def describe_instead(files: FileCalls, paths: CommandPaths, path: str) -> str:
    """Return a sentence about what is there instead of a path, as far as the rules show it, or `""`."""
    if files.rights is not None and files.rights.asked:
        # A person approved of this path alone, and the rules would take it for more.
        return ""
    try:
        return await _find_instead(files, paths, path)
    except GraphBubbleUp:
        raise
    # A backend of somebody else may answer anything; the failure itself is told without a hint.
    except Exception:  # noqa: BLE001
        return ""


async def _find_instead(files: FileCalls, paths: CommandPaths, path: str) -> str:
    until = time.monotonic() + _SECONDS
    if same := await _find_same_name(files, path, until):
        return _sentence(SAME_NAME, same, paths)
    siblings = await _list(files, parent(path), until)
    # Names alone: long paths of one directory are all alike.
    names = {name(each.rstrip("/")): each for each in siblings[:_COMPARED]}
    if near := get_close_matches(name(path), names, n=_SHOWN):
        return _sentence("Near it in name:", [names[each] for each in near], paths)
    directory = parent(path) if siblings else "/"
    around = siblings or await _list(files, directory, until)
    return _sentence(f"In {paths.show(directory)!r}:", around, paths) if around else ""


def _sentence(begin: str, found: Sequence[str], paths: CommandPaths) -> str:
    more = " and more" if len(found) > _LISTED else ""
    return f"{begin} {', '.join(repr(paths.show(each)) for each in found[:_LISTED])}{more}."


async def _find_same_name(files: FileCalls, path: str, until: float) -> list[str]:
    """Find files of the same name anywhere, those first whose path ends most alike."""
    if not name(path) or not _NOT_IN_PATTERNS.isdisjoint(name(path)):
        return []
    seconds = until - time.monotonic()
    try:
        globbed: GlobResult = await files.perform(ops.Glob(name(path), seconds=seconds, hint=True))
    except (BackendError, ToolFailure):
        return []
    found = globbed.matches or []
    return sorted((each["path"] for each in found), key=lambda each: (-_common(each, path), each))[:_SHOWN]


def _common(one: str, other: str) -> int:
    """Count the components at their ends that two paths share."""
    pairs = zip(reversed(one.split("/")), reversed(other.split("/")), strict=False)
    return next((count for count, (a, b) in enumerate(pairs) if a != b), len(one))


async def _list(files: FileCalls, directory: str, until: float) -> list[str]:
    seconds = until - time.monotonic()
    if seconds <= 0:
        return []
    try:
        listed: LsResult = await files.perform(ops.Ls(directory, seconds=seconds, hint=True))
        return sorted(each["path"] for each in listed.entries or [])
    except (BackendError, ToolFailure):
        return []
