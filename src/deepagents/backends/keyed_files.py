"""Perform file operations on items that are kept whole, each under its path."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast

from deepagents._async import Coro, in_thread
from deepagents._globs import parse_glob
from deepagents._paths import is_within, normalise
from deepagents.backends import filedata
from deepagents.backends import operations as ops
from deepagents.backends._query import Query
from deepagents.backends.file_mapping import (
    MappingSearch,
    check_all_allowed,
    find_files,
    list_directory,
    not_found,
    search_files,
)
from deepagents.backends.operations import Operation
from deepagents.backends.protocol import Allowed
from deepagents.backends.results import (
    DeleteResult,
    EditResult,
    FileData,
    FileDownloadResponse,
    FileUploadResponse,
    GlobResult,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
)
from deepagents.errors import BackendError

T = TypeVar("T")


class Items(Protocol):
    """Files, each kept whole under its path."""

    async def files(self) -> dict[str, FileData]:
        """Return all files."""
        ...

    async def get(self, path: str) -> FileData | None:
        """Return one file."""
        ...

    async def get_all(self, paths: Iterable[str]) -> dict[str, FileData]:
        """Return those of some files that are there."""
        ...

    async def put(self, path: str, data: FileData) -> None:
        """Keep one file."""
        ...

    async def put_all(self, files: Mapping[str, FileData | None]) -> None:
        """Keep some files, and remove those that are `None`."""
        ...

    async def alone(self, paths: Iterable[str], work: Callable[[], Coro[T]]) -> T:
        """Run code while nothing else in this process changes some files."""
        ...


@dataclass(frozen=True, slots=True)
class KeyedFiles:
    """The operations on items, each in as few round trips as it needs."""

    items: Items

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
        return list_directory(await self.items.files(), directory, op.allowed)

    async def _read(self, op: ops.Read) -> ReadResult:
        """Read some lines, in one round trip."""
        path = normalise(op.path)
        filedata.check_allowed(path, op.allowed)
        return filedata.read_page(path, await self._get_existing(path), op.offset, op.limit)

    async def _glob(self, op: ops.Glob) -> GlobResult:
        """Find files, in one round trip."""
        start = normalise(op.at)
        parse_glob(op.pattern)
        return find_files(await self.items.files(), op.pattern, start, op.allowed)

    async def _grep(self, op: ops.Grep) -> GrepResult:
        """Find lines, in one round trip."""
        glob = None if op.glob is None else parse_glob(op.glob)
        start = normalise(op.at)
        Query.of(op.pattern, expression=bool(op.regex))  # before the files are fetched: is it an expression?
        files = await self.items.files()

        def search() -> GrepResult:
            query = Query.of(op.pattern, expression=bool(op.regex), context=op.context_lines or 0)
            return search_files(files, start, MappingSearch(query, glob, op.max_count), op.allowed)

        # An expression can take seconds, in which an event loop must go on.
        return await in_thread(search)

    async def _write(self, op: ops.Write | ops.Append | ops.Edit) -> WriteResult | EditResult:
        """Change one file, in two round trips.

        These move all of the file, also to add to it: a store cannot add to an item. Additions that other
        processes make at the same time may be lost, those of this one not.
        """
        path = filedata.normalise_file(op.path)
        filedata.check_allowed(path, op.allowed)

        async def change() -> WriteResult | EditResult:
            current = await (self._get_existing(path) if isinstance(op, ops.Edit) else self.items.get(path))
            data, count = _apply(op, path, current)
            await self.items.put(path, data)
            version = filedata.file_version(data)
            if isinstance(op, ops.Edit):
                return EditResult(path=path, occurrences=count, version=version)
            return WriteResult(path=path, version=version)

        return await self.items.alone([path], change)

    _append = _edit = _write

    async def _delete(self, op: ops.Delete) -> DeleteResult:
        """Remove a file, in two round trips, or all files below a directory, in three."""
        path = filedata.normalise_deleted(op.path)
        filedata.check_allowed(path, op.allowed)

        async def delete_file() -> bool:
            is_there = await self.items.get(path) is not None
            if is_there:
                await self.items.put_all({path: None})
            return is_there

        if await self.items.alone([path], delete_file):
            return DeleteResult(path=path)
        below = [key for key in await self.items.files() if is_within(key, path)]
        if not below:
            raise BackendError("file_not_found", f"File '{path}' not found")
        check_all_allowed(below, path, op.allowed)
        await self.items.alone(below, lambda: self.items.put_all(dict.fromkeys(below)))
        return DeleteResult(path=path)

    async def _upload_files(self, op: ops.Upload) -> list[FileUploadResponse]:
        """Write many files as bytes, in two round trips."""
        answers: list[FileUploadResponse] = []
        usable: dict[str, bytes] = {}
        for given, content in op.files:
            path = _usable_path(given, op.allowed, content)
            answers.append(FileUploadResponse(given, path.code if isinstance(path, BackendError) else None))
            if isinstance(path, str):
                usable[path] = content

        async def put() -> None:
            current = await self.items.get_all(usable)
            made = {path: filedata.make_uploaded(path, current.get(path), usable[path]) for path in usable}
            await self.items.put_all(dict[str, FileData | None](made))

        try:
            await self.items.alone(usable, put)
        except BackendError as error:
            return [each if each.error else FileUploadResponse(each.path, error.text) for each in answers]
        return answers

    async def _download_files(self, op: ops.Download) -> list[FileDownloadResponse]:
        """Read many files as bytes, in one round trip where all are there."""
        usable = {given: _usable_path(given, op.allowed) for given in op.files}
        wanted = [path for path in usable.values() if isinstance(path, str)]
        try:
            found = await self.items.get_all(wanted)
            # Only for the error: it tells a directory from a path where there is nothing.
            others = {} if len(found) == len(set(wanted)) else await self.items.files()
        except BackendError as error:
            return [FileDownloadResponse(given, error=error.text) for given in op.files]
        return [_as_download(given, usable[given], found, others) for given in op.files]

    async def _get_existing(self, path: str) -> FileData:
        """Return a file; only where there is none, find out whether it is a directory."""
        data = await self.items.get(path)
        if data is None:
            raise not_found(await self.items.files(), path)
        return data


def _apply(
    op: ops.Write | ops.Append | ops.Edit, path: str, current: FileData | None
) -> tuple[FileData, int]:
    """Return what a change makes of a file, and how many occurrences it replaced."""
    if isinstance(op, ops.Append):
        return filedata.append_checked(path, current, op.content), 0
    if isinstance(op, ops.Write):
        filedata.check_version(path, current, op.expected_version)
        return filedata.make_written(path, current, op.content), 0
    existing = cast("FileData", current)
    # Before the version: that a file is not text stays true after it is read again.
    filedata.check_text(path, existing)
    filedata.check_version(path, existing, op.expected_version)
    return filedata.make_edited(path, existing, op.old, op.new, op.replace_all)


def _as_download(
    given: str, path: str | BackendError, found: Mapping[str, FileData], others: Mapping[str, FileData]
) -> FileDownloadResponse:
    if isinstance(path, BackendError):
        return FileDownloadResponse(given, error=path.code)
    if path not in found:
        return FileDownloadResponse(given, error=not_found(others, path).code)
    return filedata.read_download(given, found[path])


def _usable_path(given: str, allowed: Allowed | None, content: bytes = b"") -> str | BackendError:
    try:
        path = filedata.normalise_file(given)
        filedata.check_allowed(path, allowed)
        filedata.validate_bytes(path, content)
    except BackendError as error:
        return error
    return path
