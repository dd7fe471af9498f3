"""Perform file operations on files that are kept whole, each under its path.

Directories are what the paths imply.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any, Final, TypeAlias, TypedDict, TypeVar

from deepagents._async import Coro, in_thread
from deepagents._globs import GlobPattern, parse_glob
from deepagents._paths import is_within, name, normalise
from deepagents.backends import filedata
from deepagents.backends import operations as ops
from deepagents.backends._query import Query, matches_in
from deepagents.backends._refusals import Denied, already_there, not_a_file, not_listable, undeletable_root
from deepagents.backends.operations import Operation
from deepagents.backends.protocol import Allowed
from deepagents.backends.results import (
    DeleteResult,
    EditResult,
    FileData,
    FileDownloadResponse,
    FileInfo,
    FileUploadResponse,
    GlobResult,
    GrepMatch,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
    describe_unread,
)
from deepagents.errors import BackendError, ErrorCode

T = TypeVar("T")
_Files: TypeAlias = Mapping[str, Any]
_MOST_DESCRIBED: Final = 1000


class KeyedFiles(ABC):
    """The operations on files, each in as few round trips as it needs.

    A subclass says how files are fetched and kept.
    """

    @abstractmethod
    async def files(self) -> Mapping[str, FileData]:
        """Return all files."""

    async def some_files(self) -> Mapping[str, FileData]:
        """Return as many files as a hint is worth: all, where that costs no more."""
        return await self.files()

    @abstractmethod
    async def put_all(self, files: Mapping[str, FileData | None]) -> None:
        """Keep some files, and remove those that are `None`."""

    async def get_all(self, paths: Iterable[str]) -> Mapping[str, FileData]:
        """Return those of some files that are there; others may come with them."""
        return await self.files()

    async def alone(self, paths: Iterable[str], work: Callable[[], Coro[T]]) -> T:
        """Run code while nothing else in this process changes some files."""
        return await work()

    async def perform(self, op: Operation) -> Any:
        """Perform an operation.

        Raises:
            BackendError: when that is not possible.
        """
        # A method of this class for each method of a backend; an operation that has none is not supported.
        perform = getattr(self, f"_{op.method}", None)
        if perform is None:
            raise BackendError("not_supported", f"{op.method} is not supported for these files.")
        return await perform(op)

    async def _ls(self, op: ops.Ls) -> LsResult:
        """List one directory, in one round trip."""
        directory = normalise(op.path)
        return list_directory(await self._files_for(op), directory, op.allowed)

    async def _read(self, op: ops.Read) -> ReadResult:
        """Read some lines, in one round trip."""
        path = normalise(op.path)
        _check_allowed(path, op)
        return filedata.read_page(path, await self._get_existing(path), op.offset, op.limit)

    async def _glob(self, op: ops.Glob) -> GlobResult:
        """Find files, in one round trip."""
        start = normalise(op.at)
        parse_glob(op.pattern)
        return find_files(await self._files_for(op), op.pattern, start, op.allowed)

    async def _grep(self, op: ops.Grep) -> GrepResult:
        """Find lines, in one round trip."""
        glob = None if op.glob is None else parse_glob(op.glob)
        start = normalise(op.at)
        Query.of(op.pattern, expression=op.regex)  # before the files are fetched: is it an expression?
        files = await self.files()

        def search() -> GrepResult:
            query = Query.of(op.pattern, expression=op.regex, context=op.context_lines)
            return search_files(files, start, query, glob, op.max_count, op.allowed)

        # An expression can take seconds, in which an event loop must go on.
        return await in_thread(search)

    async def _write(self, op: ops.Write | ops.Append | ops.Edit) -> WriteResult | EditResult:
        """Change one file, in two round trips.

        These move all of the file, also to add to it: a store cannot add to an item. Additions that other
        processes make at the same time may be lost, those of this one not.
        """
        path = _normalise_file(op.path)
        _check_allowed(path, op)

        async def change() -> WriteResult | EditResult:
            count: int | None = None
            current = None
            match op:
                case ops.Edit(edits=edits, expected_version=expected):
                    current = await self._get_existing(path)
                    data, count = filedata.make_edited(path, current, edits, expected)
                case ops.Append(content=content):
                    data = filedata.append_checked(path, await self._get(path), content)
                case ops.Write(content=content, expected_version=expected):
                    current = await self._get(path)
                    if op.creates and current is not None:
                        raise already_there(f"File '{path}'")
                    data = filedata.make_written(path, current, content, expected)
            version = filedata.file_version(data)
            await self.put_all({path: data})
            if count is not None:
                return EditResult(path=path, occurrences=count, version=version)
            created = current is None if isinstance(op, ops.Write) else None
            return WriteResult(path=path, version=version, created=created)

        return await self.alone([path], change)

    _append = _edit = _write

    async def _delete(self, op: ops.Delete) -> DeleteResult:
        """Remove a file, in two round trips, or all files below a directory, in three."""
        path = normalise(op.path)
        if path == "/":
            raise undeletable_root(path)
        _check_allowed(path, op)

        async def delete_file() -> bool:
            is_there = await self._get(path) is not None
            if is_there:
                await self.put_all({path: None})
            return is_there

        if await self.alone([path], delete_file):
            return DeleteResult(path=path)
        below = [key for key in await self.files() if is_within(key, path)]
        if not below:
            raise BackendError("file_not_found", f"File '{path}' not found")
        if op.allowed and not op.allowed.all_below(path) and not all(map(op.allowed, below)):
            raise Denied(op.right, path)
        await self.alone(below, lambda: self.put_all(dict.fromkeys(below)))
        return DeleteResult(path=path)

    async def _upload_files(self, op: ops.Upload) -> list[FileUploadResponse]:
        """Write many files as bytes, in two round trips."""
        answers: list[FileUploadResponse] = []
        usable: dict[str, bytes] = {}
        for given, content in op.files:
            path = _usable_path(given, op, content)
            answers.append(FileUploadResponse(given, path.code if isinstance(path, BackendError) else None))
            if isinstance(path, str):
                usable[path] = content

        async def put() -> None:
            current = await self.get_all(usable)
            made = {path: filedata.make_uploaded(path, current.get(path), usable[path]) for path in usable}
            await self.put_all(dict[str, FileData | None](made))

        try:
            if usable:
                await self.alone(usable, put)
        except BackendError as error:
            return [each if each.error else FileUploadResponse(each.path, error.text) for each in answers]
        return answers

    async def _download_files(self, op: ops.Download) -> list[FileDownloadResponse]:
        """Read many files as bytes, in one round trip where all are there."""
        usable = {given: _usable_path(given, op) for given in op.files}
        wanted = {path for path in usable.values() if isinstance(path, str)}
        try:
            found = await self.get_all(wanted)
            # Only for the error: it tells a directory from a path where there is nothing.
            others = found if wanted <= found.keys() else await self.files()
        except BackendError as error:
            return [FileDownloadResponse(given, error=error.text) for given in op.files]
        return [_as_download(given, usable[given], found, others) for given in op.files]

    async def _files_for(self, op: Operation) -> Mapping[str, FileData]:
        return await (self.some_files() if op.hint else self.files())

    async def _get(self, path: str) -> FileData | None:
        return (await self.get_all([path])).get(path)

    async def _get_existing(self, path: str) -> FileData:
        """Return a file; only where there is none, find out whether it is a directory."""
        data = await self._get(path)
        if data is None:
            raise _not_found(await self.files(), path)
        return data


def _as_download(
    given: str, path: str | BackendError, found: Mapping[str, FileData], others: Mapping[str, FileData]
) -> FileDownloadResponse:
    if isinstance(path, BackendError):
        return FileDownloadResponse(given, error=path.code)
    if path not in found:
        return FileDownloadResponse(given, error=_not_found(others, path).code)
    return filedata.read_download(given, found[path])


def _usable_path(given: str, op: Operation, content: bytes = b"") -> str | BackendError:
    try:
        path = _normalise_file(given)
        _check_allowed(path, op)
        filedata.validate_bytes(path, content)
    except BackendError as error:
        return error
    return path


def _normalise_file(path: str) -> str:
    normal = normalise(path)
    if normal == "/":
        raise BackendError("is_directory", f"'{normal}' is a directory. Name a file in it.")
    return normal


def _check_allowed(path: str, op: Operation) -> None:
    if op.allowed is not None and not op.allowed(path):
        raise Denied(op.right, path)


def _not_found(paths: Iterable[str], path: str) -> BackendError:
    """Make the error for a path at which there is no file."""
    if path == "/" or any(is_within(each, path) for each in paths):
        return not_a_file(f"File '{path}'")
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
        raise not_listable(path, "not_a_directory")
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
        content = filedata.file_data_to_string(data)
    plain = content.isascii() and data.get("encoding") != "base64" and filedata.file_kind(path) == "text"
    return {
        "path": path,
        "is_dir": False,
        "size": len(content) if plain else filedata.file_size(filedata.with_true_encoding(path, data)),
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
            unread.append(f"{key}: {error}")
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


class _Problem(TypedDict):
    error: str | None
    code: ErrorCode | None


def _as_problem(unread: list[str]) -> _Problem:
    error = describe_unread(unread, "read")
    return {"error": error, "code": "io_error" if error else None}


def search_files(
    files: _Files,
    path: str,
    query: Query,
    glob: GlobPattern | None = None,
    max_count: int | None = None,
    allowed: Allowed | None = None,
) -> GrepResult:
    """Find lines in the file at `path` or in all below it, by path and number; skip binary files."""
    matches: list[GrepMatch] = []
    unread: list[str] = []
    truncated = False
    for key in sorted(_paths_to_search(files, path, query, glob, allowed)):
        try:
            matches += matches_in(filedata.searchable_bytes(files[key]), key, query)
        except TypeError as error:
            unread.append(f"{key}: {error}")
        # Only a match too many shows that some are left out.
        if max_count is not None and len(matches) > max_count:
            matches, truncated = matches[:max_count], True
            break
    return GrepResult(matches=matches, truncated=truncated, **_as_problem(unread))


def _paths_to_search(
    files: _Files, path: str, query: Query, glob: GlobPattern | None, allowed: Allowed | None
) -> Iterator[str]:
    """Yield the paths of files that may hold a match."""
    base = path.rstrip("/") + "/"
    literal = None if query.expression else query.pattern
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
