"""Decide which calls of file tools wait because of rules about paths, where paths lead, and what changed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

from langchain_core.messages import ToolMessage

from deepagents.backends.handle import FileCalls
from deepagents.errors import ToolFailure
from deepagents.permissions import Rules
from deepagents.tools import ToolSpec
from deepagents.tools._asked import ASKED
from deepagents.tools._tool import failure_message

LINKS: Final = "file_links"
"""State key: for each call of the last turn, the path that it names and where that led."""
SEEN: Final = "versions_seen"
"""State key: by path, what the calls of the last turn would change, as it was when a person was asked."""
_ABSENT: Final = "absent"

Call: TypeAlias = Mapping[str, Any]
Specs: TypeAlias = Mapping[str, ToolSpec]


def waits(rules: Rules, call: Call, state: Any, specs: Specs, *, binds_commands: bool = False) -> bool:
    """Return whether a call waits for a person; the same answer each time for the same state."""
    spec = specs.get(call["name"])
    if binds_commands and spec is not None and spec.effect == "run":
        return True
    if spec is not None and spec.find_question and spec.find_question(call["args"]):
        return True
    if spec is None or spec.operation is None:
        return False
    links = links_of(state, call.get("id"))
    found = [(each, path) for each, args in spec.parts(call["args"]) if (path := each.path_in(args))]
    paths = [(each, led) for each, path in found for led in {path: None, links.get(path, path): None}]
    # The tool refuses a denied call anyway, so a question about it would be in vain.
    if any(rules.decide(each.operation or "read", path) == "deny" for each, path in paths):
        return False
    return any(_waits_at(rules, each, path) for each, path in paths)


def _waits_at(rules: Rules, spec: ToolSpec, path: str) -> bool:
    if spec.effect == "search":
        return rules.waits("read", path)
    if rules.decide(spec.operation or "read", path) == "interrupt":
        return True
    return spec.effect == "delete" and rules.waiting_below("write", path) is not None


def links_of(state: Any, call_id: str | None) -> Mapping[str, str]:
    """Return where the paths that a call named led when it was made, for those that led elsewhere."""
    links = cast("Mapping[str, Any]", state).get(LINKS) if isinstance(state, Mapping) else None
    found = cast("Mapping[str, Sequence[str]]", links or {}).get(call_id or "", ())
    return dict(zip(found[::2], found[1::2], strict=True))


def was_asked(state: Any, call_id: str | None) -> bool | None:
    """Return whether a person was asked about a call; `None` when no person can be asked."""
    asked = cast("Mapping[str, Any]", state).get(ASKED) if isinstance(state, Mapping) else None
    return None if asked is None else call_id in asked


def find_named_paths(call: Call, specs: Specs) -> Sequence[str]:
    """Return the paths that a call of a file tool names."""
    spec = specs.get(call["name"])
    return spec.paths_in(call["args"]) if spec else ()


async def find_links(files: FileCalls, calls: Sequence[Call], specs: Specs) -> dict[str, list[str]]:
    """Find where the paths that calls name lead, by the call's id, for those that lead elsewhere.

    Of each such path, the list has the path itself and the one that it leads to.
    """
    found: dict[str, list[str]] = {}
    for call in calls:
        spec = specs.get(call["name"])
        for part, args in spec.parts(call["args"]) if spec and call["id"] else ():
            path = part.path_in(args)
            if path is not None and (real := await _resolve(files, part, path)) != path:
                found.setdefault(call["id"], []).extend((path, real))
    return found


async def _resolve(files: FileCalls, spec: ToolSpec, path: str) -> str:
    try:
        # A deletion removes a link itself, not what it leads to.
        return await files.resolve(path, entry=spec.effect == "delete")
    except ToolFailure:
        return path


async def note_versions(files: FileCalls, calls: Sequence[Call], specs: Specs) -> dict[str, str]:
    """Return by path what calls would change, as it is now."""
    found: dict[str, str] = {}
    for path in dict.fromkeys(path for call in calls for path in _find_changed_paths(call, specs)):
        if (version := await _version(files, path)) is not None:
            found[path] = version
    return found


async def refuse_stale(
    files: FileCalls, call: Call, specs: Specs, seen: Mapping[str, str]
) -> ToolMessage | None:
    """Answer a call whose file is not as the person saw it; `None` where it may run."""
    for path in _find_changed_paths(call, specs):
        if path in seen and seen[path] != await _version(files, path):
            text = (
                f"'{path}' changed while a person was asked about this call, so nothing was done. Look at it "
                "again, then make the call that fits it now."
            )
            return failure_message(call["name"], call["id"] or "", "stale_version", text)
    return None


def _find_changed_paths(call: Call, specs: Specs) -> Sequence[str]:
    spec = specs.get(call["name"])
    return spec.paths_in(call["args"]) if spec is not None and spec.changes_files else ()


async def _version(files: FileCalls, path: str) -> str | None:
    """Return a text that differs when the file or directory does; `None` where none can be made."""
    try:
        version = (await files.read(path, 0, 1)).version
        return version or _digest(await files.download(path))
    except ToolFailure as failure:
        if failure.code not in ("file_not_found", "is_directory"):
            return None
        absent = failure.code == "file_not_found"
    try:
        # A directory has no version of its own, so what lies below it stands for one.
        below = (await files.glob("**", path)).matches or []
    except ToolFailure:
        return _ABSENT if absent else None
    listed = sorted((each["path"], each.get("size"), each.get("modified_at")) for each in below)
    return _digest(repr(listed).encode("utf-8", "surrogatepass")) if listed or not absent else _ABSENT


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
