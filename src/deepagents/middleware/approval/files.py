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
from deepagents.tools._tool import failure_message

LINKS: Final = "file_links"
"""State key: for each call of the last turn, the path that it names and where that led."""
ASKED: Final = "file_calls_asked"
"""State key: the ids of the calls of the last turn that a person was asked about."""
SEEN: Final = "versions_seen"
"""State key: by path, what the calls of the last turn would change, as it was when a person was asked."""
_ABSENT: Final = "absent"

Call: TypeAlias = Mapping[str, Any]
Specs: TypeAlias = Mapping[str, ToolSpec]


def waits(rules: Rules, call: Call, state: Any, specs: Specs, *, binds_commands: bool = False) -> bool:
    """Return whether a call waits for a person; the same answer each time for the same state."""
    spec, path = specs.get(call["name"]), find_named_path(call, specs)
    if binds_commands and spec is not None and spec.effect == "run":
        return True
    if spec is None or spec.operation is None or path is None:
        return False
    named, leads_to = link_of(state, call.get("id"))
    paths = [path, leads_to] if leads_to is not None and named == path else [path]
    # The tool refuses a denied call anyway, so a question about it would be in vain.
    if any(rules.decide(spec.operation, each) == "deny" for each in paths):
        return False
    return any(_waits_at(rules, spec, each) for each in paths)


def _waits_at(rules: Rules, spec: ToolSpec, path: str) -> bool:
    if spec.effect == "search":
        return rules.waits("read", path)
    if rules.decide(spec.operation or "read", path) == "interrupt":
        return True
    return spec.effect == "delete" and rules.waiting_below("write", path) is not None


def link_of(state: Any, call_id: str | None) -> tuple[str | None, str | None]:
    """Return the path that a call named when it was made, and where that led then."""
    links = cast("Mapping[str, Any]", state).get(LINKS) if isinstance(state, Mapping) else None
    found = cast("Mapping[str, Sequence[str]]", links or {}).get(call_id or "")
    return (found[0], found[1]) if found else (None, None)


def was_asked(state: Any, call_id: str | None) -> bool | None:
    """Return whether a person was asked about a call; `None` when no person can be asked."""
    asked = cast("Mapping[str, Any]", state).get(ASKED) if isinstance(state, Mapping) else None
    return None if asked is None else call_id in asked


def find_named_path(call: Call, specs: Specs) -> str | None:
    """Return the path that a call of a file tool names; `None` where it names none."""
    spec = specs.get(call["name"])
    return None if spec is None else spec.path_in(call["args"])


async def find_links(files: FileCalls, calls: Sequence[Call], specs: Specs) -> dict[str, list[str]]:
    """Find where the paths that calls name lead, by the call's id, for those that lead elsewhere."""
    found: dict[str, list[str]] = {}
    for call in calls:
        path = find_named_path(call, specs)
        if not call["id"] or path is None:
            continue
        real = await _resolve(files, specs[call["name"]], path)
        if real != path:
            found[call["id"]] = [path, real]
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
    for path in dict.fromkeys(_find_changed_path(call, specs) for call in calls):
        if path is not None and (version := await _version(files, path)) is not None:
            found[path] = version
    return found


async def refuse_stale(
    files: FileCalls, call: Call, specs: Specs, seen: Mapping[str, str]
) -> ToolMessage | None:
    """Answer a call whose file is not as the person saw it; `None` where it may run."""
    path = _find_changed_path(call, specs)
    if path is None or path not in seen or seen[path] == await _version(files, path):
        return None
    text = (
        f"'{path}' changed while a person was asked about this call, so nothing was done. Look at it again, "
        "then make the call that fits it now."
    )
    return failure_message(call["name"], call["id"] or "", "stale_version", text)


def _find_changed_path(call: Call, specs: Specs) -> str | None:
    spec = specs.get(call["name"])
    return find_named_path(call, specs) if spec is not None and spec.changes_files else None


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
