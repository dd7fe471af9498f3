"""Join the answers of several routes into one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from deepagents._paths import is_within
from deepagents.backends.composite.routes import Route
from deepagents.backends.protocol import cap_matches
from deepagents.backends.results import FileInfo, GlobResult, GrepMatch, GrepResult, LsResult
from deepagents.errors import ErrorCode

Result = TypeVar("Result", GlobResult, GrepResult)
Reason = Literal["budget", "unreadable", "transport"]
Found = TypeVar("Found", FileInfo, GrepMatch)


@dataclass(frozen=True, slots=True)
class RouteAnswer(Generic[Result]):
    """The answer of one route, with the paths of the tree."""

    route: Route
    result: Result


def join_listing(path: str, served: LsResult, below: Sequence[Route]) -> LsResult:
    """Join the entries of a directory with the directories that lead to the routes below it."""
    base = path.rstrip("/") + "/"
    leading = {base + route.prefix[len(base) :].partition("/")[0] for route in below}
    entries = {entry["path"].rstrip("/"): _with_slash(entry) for entry in served.entries or ()}
    for each in leading:
        about = entries.get(each, FileInfo(path=f"{each}/"))
        if not about.get("is_dir") or each in {route.prefix for route in below}:
            about = FileInfo(path=f"{each}/", is_dir=True, size=0, modified_at="")
        entries[each] = about
    # A directory that only leads to routes is unknown to the backend that serves it.
    is_there = bool(leading) and served.code == "file_not_found"
    return LsResult(
        error=None if is_there else served.error,
        entries=None if served.entries is None and not leading else _by_path(entries.values()),
        code=None if is_there else served.code,
    )


def join_files(answers: Sequence[RouteAnswer[GlobResult]]) -> GlobResult:
    """Join found files, by path."""
    results = [each.result for each in answers]
    error, code = _errors(answers)
    reasons: list[Reason] = [each.truncation_reason for each in results if each.truncation_reason]
    return GlobResult(
        error=error,
        matches=None if _nothing(results) else _by_path(m for each in results for m in each.matches or ()),
        truncated=any(each.truncated for each in results),
        truncation_reason="unreadable" if "unreadable" in reasons else next(iter(reasons), None),
        code=code,
    )


def join_lines(answers: Sequence[RouteAnswer[GrepResult]], max_count: int | None) -> GrepResult:
    """Join found lines, by path and number, and keep the first of them."""
    results = [each.result for each in answers]
    error, code = _errors(answers)
    lines = [line for each in results for line in each.matches or ()]
    lines.sort(key=_path_and_line)
    found = GrepResult(
        error=error,
        matches=None if _nothing(results) else lines,
        truncated=any(each.truncated for each in results),
        code=code,
    )
    return cap_matches(found, max_count)


def move_paths(route: Route, found: Iterable[Found]) -> list[Found]:
    """Return what a route found, by its paths in the tree."""
    # A backend may hand out the objects that it keeps, so they are not changed.
    moved = [each.copy() for each in found]
    for each in moved:
        each["path"] = route.path(each["path"])
    return moved


def is_hidden(path: str, below: Iterable[Route]) -> bool:
    """Return whether a path of a backend cannot be seen, because another route serves it."""
    return any(is_within(path, route.prefix) for route in below)


def with_context(line: GrepMatch) -> GrepMatch:
    """Give a line the keys that all lines have when context was asked for."""
    return {"context_before": [], "context_after": [], **line}


def _nothing(results: Sequence[Any]) -> bool:
    return bool(results) and all(each.matches is None for each in results)


def _errors(answers: Sequence[RouteAnswer[Any]]) -> tuple[str | None, ErrorCode | None]:
    failed = [each for each in answers if each.result.error]
    if not failed:
        return None, None
    code = failed[0].result.code or "io_error"
    if len(answers) == 1:
        return failed[0].result.error, code
    return "\n".join(f"{each.route.root}: {each.result.error}" for each in failed), code


def _by_path(entries: Iterable[FileInfo]) -> list[FileInfo]:
    return sorted(entries, key=lambda entry: entry["path"])


def _path_and_line(line: GrepMatch) -> tuple[str, int]:
    return line["path"], line["line"]


def _with_slash(entry: FileInfo) -> FileInfo:
    path = entry["path"]
    return {**entry, "path": f"{path}/"} if entry.get("is_dir") and path[-1:] != "/" else entry
