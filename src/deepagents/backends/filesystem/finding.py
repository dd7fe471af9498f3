"""Find files by name and lines by text."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from deepagents._globs import checked_glob
from deepagents.backends._directory import Directory, FilesBelow
from deepagents.backends._search import (
    Found,
    Line,
    Search,
    Unread,
    find_ripgrep,
    search,
    search_file,
    walk,
)
from deepagents.backends.filesystem.faults import told
from deepagents.backends.filesystem.reading import moment
from deepagents.backends.filesystem.targets import Target, printable
from deepagents.backends.results import ContextLine, FileInfo, GlobResult, GrepMatch, GrepResult
from deepagents.errors import BackendError

_PROBLEMS_SHOWN = 10
_MOST_DESCRIBED = 1000


def glob(target: Target, pattern: str, seconds: float) -> GlobResult:
    """Find the files below a directory whose path matches."""
    compiled = checked_glob(pattern)
    try:
        with told(f"'{target.shown}'", "searching"), target.directory() as (directory, _, inside):
            walked = walk(directory, seconds, compiled, target.is_regular_file, inside)
            matches = _described(directory, walked.files, target)
    except BackendError as error:
        if error.code in ("file_not_found", "not_a_directory"):
            return GlobResult(matches=[])
        raise
    found = GlobResult(matches=matches)
    if walked.timed_out:
        found.truncated, found.truncation_reason = True, "budget"
    elif walked.unread:
        found.truncated, found.truncation_reason = True, "unreadable"
    return found


def grep(target: Target, wanted: Search) -> GrepResult:
    """Find lines in one file or in all files below a directory."""
    try:
        with told(f"'{target.shown}'", "searching"):
            found, below = _search(target, wanted)
    except BackendError as error:
        if error.code in ("file_not_found", "not_a_directory"):
            return GrepResult(matches=[])
        raise
    above = target.below("")
    matches = [
        _match(hit.line, above + printable(hit.path) if below else target.shown, wanted) for hit in found.hits
    ]
    said = _problems(found.unread, target, below)
    return GrepResult(
        error=said, matches=matches, truncated=found.truncated, code="io_error" if said else None
    )


def _described(directory: Directory, paths: Sequence[str], target: Target) -> list[FileInfo]:
    """Describe found files; a long list goes without sizes and times, which cost a look at each file."""
    if len(paths) > _MOST_DESCRIBED:
        above = target.below("")
        return [
            {"path": above + (path if path.isascii() else printable(path)), "is_dir": False} for path in paths
        ]
    with FilesBelow(directory) as files:
        return [_describe(files, path, target) for path in paths]


def _describe(files: FilesBelow, path: str, target: Target) -> FileInfo:
    info = FileInfo(path=target.below(path), is_dir=False)
    with suppress(OSError):
        about = files.stat(path)
        about = target.stat(path) if stat.S_ISLNK(about.st_mode) else about
        info["size"], info["modified_at"] = about.st_size, moment(about)
    return info


def _search(target: Target, wanted: Search) -> tuple[Found, bool]:
    with target.tree.place(target.parts, check=target.check_led) as place:
        if place.name and stat.S_ISREG(place.stat().st_mode):
            target.check(place)
            return search_file(place.above, place.name, wanted), False
    with target.directory() as (directory, real, inside):
        return search(directory, replace(wanted, allowed=inside), find_ripgrep(), real), True


def _match(line: Line, path: str, wanted: Search) -> GrepMatch:
    match: GrepMatch = {"path": path, "line": line.number, "text": line.text}
    if wanted.query.context:
        match["context_before"] = [ContextLine(line=number, text=text) for number, text in line.before]
        match["context_after"] = [ContextLine(line=number, text=text) for number, text in line.after]
    return match


def _problems(unread: Sequence[Unread], target: Target, below: bool) -> str | None:
    if not unread:
        return None
    shown = [
        f"- {target.below(each.path) if below else target.shown}: {each.reason}"
        for each in unread[:_PROBLEMS_SHOWN]
    ]
    more = len(unread) - len(shown)
    return "\n".join(
        ["Some files could not be fully searched:", *shown, *([f"- and {more} more"] if more else [])]
    )
