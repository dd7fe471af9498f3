"""What each operation does with the files on a shelf, as flows for both colours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from deepagents._async import Coro
from deepagents._globs import checked_glob
from deepagents._paths import is_within, normalise
from deepagents.backends import _flat, _rewrite
from deepagents.backends._answering import answering_flow
from deepagents.backends._search import Query
from deepagents.backends.filedata import checked_bytes, file_version
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


class Shelved(Protocol):
    """Where files lie, each whole under its path."""

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
        """Run a flow while nobody else in this process changes some files."""
        ...


@dataclass(frozen=True, slots=True)
class Stored:
    """The operations on the files of one shelf."""

    shelf: Shelved

    @answering_flow(LsResult)
    async def ls(self, path: str, allowed: Allowed | None = None) -> LsResult:
        """List one directory, in one round trip."""
        directory = normalise(path)
        return _flat.listing(await self.shelf.files(), directory, allowed)

    @answering_flow(ReadResult)
    async def read(
        self, file_path: str, offset: int, limit: int, allowed: Allowed | None = None
    ) -> ReadResult:
        """Read some lines, in one round trip."""
        path = normalise(file_path)
        _flat.check_allowed(path, allowed)
        return _flat.page(path, await self._found(path), offset, limit)

    @answering_flow(GrepResult)
    async def grep(
        self,
        pattern: str,
        path: str | None,
        glob: str | None,
        *,
        max_count: int | None = None,
        regex: bool = False,
        context_lines: int = 0,
        allowed: Allowed | None = None,
    ) -> GrepResult:
        """Find lines, in one round trip."""
        query = Query.of(pattern, expression=regex, context=context_lines)
        wanted = _flat.Search(query, None if glob is None else checked_glob(glob), max_count)
        root = normalise(path or "/")
        return _flat.search(await self.shelf.files(), root, wanted, allowed)

    @answering_flow(GlobResult)
    async def glob(self, pattern: str, path: str | None, allowed: Allowed | None = None) -> GlobResult:
        """Find files, in one round trip."""
        root = normalise(path or "/")
        checked_glob(pattern)
        return _flat.matching(await self.shelf.files(), pattern, root, allowed)

    @answering_flow(WriteResult)
    async def write(
        self,
        file_path: str,
        content: str,
        expected_version: str | None = None,
        allowed: Allowed | None = None,
    ) -> WriteResult:
        """Create a file or replace it whole, in two round trips."""
        path = _rewrite.file_path(file_path)
        _flat.check_allowed(path, allowed)

        async def work() -> WriteResult:
            current = await self.shelf.get(path)
            _rewrite.check_version(path, current, expected_version)
            data = _rewrite.written(path, current, content)
            await self.shelf.put(path, data)
            return WriteResult(path=path, version=file_version(data))

        return await self.shelf.alone([path], work)

    @answering_flow(WriteResult)
    async def append(
        self, file_path: str, content: str | bytes, allowed: Allowed | None = None
    ) -> WriteResult:
        """Add to the end of a file in two round trips that move all of it: a store cannot add to an item.

        Additions of other processes at the same time may be lost, those of this one not.
        """
        path = _rewrite.file_path(file_path)
        _flat.check_allowed(path, allowed)

        async def work() -> WriteResult:
            data = _rewrite.appended(path, await self.shelf.get(path), content)
            await self.shelf.put(path, data)
            return WriteResult(path=path, version=file_version(data))

        return await self.shelf.alone([path], work)

    @answering_flow(EditResult)
    async def edit(
        self,
        file_path: str,
        old: str,
        new: str,
        replace_all: bool,
        expected_version: str | None = None,
        allowed: Allowed | None = None,
    ) -> EditResult:
        """Replace exact text, in two round trips."""
        path = _rewrite.file_path(file_path)
        _flat.check_allowed(path, allowed)

        async def work() -> EditResult:
            current = await self._found(path)
            _rewrite.check_text(path, current)
            _rewrite.check_version(path, current, expected_version)
            data, count = _rewrite.edited(path, current, old, new, replace_all)
            await self.shelf.put(path, data)
            return EditResult(path=path, occurrences=count, version=file_version(data))

        return await self.shelf.alone([path], work)

    @answering_flow(DeleteResult)
    async def delete(self, file_path: str, allowed: Allowed | None = None) -> DeleteResult:
        """Remove a file, in two round trips, or all files below a directory, in three."""
        path = _rewrite.deleted_path(file_path)
        _flat.check_allowed(path, allowed)

        async def file() -> bool:
            there = await self.shelf.get(path)
            if there is not None:
                await self.shelf.put_all({path: None})
            return there is not None

        if await self.shelf.alone([path], file):
            return DeleteResult(path=path)
        below = [key for key in await self.shelf.files() if is_within(key, path)]
        if not below:
            raise BackendError("file_not_found", f"File '{path}' not found")
        _flat.check_all_allowed(below, path, allowed)
        await self.shelf.alone(below, lambda: self.shelf.put_all(dict.fromkeys(below)))
        return DeleteResult(path=path)

    async def upload_files(
        self, files: Sequence[tuple[str, bytes]], allowed: Allowed | None = None
    ) -> list[FileUploadResponse]:
        """Write many files as bytes, in two round trips; the answers keep the order."""
        answers: list[FileUploadResponse] = []
        taken: dict[str, bytes] = {}
        for given, content in files:
            path = _usable(given, allowed, content)
            answers.append(FileUploadResponse(given, path.code if isinstance(path, BackendError) else None))
            if isinstance(path, str):
                taken[path] = content

        async def work() -> None:
            current = await self.shelf.get_all(taken)
            made = {path: _rewrite.uploaded(path, current.get(path), taken[path]) for path in taken}
            await self.shelf.put_all(dict[str, FileData | None](made))

        try:
            await self.shelf.alone(taken, work)
        except BackendError as error:
            return [each if each.error else FileUploadResponse(each.path, error.text) for each in answers]
        return answers

    async def download_files(
        self, paths: Sequence[str], allowed: Allowed | None = None
    ) -> list[FileDownloadResponse]:
        """Read many files as bytes, in one round trip where all are there; the answers keep the order."""
        usable = {given: _usable(given, allowed) for given in paths}
        wanted = [path for path in usable.values() if isinstance(path, str)]
        try:
            found = await self.shelf.get_all(wanted)
            others = {} if len(found) == len(set(wanted)) else await self.shelf.files()
        except BackendError as error:
            return [FileDownloadResponse(given, error=error.text) for given in paths]
        return [_downloaded(given, usable[given], found, others) for given in paths]

    async def _found(self, path: str) -> FileData:
        """Return a file; only where there is none, find out whether it is a directory."""
        data = await self.shelf.get(path)
        if data is None:
            raise _flat.not_found(await self.shelf.files(), path)
        return data


def _downloaded(
    given: str, path: str | BackendError, found: dict[str, FileData], others: dict[str, FileData]
) -> FileDownloadResponse:
    if isinstance(path, BackendError):
        return FileDownloadResponse(given, error=path.code)
    if path not in found:
        return FileDownloadResponse(given, error=_flat.not_found(others, path).code)
    return _rewrite.downloaded(given, found[path])


def _usable(given: str, allowed: Allowed | None, content: bytes = b"") -> str | BackendError:
    try:
        path = _rewrite.file_path(given)
        _flat.check_allowed(path, allowed)
        checked_bytes(path, content)
    except BackendError as error:
        return error
    return path
