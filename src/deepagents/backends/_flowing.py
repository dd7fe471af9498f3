"""A backend out of flows: the blocking and the awaiting method of each operation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

from deepagents._async import Coro, arun, run
from deepagents.backends.protocol import Allowed, BackendProtocol
from deepagents.backends.results import (
    DeleteResult,
    EditResult,
    FileDownloadResponse,
    FileUploadResponse,
    GlobResult,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
)


class FileFlows(Protocol):
    """What can be done with files, as flows that answer as the methods of a backend do."""

    def ls(self, path: str, /, allowed: Allowed | None = None) -> Coro[LsResult]: ...

    def read(
        self, path: str, offset: int, limit: int, /, allowed: Allowed | None = None
    ) -> Coro[ReadResult]: ...

    def grep(
        self,
        pattern: str,
        path: str | None,
        glob: str | None,
        /,
        *,
        max_count: int | None = None,
        regex: bool = False,
        context_lines: int = 0,
        allowed: Allowed | None = None,
    ) -> Coro[GrepResult]: ...

    def glob(self, pattern: str, path: str | None, /, allowed: Allowed | None = None) -> Coro[GlobResult]: ...

    def write(
        self,
        path: str,
        content: str,
        /,
        expected_version: str | None = None,
        allowed: Allowed | None = None,
    ) -> Coro[WriteResult]: ...

    def append(
        self, path: str, content: str | bytes, /, allowed: Allowed | None = None
    ) -> Coro[WriteResult]: ...

    def edit(
        self,
        path: str,
        old: str,
        new: str,
        replace_all: bool,
        /,
        expected_version: str | None = None,
        allowed: Allowed | None = None,
    ) -> Coro[EditResult]: ...

    def delete(self, path: str, /, allowed: Allowed | None = None) -> Coro[DeleteResult]: ...


class TransferFlows(FileFlows, Protocol):
    """Flows that move whole files as well."""

    def upload_files(
        self, files: Sequence[tuple[str, bytes]], /, allowed: Allowed | None = None
    ) -> Coro[list[FileUploadResponse]]: ...

    def download_files(
        self, paths: Sequence[str], /, allowed: Allowed | None = None
    ) -> Coro[list[FileDownloadResponse]]: ...


class FlowBackend(BackendProtocol):
    """A backend whose operations on files are the flows of `_flows`; a subclass moves whole files itself."""

    @property
    @abstractmethod
    def _flows(self) -> FileFlows:
        """The operations, for one call."""

    def ls(self, path: str, *, allowed: Allowed | None = None) -> LsResult:
        """List one directory."""
        return run(self._flows.ls(path, allowed))

    async def als(self, path: str, **options: Any) -> LsResult:
        """List one directory; takes what `ls` takes."""
        return await arun(self._flows.ls(path, **options))

    def read(
        self, file_path: str, offset: int = 0, limit: int = 2000, *, allowed: Allowed | None = None
    ) -> ReadResult:
        """Read `limit` lines from line `offset` (counted from 0); media come whole, as base64."""
        return run(self._flows.read(file_path, offset, limit, allowed))

    async def aread(self, file_path: str, offset: int = 0, limit: int = 2000, **options: Any) -> ReadResult:
        """Read `limit` lines from line `offset`; takes what `read` takes."""
        return await arun(self._flows.read(file_path, offset, limit, **options))

    def grep(
        self,
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        *,
        max_count: int | None = None,
        regex: bool = False,
        context_lines: int = 0,
        allowed: Allowed | None = None,
    ) -> GrepResult:
        """Find the lines that hold `pattern`, by path and line; `max_count` caps all matches together.

        Raises:
            ValueError: when `context_lines` is negative.
        """
        flow = self._flows.grep(
            pattern,
            path,
            glob,
            max_count=max_count,
            regex=regex,
            context_lines=context_lines,
            allowed=allowed,
        )
        return run(flow)

    async def agrep(
        self,
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        *,
        max_count: int | None = None,
        **options: Any,
    ) -> GrepResult:
        """Find the lines that hold `pattern`; takes what `grep` takes, and raises what it raises."""
        return await arun(self._flows.grep(pattern, path, glob, max_count=max_count, **options))

    def glob(self, pattern: str, path: str | None = None, *, allowed: Allowed | None = None) -> GlobResult:
        """Find the files whose path matches `pattern`."""
        return run(self._flows.glob(pattern, path, allowed))

    async def aglob(self, pattern: str, path: str | None = None, **options: Any) -> GlobResult:
        """Find the files whose path matches `pattern`; takes what `glob` takes."""
        return await arun(self._flows.glob(pattern, path, **options))

    def write(
        self,
        file_path: str,
        content: str,
        *,
        expected_version: str | None = None,
        allowed: Allowed | None = None,
    ) -> WriteResult:
        """Create a file or replace it whole, unless it changed since `expected_version`."""
        return run(self._flows.write(file_path, content, expected_version, allowed))

    async def awrite(self, file_path: str, content: str, **options: Any) -> WriteResult:
        """Create a file or replace it whole; takes what `write` takes."""
        return await arun(self._flows.write(file_path, content, **options))

    def append(self, file_path: str, content: str | bytes, *, allowed: Allowed | None = None) -> WriteResult:
        """Add to the end of a file, byte for byte; a file that is not there is made."""
        return run(self._flows.append(file_path, content, allowed))

    async def aappend(self, file_path: str, content: str | bytes, **options: Any) -> WriteResult:
        """Add to the end of a file; takes what `append` takes."""
        return await arun(self._flows.append(file_path, content, **options))

    def edit(
        self,
        file_path: str,
        old_string: str,
        new_string: str,
        replace_all: bool = False,
        *,
        expected_version: str | None = None,
        allowed: Allowed | None = None,
    ) -> EditResult:
        """Replace exact text, unless the file changed since `expected_version`."""
        change = (old_string, new_string, replace_all)
        return run(self._flows.edit(file_path, *change, expected_version, allowed))

    async def aedit(
        self, file_path: str, old_string: str, new_string: str, replace_all: bool = False, **options: Any
    ) -> EditResult:
        """Replace exact text; takes what `edit` takes."""
        return await arun(self._flows.edit(file_path, old_string, new_string, replace_all, **options))

    def delete(self, file_path: str, *, allowed: Allowed | None = None) -> DeleteResult:
        """Remove a file, or a directory with all that is in it."""
        return run(self._flows.delete(file_path, allowed))

    async def adelete(self, file_path: str, **options: Any) -> DeleteResult:
        """Remove a file, or a directory with all that is in it; takes what `delete` takes."""
        return await arun(self._flows.delete(file_path, **options))


class TransferBackend(FlowBackend):
    """A backend whose flows move whole files as well."""

    @property
    @abstractmethod
    def _flows(self) -> TransferFlows:
        """The operations, for one call."""

    def upload_files(
        self, files: list[tuple[str, bytes]], *, allowed: Allowed | None = None
    ) -> list[FileUploadResponse]:
        """Write many files as bytes; the answers keep the order."""
        return run(self._flows.upload_files(files, allowed))

    async def aupload_files(self, files: list[tuple[str, bytes]], **options: Any) -> list[FileUploadResponse]:
        """Write many files as bytes; takes what `upload_files` takes."""
        return await arun(self._flows.upload_files(files, **options))

    def download_files(
        self, paths: list[str], *, allowed: Allowed | None = None
    ) -> list[FileDownloadResponse]:
        """Read many files as bytes; the answers keep the order."""
        return run(self._flows.download_files(paths, allowed))

    async def adownload_files(self, paths: list[str], **options: Any) -> list[FileDownloadResponse]:
        """Read many files as bytes; takes what `download_files` takes."""
        return await arun(self._flows.download_files(paths, **options))
