"""Files in a mapping from path to file: list, find, search, page. Directories are what paths imply."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, Protocol, TypeVar, cast

from deepagents._globs import Glob, checked_glob
from deepagents._paths import is_within, name
from deepagents._text import window
from deepagents.backends._search import Query
from deepagents.backends._search.lines import lines_in
from deepagents.backends.filedata import (
    file_data_to_bytes,
    file_data_to_string,
    file_size,
    file_version,
    is_base64,
)
from deepagents.backends.kinds import file_kind
from deepagents.backends.results import FileData, FileInfo, GrepMatch, GrepResult, ReadResult
from deepagents.errors import BackendError, ErrorCode

P = ParamSpec("P")
Result_co = TypeVar("Result_co", covariant=True)
Files = Mapping[str, Any]


class ResultType(Protocol[Result_co]):
    """A type of result that can be an error."""

    def __call__(self, *, error: str, code: ErrorCode) -> Result_co: ...


def answering(result: ResultType[Result_co]) -> Callable[[Callable[P, Result_co]], Callable[P, Result_co]]:
    """Make a method return the `BackendError`s that it raises as results."""

    def decorate(method: Callable[P, Result_co]) -> Callable[P, Result_co]:
        @wraps(method)
        def answer(*args: P.args, **kwargs: P.kwargs) -> Result_co:
            try:
                return method(*args, **kwargs)
            except BackendError as error:
                return result(error=error.text, code=error.code)

        return answer

    return decorate


def found_at(files: Files, path: str) -> FileData:
    """Return the file at a normalised path.

    Raises:
        BackendError: `file_not_found`, or `is_directory` when files lie below the path.
    """
    if path in files:
        return cast("FileData", files[path])
    if any(is_within(each, path) for each in files):
        raise BackendError("is_directory", f"File '{path}' not found: it is a directory. List it with ls.")
    raise BackendError("file_not_found", f"File '{path}' not found")


def entries(files: Files, path: str) -> list[FileInfo]:
    """List a directory; one that nothing lies in is empty.

    Raises:
        BackendError: `not_a_directory`.
    """
    base = path.rstrip("/") + "/"
    found: dict[str, FileInfo] = {}
    for key, data in files.items():
        if key.startswith(base):
            below, slash, _ = key[len(base) :].partition("/")
            entry = FileInfo(path=f"{base}{below}/", is_dir=True, size=0, modified_at="")
            found[base + below + slash] = entry if slash else describe(key, data)
    if not found and path in files:
        raise BackendError("not_a_directory", f"Path '{path}': not_a_directory")
    return [found[key] for key in sorted(found)]


def describe(path: str, data: FileData) -> FileInfo:
    """Return what a listing says about a file."""
    modified = data.get("modified_at") or ""
    return FileInfo(path=path, is_dir=False, size=file_size(data), modified_at=modified)


def matching(files: Files, pattern: str, path: str) -> list[FileInfo]:
    """Find files below a directory by pattern, the newest first.

    Raises:
        BackendError: `invalid_pattern`.
    """
    matches = checked_glob(pattern)
    base = path.rstrip("/") + "/"
    found = [
        describe(key, data)
        for key, data in sorted(files.items())
        if key.startswith(base) and matches(key[len(base) :])
    ]
    return sorted(found, key=lambda info: info.get("modified_at", ""), reverse=True)


@dataclass(frozen=True, slots=True)
class Search:
    """What lines to look for, in which files, and how many."""

    query: Query
    glob: Glob | None = None
    max_count: int | None = None


def search(files: Files, path: str, wanted: Search) -> GrepResult:
    """Find lines in the file at `path` or in all below it, by path and number; skip binary files."""
    found = GrepResult(matches=[])
    matches: list[GrepMatch] = []
    unread: list[str] = []
    for key in _searched(files, path, wanted.glob):
        try:
            matches += _lines(key, files[key], wanted.query)
        except TypeError as error:
            unread.append(f"- {key}: {error}")
        if wanted.max_count is not None and len(matches) > wanted.max_count:
            matches, found.truncated = matches[: wanted.max_count], True
            break
    found.matches = matches
    if unread:
        found.error, found.code = "\n".join(["Some files could not be searched:", *unread]), "io_error"
    return found


def _searched(files: Files, path: str, glob: Glob | None) -> Iterator[str]:
    base = path.rstrip("/") + "/"
    for key in sorted(files):
        if not is_within(key, path):
            continue
        if glob is None or glob(name(key) if key == path else key[len(base) :]):
            yield key


def _lines(path: str, data: FileData, query: Query) -> Iterator[GrepMatch]:
    text = file_data_to_string(data)
    if is_base64(data) or (query.expression is None and query.pattern not in text):
        return
    for line in lines_in(text.encode("utf-8", "surrogatepass"), query):
        match = GrepMatch(path=path, line=line.number, text=line.text)
        if query.context:
            match["context_before"] = [{"line": number, "text": text} for number, text in line.before]
            match["context_after"] = [{"line": number, "text": text} for number, text in line.after]
        yield match


def text_of(path: str, data: FileData) -> str:
    """Return the content of a file as it is kept.

    Raises:
        BackendError: `io_error` for content of a wrong type.
    """
    try:
        return file_data_to_string(data)
    except TypeError as error:
        raise BackendError("io_error", f"Error reading file '{path}': {error}") from error


def page(path: str, data: FileData, offset: int, limit: int) -> ReadResult:
    """Return a window of a text file, or a media or other binary file whole, as base64.

    Raises:
        BackendError: `invalid_argument` past the end, `io_error` for content of a wrong type.
    """
    content, version = text_of(path, data), file_version(data)
    if is_base64(data):
        return ReadResult(file_data={**data, "content": content}, version=version)
    if file_kind(path) != "text":
        encoded = base64.b64encode(file_data_to_bytes(data)).decode()
        return ReadResult(file_data={**data, "content": encoded, "encoding": "base64"}, version=version)
    shown = window(content, int(offset), int(limit))
    return ReadResult(
        file_data={**data, "content": shown.text, "encoding": "utf-8"},
        total_lines=shown.total,
        start_line=shown.start,
        end_line=shown.end,
        next_offset=shown.next_offset,
        no_lines_requested=shown.no_lines_requested,
        version=version,
    )
