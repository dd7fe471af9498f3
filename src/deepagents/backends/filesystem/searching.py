"""Find files by name and lines by text."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from deepagents._globs import parse_glob
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
from deepagents.backends.filesystem.confined_dir import translate_os_errors
from deepagents.backends.filesystem.paths import ResolvedPath
from deepagents.backends.filesystem.reading import format_time
from deepagents.backends.results import ContextLine, FileInfo, GlobResult, GrepMatch, GrepResult
from deepagents.errors import BackendError

_PROBLEMS_SHOWN = 10
# A look at each of 100,000 files takes seconds; no model reads sizes of so many.
_MOST_DESCRIBED = 1000


def glob(start: ResolvedPath, pattern: str, seconds: float) -> GlobResult:
    """Find the files below a directory whose path matches."""
    compiled = parse_glob(pattern)
    try:
        with (
            translate_os_errors(f"'{start.shown}'", "searching"),
            start.directory() as (directory, _, allowed),
        ):
            walked = walk(directory, seconds, compiled, start.is_regular_file, allowed)
            matches = _describe_all(directory, walked.files, start)
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


def grep(start: ResolvedPath, wanted: Search) -> GrepResult:
    """Find lines in one file or in all files below a directory."""
    try:
        with translate_os_errors(f"'{start.shown}'", "searching"):
            found, is_file = _search(start, wanted)
    except BackendError as error:
        if error.code in ("file_not_found", "not_a_directory"):
            return GrepResult(matches=[])
        raise
    matches = [
        _match(hit.line, start.shown if is_file else start.below(hit.path), wanted) for hit in found.hits
    ]
    error = _describe_unread(found.unread, start, is_file)
    return GrepResult(
        error=error, matches=matches, truncated=found.truncated, code="io_error" if error else None
    )


def _describe_all(directory: Directory, paths: Sequence[str], start: ResolvedPath) -> list[FileInfo]:
    """Describe found files; a long list goes without sizes and times, which cost a look at each file."""
    if len(paths) > _MOST_DESCRIBED:
        return [{"path": start.below(path), "is_dir": False} for path in paths]
    with FilesBelow(directory) as files:
        return [_describe(files, path, start) for path in paths]


def _describe(files: FilesBelow, path: str, start: ResolvedPath) -> FileInfo:
    info = FileInfo(path=start.below(path), is_dir=False)
    with suppress(OSError):
        about = files.stat(path)
        about = start.stat(path) if stat.S_ISLNK(about.st_mode) else about
        info["size"], info["modified_at"] = about.st_size, format_time(about)
    return info


def _search(start: ResolvedPath, wanted: Search) -> tuple[Found, bool]:
    with start.root.entry(start.parts, check=start.check_link_target) as entry:
        if entry.name and stat.S_ISREG(entry.stat().st_mode):
            start.check(entry.parts)
            # By the open directory, so that the file cannot be replaced by a link after the check.
            return search_file(entry.above, entry.name, wanted), True
    with start.directory() as (directory, real, allowed):
        return search(directory, replace(wanted, allowed=allowed), find_ripgrep(), real), False


def _match(line: Line, path: str, wanted: Search) -> GrepMatch:
    match: GrepMatch = {"path": path, "line": line.number, "text": line.text}
    if wanted.query.context:
        match["context_before"] = [ContextLine(line=number, text=text) for number, text in line.before]
        match["context_after"] = [ContextLine(line=number, text=text) for number, text in line.after]
    return match


def _describe_unread(unread: Sequence[Unread], start: ResolvedPath, is_file: bool) -> str | None:
    if not unread:
        return None
    shown = [
        f"- {start.shown if is_file else start.describe_below(each.path)}: {each.reason}"
        for each in unread[:_PROBLEMS_SHOWN]
    ]
    more = len(unread) - len(shown)
    return "\n".join(
        ["Some files could not be fully searched:", *shown, *([f"- and {more} more"] if more else [])]
    )
