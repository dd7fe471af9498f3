"""Join the answers of several routes into one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, TypeVar

from deepagents.backends.protocol import cap_matches
from deepagents.backends.results import (
    FileInfo,
    GlobResult,
    GlobTruncationReason,
    GrepMatch,
    GrepResult,
    LsResult,
)
from deepagents.errors import ErrorCode

Found = TypeVar("Found", FileInfo, GrepMatch)


def join_listing(path: str, served: LsResult, below: Sequence[str]) -> LsResult:
    """Join the entries of a directory with the directories that lead to the routes below it."""
    base = path.rstrip("/") + "/"
    leading = {base + prefix[len(base) :].partition("/")[0] for prefix in below}
    entries = {entry["path"].rstrip("/"): _with_slash(entry) for entry in served.entries or ()}
    for each in leading:
        about = entries.get(each, FileInfo(path=f"{each}/"))
        if not about.get("is_dir") or each in below:
            about = FileInfo(path=f"{each}/", is_dir=True, size=0, modified_at="")
        entries[each] = about
    # A directory that only leads to routes is unknown to the backend that serves it.
    is_there = bool(leading) and served.code == "file_not_found"
    return LsResult(
        error=None if is_there else served.error,
        entries=None if served.entries is None and not leading else _by_path(entries.values()),
        code=None if is_there else served.code,
    )


def join_files(answers: Mapping[str, GlobResult]) -> GlobResult:
    """Join found files, by path."""
    results = list(answers.values())
    error, code = _errors(answers)
    reasons: list[GlobTruncationReason] = [
        each.truncation_reason for each in results if each.truncation_reason
    ]
    return GlobResult(
        error=error,
        matches=None if _nothing(results) else _by_path(m for each in results for m in each.matches or ()),
        truncated=any(each.truncated for each in results),
        truncation_reason="unreadable" if "unreadable" in reasons else next(iter(reasons), None),
        code=code,
    )


def join_lines(answers: Mapping[str, GrepResult], max_count: int | None) -> GrepResult:
    """Join found lines, by path and number, and keep the first of them."""
    results = list(answers.values())
    error, code = _errors(answers)
    lines = [line for each in results for line in each.matches or ()]
    lines.sort(key=itemgetter("path", "line"))
    found = GrepResult(
        error=error,
        matches=None if _nothing(results) else lines,
        truncated=any(each.truncated for each in results),
        code=code,
    )
    return cap_matches(found, max_count)


def move_paths(path_of: Callable[[str], str], found: Iterable[Found]) -> list[Found]:
    """Return what a route found, by its paths in the tree."""
    # A backend may hand out the objects that it keeps, so they are not changed.
    moved = [each.copy() for each in found]
    for each in moved:
        each["path"] = path_of(each["path"])
    return moved


def _nothing(results: Sequence[Any]) -> bool:
    return bool(results) and all(each.matches is None for each in results)


def _errors(answers: Mapping[str, GlobResult | GrepResult]) -> tuple[str | None, ErrorCode | None]:
    failed = {root: each for root, each in answers.items() if each.error}
    if not failed:
        return None, None
    code = next(iter(failed.values())).code or "io_error"
    if len(answers) == 1:
        return next(iter(failed.values())).error, code
    return "\n".join(f"{root}: {each.error}" for root, each in failed.items()), code


def _by_path(entries: Iterable[FileInfo]) -> list[FileInfo]:
    return sorted(entries, key=itemgetter("path"))


def _with_slash(entry: FileInfo) -> FileInfo:
    path = entry["path"]
    return {**entry, "path": f"{path}/"} if entry.get("is_dir") and path[-1:] != "/" else entry
