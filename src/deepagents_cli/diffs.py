"""What a call would change, as a unified diff; pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import unified_diff
from typing import Any, TypeAlias

Read: TypeAlias = Callable[[str], str | None]
"""Returns the text of a file, or `None` where there is none."""


def proposed_diff(name: str, args: Mapping[str, Any], read: Read) -> list[str]:
    """Return the diff that `write_file` or `edit_file` would make; nothing for other tools."""
    match name, args:
        case "write_file", {"file_path": str(path), "content": str(new)}:
            return text_diff(read(path), new, path)
        case "edit_file", {"file_path": str(path), "old_string": str(old), "new_string": str(new)}:
            return _edit_diff(read(path), path, old, new, everywhere=bool(args.get("replace_all")))
        case _:
            return []


def text_diff(before: str | None, after: str | None, path: str) -> list[str]:
    """Compare two texts of one file; `None` is a file that is not there."""
    shown = path.lstrip("/").replace("\n", "\\n")
    lines = unified_diff(
        (before or "").splitlines(),
        (after or "").splitlines(),
        "/dev/null" if before is None else f"a/{shown}",
        "/dev/null" if after is None else f"b/{shown}",
        lineterm="",
    )
    return list(lines)


def _edit_diff(before: str | None, path: str, old: str, new: str, *, everywhere: bool) -> list[str]:
    if before is None or old not in before:
        return text_diff(old, new, path)
    return text_diff(before, before.replace(old, new, -1 if everywhere else 1), path)
