"""Files in a mapping from path to file: list, find, search. Directories are what paths imply."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final, TypeAlias, TypedDict, cast

from deepagents._globs import GlobPattern, parse_glob
from deepagents._paths import is_within, name
from deepagents.backends._query import Query, matches_in
from deepagents.backends.filedata import (
    file_data_to_string,
    file_kind,
    file_size,
    searchable_bytes,
    with_true_encoding,
)
from deepagents.backends.protocol import Allowed
from deepagents.backends.results import (
    FileData,
    FileInfo,
    GlobResult,
    GrepMatch,
    GrepResult,
    LsResult,
)
from deepagents.errors import BackendError, ErrorCode

_Files: TypeAlias = Mapping[str, Any]
_MOST_NAMED: Final = 10
_MOST_DESCRIBED: Final = 1000


def check_all_allowed(paths: Iterable[str], path: str, allowed: Allowed | None) -> None:
    """Refuse a directory when the caller may not use any one of the files below it.

    Raises:
        BackendError: `permission_denied`.
    """
    if allowed is None or allowed.all_below(path):
        return
    if not all(map(allowed, paths)):
        raise BackendError(
            "permission_denied", f"Permission denied for '{path}': a rule forbids something below it."
        )


def file_at(files: _Files, path: str) -> FileData:
    """Return the file at a normalised path.

    Raises:
        BackendError: `file_not_found`, or `is_directory` when files lie below the path.
    """
    if path in files:
        return cast("FileData", files[path])
    raise not_found(files, path)


def not_found(paths: Iterable[str], path: str) -> BackendError:
    """Make the error for a path at which there is no file."""
    if path == "/" or any(is_within(each, path) for each in paths):
        return BackendError("is_directory", f"File '{path}' not found: it is a directory. List it with ls.")
    return BackendError("file_not_found", f"File '{path}' not found")


def list_directory(files: _Files, path: str, allowed: Allowed | None = None) -> LsResult:
    """List a directory; one that nothing lies in is empty.

    Raises:
        BackendError: `not_a_directory`.
    """
    base = path.rstrip("/") + "/"
    found: set[str] = set()
    for key in _find_allowed(files, base, allowed):
        below, slash, _ = key[len(base) :].partition("/")
        found.add(base + below + slash)
    if not found and path in files:
        raise BackendError("not_a_directory", f"Path '{path}': not_a_directory")
    entries: list[FileInfo] = []
    unread: list[str] = []
    for shown in sorted(found):
        if not shown.endswith("/"):
            entries += _describe_all((shown,), files, unread)
        elif allowed is None or allowed(shown[:-1]):
            entries.append({"path": shown, "is_dir": True, "size": 0, "modified_at": ""})
    return LsResult(entries=entries, **_as_problem(unread))


def _describe(path: str, data: FileData) -> FileInfo:
    """Return what a listing says about a file.

    Raises:
        TypeError: for content of a wrong type.
    """
    content, modified = data.get("content"), data.get("modified_at")
    if not isinstance(content, str):
        content = file_data_to_string(data)
    plain = content.isascii() and data.get("encoding") != "base64" and file_kind(path) == "text"
    return {
        "path": path,
        "is_dir": False,
        "size": len(content) if plain else file_size(with_true_encoding(path, data)),
        "modified_at": modified if isinstance(modified, str) else "",
    }


def find_files(files: _Files, pattern: str, path: str, allowed: Allowed | None = None) -> GlobResult:
    """Find files below a directory by pattern, the newest first; up to 1,000 come with their size.

    Raises:
        BackendError: `invalid_pattern`.
    """
    matches = parse_glob(pattern)
    base = path.rstrip("/") + "/"
    start = len(base)
    unread: list[str] = []
    keys = sorted([key for key in _find_allowed(files, base, allowed) if matches(key[start:])])
    described = _describe_all if len(keys) <= _MOST_DESCRIBED else _describe_without_sizes
    found = described(keys, files, unread)
    found.sort(key=itemgetter("modified_at"), reverse=True)
    return GlobResult(matches=found, **_as_problem(unread))


def _describe_all(keys: Iterable[str], files: _Files, unread: list[str]) -> list[FileInfo]:
    found: list[FileInfo] = []
    for key in keys:
        try:
            found.append(_describe(key, files[key]))
        except TypeError as error:
            unread.append(f"- {key}: {error}")
    return found


def _describe_without_sizes(keys: Iterable[str], files: _Files, unread: list[str]) -> list[FileInfo]:
    """Describe many files without their sizes, which cost a look at each one's content."""
    found: list[FileInfo] = []
    for key in keys:
        data = files[key]
        when = data.get("modified_at")
        if isinstance(data.get("content"), str) and isinstance(when, str):
            found.append({"path": key, "is_dir": False, "modified_at": when})
        else:
            found += _describe_all((key,), files, unread)
    return found


def _find_allowed(files: _Files, base: str, allowed: Allowed | None) -> Iterable[str]:
    """Return what lies below a directory, given with a slash at its end, and is allowed."""
    below = [key for key in files if key.startswith(base)]
    if allowed is None or allowed.all_below(base.rstrip("/") or "/"):
        return below
    return filter(allowed, below)


class _Problem(TypedDict, total=False):
    error: str
    code: ErrorCode


def _as_problem(unread: list[str]) -> _Problem:
    if not unread:
        return {}
    rest = [f"- and {len(unread) - _MOST_NAMED} more"] if len(unread) > _MOST_NAMED else []
    text = "\n".join(["Some files could not be read:", *unread[:_MOST_NAMED], *rest])
    return {"error": text, "code": "io_error"}


@dataclass(frozen=True, slots=True)
class MappingSearch:
    """One search in a mapping: the lines to find, the files to look in, and how many matches."""

    query: Query
    glob: GlobPattern | None = None
    max_count: int | None = None


def search_files(
    files: _Files, path: str, wanted: MappingSearch, allowed: Allowed | None = None
) -> GrepResult:
    """Find lines in the file at `path` or in all below it, by path and number; skip binary files."""
    matches: list[GrepMatch] = []
    unread: list[str] = []
    truncated = False
    for key in sorted(_paths_to_search(files, path, wanted, allowed)):
        try:
            matches += matches_in(searchable_bytes(files[key]), key, wanted.query)
        except TypeError as error:
            unread.append(f"- {key}: {error}")
        # Only a match too many shows that some are left out.
        if wanted.max_count is not None and len(matches) > wanted.max_count:
            matches, truncated = matches[: wanted.max_count], True
            break
    return GrepResult(matches=matches, truncated=truncated, **_as_problem(unread))


def _paths_to_search(
    files: _Files, path: str, wanted: MappingSearch, allowed: Allowed | None
) -> Iterator[str]:
    """Yield the paths of files that may hold a match."""
    base = path.rstrip("/") + "/"
    glob, literal = wanted.glob, None if wanted.query.expression else wanted.query.pattern
    known = _find_allowed(files, base, allowed)
    if path in files and (allowed is None or allowed(path)):
        known = [path, *known]
    for key in known:
        data = files[key]
        content = data.get("content")
        plain = isinstance(content, str) and data.get("encoding") != "base64"
        # One search in the whole text is far faster than splitting it into lines; most files end here.
        if plain and literal is not None and literal not in content:
            continue
        if glob is None or glob(name(key) if key == path else key[len(base) :]):
            yield key
