"""Show what a thread has changed in files: as a diff, and as counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from deepagents.undo import Change
from deepagents_cli.approval.guarded import kind_of
from deepagents_cli.diffs import name_in, text_diff
from deepagents_cli.session.display.lines import count_of
from deepagents_cli.text import clean, one_line

_LARGEST = 500_000
"""Bytes of a file: more takes a comparison too long, and shows nobody anything."""
_MOST_LINES = 5_000
"""Of all files together."""
_MOST_COMPARED = 500
"""Files whose lines are counted: to compare more takes longer than a person waits for a list."""


def show_diff(changes: Sequence[Change], directory: str) -> list[str]:
    """Compare the files then and now, each line cleaned."""
    lines: list[str] = []
    for at, change in enumerate(changes):
        lines += [clean(line) for line in _compare(change, directory)]
        if len(lines) > _MOST_LINES:
            left = len(changes) - at - 1
            return [*lines[:_MOST_LINES], f"... more lines, and {count_of(left, 'more file')}"]
    return lines


def count_changes(changes: Iterable[Change]) -> str:
    """Say how many files differ, and by how many lines."""
    files = [each for each in changes if each.kind != "directory"]
    if not files:
        return "no files"
    number = count_of(len(files), "file")
    if len(files) > _MOST_COMPARED:
        return number
    bodies = [_compare(each, "")[2:] for each in files]
    added = sum(line.startswith("+") for lines in bodies for line in lines)
    removed = sum(line.startswith("-") for lines in bodies for line in lines)
    return f"{number} +{added} -{removed}"


def _compare(change: Change, directory: str) -> list[str]:
    path = str(change.path)
    name = name_in(path, directory)
    before, after = change.before_bytes, change.after_bytes
    if reason := _find_reason(change, before, after):
        return [f"{one_line(name)}: {reason}"]
    return text_diff(_decode(before), _decode(after), name)


def _find_reason(change: Change, before: bytes | None, after: bytes | None) -> str:
    """Say why there is no diff of a change, and what it is then."""
    did = "changed" if change.was_there and change.is_there else "removed" if change.was_there else "made"
    if change.kind != "file":
        return f"{change.kind}, {did}"
    if kind_of(str(change.path), writes=False) == "secrets":
        return f"looks like a secret, {did}"
    if (change.was_there and before is None) or (change.is_there and after is None):
        return f"too large to be kept, or no ordinary file, {did}"
    if before == after:
        return "its mode was changed"
    held = (before or b"", after or b"")
    if max(map(len, held)) > _LARGEST:
        return f"too large to be shown, {did}"
    return f"no text, {did}" if any(b"\0" in each for each in held) else ""


def _decode(content: bytes | None) -> str | None:
    return None if content is None else content.decode("utf-8", "backslashreplace")
