"""Hold an approved change to the file as it was when the person was asked."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from langchain_core.messages import ToolMessage

from deepagents.backends.handle import FileCalls
from deepagents.errors import ToolFailure
from deepagents.middleware.approval.path_rules import Call, Specs, find_named_path
from deepagents.tools._tool import failure_message

_ABSENT = "absent"


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
