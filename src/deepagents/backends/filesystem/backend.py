"""Files on disk, below one root directory."""

from __future__ import annotations

import asyncio
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

from deepagents._async import await_thread
from deepagents._globs import parse_glob
from deepagents.backends._query import Query
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.filesystem import reading, search
from deepagents.backends.filesystem.pages import LineMarks
from deepagents.backends.filesystem.paths import HostPaths, ResolvedPath, VirtualPaths
from deepagents.backends.filesystem.writing import Writer
from deepagents.backends.protocol import (
    ASYNC_GREP_TIMEOUT,
    DEFAULT_GREP_TIMEOUT,
    Allowed,
    BackendProtocol,
)
from deepagents.backends.results import (
    DeleteResult,
    EditResult,
    FileDownloadResponse,
    FileOperationError,
    FileUploadResponse,
    GlobResult,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
    errors_as_result,
)
from deepagents.errors import BackendError

DEFAULT_GLOB_TIMEOUT = 5.0
"""Seconds that a walk may take before it returns what it has."""


class FilesystemBackend(BackendProtocol):
    """Files on disk.

    With `virtual_mode` (the default) every path starts at `/`, which is `root_dir`, and no `..`, link or race
    leads out of it. Without it, paths are those of this machine and nothing is confined. Writes replace a
    file whole, or not at all, and keep its mode and line ends. Files of more than `max_file_size_mb` are not
    edited, not searched and not returned as base64; text of any size is read by pages. On Windows, links are
    checked just before use, so that a race could still lead out.
    """

    def __init__(
        self,
        root_dir: str | Path | None = None,
        virtual_mode: bool | None = True,
        max_file_size_mb: float = 10,
    ) -> None:
        if virtual_mode is None:
            warnings.warn(
                "virtual_mode=None is deprecated: say True or False.", DeprecationWarning, stacklevel=2
            )
            virtual_mode = True
        self.cwd = Path(root_dir or ".").expanduser().resolve()
        self.virtual_mode = virtual_mode
        self.max_file_size_bytes = int(max_file_size_mb * 1024 * 1024)
        self._paths: VirtualPaths | HostPaths = (
            VirtualPaths(self.cwd) if virtual_mode else HostPaths(self.cwd)
        )
        self._writer = Writer(self.max_file_size_bytes)
        self._marks = LineMarks()

    def capabilities(self, path: str = "/") -> Capabilities:
        """Return what this backend can do."""
        root = "/" if self.virtual_mode else self.cwd.as_posix()
        return replace(super().capabilities(path), delete=True, versions=True, artifacts_root=root, host=True)

    def real_path(self, path: str) -> str:
        """Return where a path leads once every link on the way is resolved.

        Raises:
            BackendError: when there is no such path, or none inside the root.
        """
        return self._paths.name_of(self._paths.resolve(path).real_parts())

    @errors_as_result(LsResult)
    def ls(self, path: str, *, allowed: Allowed | None = None) -> LsResult:
        """List one directory."""
        return reading.ls(self._resolve(path, "read", allowed))

    @errors_as_result(ReadResult)
    def read(
        self, file_path: str, offset: int = 0, limit: int = 2000, *, allowed: Allowed | None = None
    ) -> ReadResult:
        """Read `limit` lines from line `offset` (counted from 0); what is not text comes whole, as base64."""
        path = self._resolve(file_path, "read", allowed)
        return reading.read(path, offset, limit, self.max_file_size_bytes, self._marks)

    @errors_as_result(WriteResult)
    def write(
        self,
        file_path: str,
        content: str,
        *,
        expected_version: str | None = None,
        allowed: Allowed | None = None,
    ) -> WriteResult:
        """Create a file or replace it whole, unless it changed since `expected_version`."""
        path = self._resolve(file_path, "write", allowed)
        return WriteResult(path=path.shown, version=self._writer.write(path, content, expected_version))

    @errors_as_result(WriteResult)
    def append(self, file_path: str, content: str | bytes, *, allowed: Allowed | None = None) -> WriteResult:
        """Add to the end of a file, byte for byte; a file that is not there is made."""
        path = self._resolve(file_path, "write", allowed)
        return WriteResult(path=path.shown, version=self._writer.append(path, content))

    @errors_as_result(EditResult)
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
        path = self._resolve(file_path, "write", allowed)
        count, version = self._writer.edit(path, old_string, new_string, replace_all, expected_version)
        return EditResult(path=path.shown, occurrences=count, version=version)

    @errors_as_result(DeleteResult)
    def delete(self, file_path: str, *, allowed: Allowed | None = None) -> DeleteResult:
        """Remove a file, or a directory with all that is in it; of a link, the link alone."""
        path = self._resolve(file_path, "write", allowed)
        self._writer.delete(path, self._paths.is_undeletable)
        return DeleteResult(path=path.shown)

    @errors_as_result(GlobResult)
    def glob(self, pattern: str, path: str | None = None, *, allowed: Allowed | None = None) -> GlobResult:
        """Find the files whose path matches `pattern`, by path; up to 1,000 come with size and time."""
        start = self._resolve_start(path, allowed)
        return search.glob(start, pattern, DEFAULT_GLOB_TIMEOUT)

    @errors_as_result(GrepResult)
    def grep(
        self,
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        *,
        max_count: int | None = None,
        context_lines: int = 0,
        regex: bool = False,
        allowed: Allowed | None = None,
    ) -> GrepResult:
        """Find the lines that hold `pattern`, by path and line.

        Raises:
            ValueError: when `context_lines` is negative.
        """
        if context_lines < 0:
            raise ValueError(f"context_lines must not be negative, got {context_lines!r}")
        wanted = search.Search(
            Query.of(pattern, expression=regex, context=context_lines),
            None if glob is None else parse_glob(glob),
            max_count,
            self.max_file_size_bytes,
            DEFAULT_GREP_TIMEOUT,
        )
        return search.grep(self._resolve_start(path, allowed), wanted)

    async def agrep(
        self,
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        *,
        max_count: int | None = None,
        **options: Any,
    ) -> GrepResult:
        """Find the lines that hold `pattern`, by path and line; takes what `grep` takes."""
        search = await_thread(lambda: self.grep(pattern, path, glob, max_count=max_count, **options))
        try:
            # The thread goes on after that; its own limits end it soon.
            return await asyncio.wait_for(search, ASYNC_GREP_TIMEOUT)
        except TimeoutError:
            return GrepResult(
                error=f"Search for {pattern!r} timed out. Narrow it by path or glob.", code="timeout"
            )

    def upload_files(
        self, files: list[tuple[str, bytes]], *, allowed: Allowed | None = None
    ) -> list[FileUploadResponse]:
        """Write many files as bytes; the answers keep the order."""
        return [self._upload(path, content, allowed) for path, content in files]

    def download_files(
        self, paths: list[str], *, allowed: Allowed | None = None
    ) -> list[FileDownloadResponse]:
        """Read many files as bytes; the answers keep the order."""
        return [self._download(path, allowed) for path in paths]

    def _upload(self, path: str, content: bytes, allowed: Allowed | None) -> FileUploadResponse:
        try:
            self._writer.write_bytes(self._resolve(path, "write", allowed), content)
        except BackendError as error:
            return FileUploadResponse(path, _transfer_error(error))
        return FileUploadResponse(path)

    def _download(self, path: str, allowed: Allowed | None) -> FileDownloadResponse:
        try:
            return FileDownloadResponse(path, reading.download(self._resolve(path, "read", allowed)))
        except BackendError as error:
            return FileDownloadResponse(path, error=_transfer_error(error))

    def _resolve(self, path: str, operation: str, allowed: Allowed | None) -> ResolvedPath:
        return replace(self._paths.resolve(path), operation=operation, allowed=allowed)

    def _resolve_start(self, path: str | None, allowed: Allowed | None) -> ResolvedPath:
        return replace(self._paths.resolve_start(path), allowed=allowed)

    # The next three are replaced or called by packages that build on this class.

    def _resolve_path(self, key: str) -> Path:
        path = self._paths.resolve(key)
        return path.root.path_of(path.real_parts())

    def _to_virtual_path(self, path: Path) -> str:
        return f"/{path.resolve().relative_to(self.cwd).as_posix()}".replace("/.", "/", 1)

    def _display_path(self, path: Path) -> str:
        try:
            return self._to_virtual_path(path) if self.virtual_mode else path.as_posix()
        except (OSError, ValueError):
            return path.name or "/"


def _transfer_error(error: BackendError) -> FileOperationError | str:
    match error.code:
        case "file_not_found" | "permission_denied" | "is_directory" | "invalid_path":
            return error.code
        case "not_a_directory":
            return "invalid_path"
        case _:
            return error.text
