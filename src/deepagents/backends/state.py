"""Files in the state of a graph: they live and die with the thread."""

from __future__ import annotations

import base64
from typing import Any, Final, cast

from deepagents._deprecation import warn_legacy
from deepagents._globs import checked_glob
from deepagents._paths import is_within, normalise
from deepagents._state.runtime import read_channel, write_channel
from deepagents.backends import _flat, _rewrite
from deepagents.backends._answering import answering
from deepagents.backends._search import Query
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.filedata import FileChange, file_version, now
from deepagents.backends.protocol import Allowed, BackendProtocol
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

CHANNEL: Final = "files"
_MAX_BASE: Final = 100_000


class StateBackend(BackendProtocol):
    """Files in the `files` channel of the running graph; one instance serves all runs.

    Parallel changes to one file are merged by lines. Outside a graph run every operation raises.
    """

    def __init__(self, runtime: Any = None, *, file_format: str | None = None) -> None:
        if runtime is not None:
            warn_legacy("StateBackend(runtime) is deprecated: write StateBackend(), it finds the run itself.")
        elif file_format is not None:
            warn_legacy("StateBackend(file_format=...) is deprecated and ignored: both forms are read.")

    def capabilities(self, path: str = "/") -> Capabilities:
        """Say what this backend can do at `path`."""
        return Capabilities(delete=True, versions=True, state_files=True, host=False, in_process=True)

    @answering(LsResult)
    def ls(self, path: str, *, allowed: Allowed | None = None) -> LsResult:
        """List one directory."""
        return _flat.listing(self._read_files(), normalise(path), allowed)

    @answering(ReadResult)
    def read(
        self, file_path: str, offset: int = 0, limit: int = 2000, *, allowed: Allowed | None = None
    ) -> ReadResult:
        """Read `limit` lines from line `offset` (counted from 0); media come whole, as base64."""
        path = normalise(file_path)
        _flat.check_allowed(path, allowed)
        return _flat.page(path, _flat.found_at(self._read_files(), path), offset, limit)

    @answering(GrepResult)
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
        """Find the lines that hold `pattern`, by path and line; `max_count` caps all matches together."""
        query = Query.of(pattern, expression=regex, context=context_lines)
        wanted = _flat.Search(query, None if glob is None else checked_glob(glob), max_count)
        return _flat.search(self._read_files(), normalise(path or "/"), wanted, allowed)

    @answering(GlobResult)
    def glob(self, pattern: str, path: str | None = None, *, allowed: Allowed | None = None) -> GlobResult:
        """Find the files whose path matches `pattern`, the newest first."""
        return _flat.matching(self._read_files(), pattern, normalise(path or "/"), allowed)

    @answering(WriteResult)
    def write(
        self,
        file_path: str,
        content: str,
        *,
        expected_version: str | None = None,
        allowed: Allowed | None = None,
    ) -> WriteResult:
        """Create a file or replace it whole, unless it changed since `expected_version`."""
        path = _rewrite.file_path(file_path)
        _flat.check_allowed(path, allowed)
        current = self._read_files().get(path)
        _rewrite.check_version(path, current, expected_version)
        data = _rewrite.written(path, current, content)
        base = None if current is None else _rewrite.text_or_none(current)
        mergeable = current is None if base is None else len(base) < _MAX_BASE
        self._send_files_update({path: {**data, "base": base} if mergeable else data})
        return WriteResult(path=path, version=file_version(data))

    @answering(WriteResult)
    def append(self, file_path: str, content: str | bytes, *, allowed: Allowed | None = None) -> WriteResult:
        """Add to the end of a file; the checkpoint grows by what is added, not by what is there."""
        path = _rewrite.file_path(file_path)
        _flat.check_allowed(path, allowed)
        data = _rewrite.appended(path, self._read_files().get(path), content)
        self._send_files_update({path: FileChange(_addition(content), data)})
        return WriteResult(path=path, version=file_version(data))

    @answering(EditResult)
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
        path = _rewrite.file_path(file_path)
        _flat.check_allowed(path, allowed)
        current = _flat.found_at(self._read_files(), path)
        _rewrite.check_text(path, current)
        _rewrite.check_version(path, current, expected_version)
        data, count = _rewrite.edited(path, current, old_string, new_string, replace_all)
        change = {"edit": [old_string, new_string, replace_all], "modified_at": data.get("modified_at")}
        self._send_files_update({path: FileChange(change, data)})
        return EditResult(path=path, occurrences=count, version=file_version(data))

    @answering(DeleteResult)
    def delete(self, file_path: str, *, allowed: Allowed | None = None) -> DeleteResult:
        """Remove a file, or all files below a directory; what changes at the same time is kept."""
        path = _rewrite.deleted_path(file_path)
        _flat.check_allowed(path, allowed)
        files = self._read_files()
        gone = [path] if path in files else [key for key in files if is_within(key, path)]
        if not gone:
            raise BackendError("file_not_found", f"File '{path}' not found")
        _flat.check_all_allowed(gone, path, allowed)
        self._send_files_update({key: _deletion(files[key]) for key in gone})
        return DeleteResult(path=path)

    def upload_files(
        self, files: list[tuple[str, bytes]], *, allowed: Allowed | None = None
    ) -> list[FileUploadResponse]:
        """Write many files as bytes; the answers keep the order."""
        current = self._read_files()
        answers: list[FileUploadResponse] = []
        update: dict[str, Any] = {}
        for path, content in files:
            try:
                key = _rewrite.file_path(path)
                _flat.check_allowed(key, allowed)
                update[key] = _rewrite.uploaded(key, current.get(key), content)
                answers.append(FileUploadResponse(path))
            except BackendError as error:
                answers.append(FileUploadResponse(path, error.code))
        self._send_files_update(update)
        return answers

    def download_files(
        self, paths: list[str], *, allowed: Allowed | None = None
    ) -> list[FileDownloadResponse]:
        """Read many files as bytes; the answers keep the order."""
        files = self._read_files()
        return [_download(files, path, allowed) for path in paths]

    def _read_files(self) -> dict[str, FileData]:
        return cast("dict[str, FileData] | None", read_channel(CHANNEL)) or {}

    def _send_files_update(self, update: dict[str, Any]) -> None:
        write_channel(CHANNEL, update)


def _addition(content: str | bytes) -> dict[str, str]:
    if isinstance(content, str):
        return {"append": content, "modified_at": now()}
    return {"append": base64.b64encode(content).decode(), "encoding": "base64", "modified_at": now()}


def _deletion(data: FileData) -> dict[str, str] | None:
    return None if _rewrite.text_or_none(data) is None else {"delete": file_version(data)}


def _download(files: dict[str, FileData], path: str, allowed: Allowed | None) -> FileDownloadResponse:
    try:
        key = normalise(path)
        _flat.check_allowed(key, allowed)
        return _rewrite.downloaded(path, _flat.found_at(files, key))
    except BackendError as error:
        return FileDownloadResponse(path, error=error.code)
