"""Files in the state of a graph: they live and die with the thread."""

from __future__ import annotations

import base64
from typing import Any, Final, cast

from deepagents._deprecation import warn_legacy
from deepagents._globs import parse_glob
from deepagents._paths import is_within, normalise
from deepagents._state.runtime import read_channel, write_channel
from deepagents.backends import filedata
from deepagents.backends._query import Query
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.file_changes import FileChange
from deepagents.backends.file_mapping import (
    MappingSearch,
    check_all_allowed,
    file_at,
    find_files,
    list_directory,
    search_files,
)
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
    errors_as_result,
)
from deepagents.errors import BackendError

CHANNEL: Final = "files"
# Characters. The base is kept with each write, so above this the thread would grow twice as fast.
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
        """Return what this backend can do at `path`."""
        return Capabilities(delete=True, versions=True, state_files=True, host=False, in_process=True)

    @errors_as_result(LsResult)
    def ls(self, path: str, *, allowed: Allowed | None = None) -> LsResult:
        """List one directory."""
        return list_directory(self._read_files(), normalise(path), allowed)

    @errors_as_result(ReadResult)
    def read(
        self, file_path: str, offset: int = 0, limit: int = 2000, *, allowed: Allowed | None = None
    ) -> ReadResult:
        """Read `limit` lines from line `offset` (counted from 0); media come whole, as base64."""
        path = normalise(file_path)
        filedata.check_allowed(path, allowed)
        return filedata.read_page(path, file_at(self._read_files(), path), offset, limit)

    @errors_as_result(GrepResult)
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
        wanted = MappingSearch(query, None if glob is None else parse_glob(glob), max_count)
        return search_files(self._read_files(), normalise(path or "/"), wanted, allowed)

    @errors_as_result(GlobResult)
    def glob(self, pattern: str, path: str | None = None, *, allowed: Allowed | None = None) -> GlobResult:
        """Find the files whose path matches `pattern`, the newest first."""
        return find_files(self._read_files(), pattern, normalise(path or "/"), allowed)

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
        path = filedata.normalise_file(file_path)
        filedata.check_allowed(path, allowed)
        current = self._read_files().get(path)
        filedata.check_version(path, current, expected_version)
        data = filedata.make_written(path, current, content)
        # The reducer merges by lines what several writers made of one base; without it the last one wins.
        base = None if current is None else filedata.text_or_none(current)
        mergeable = current is None if base is None else len(base) < _MAX_BASE
        result = WriteResult(path=path, version=filedata.file_version(data))
        write_channel(CHANNEL, {path: {**data, "base": base} if mergeable else data})
        return result

    @errors_as_result(WriteResult)
    def append(self, file_path: str, content: str | bytes, *, allowed: Allowed | None = None) -> WriteResult:
        """Add to the end of a file; the checkpoint grows by what is added, not by what is there."""
        path = filedata.normalise_file(file_path)
        filedata.check_allowed(path, allowed)
        data = filedata.append_checked(path, self._read_files().get(path), content)
        write_channel(CHANNEL, {path: FileChange(_addition(content), data)})
        return WriteResult(path=path, version=filedata.file_version(data))

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
        path = filedata.normalise_file(file_path)
        filedata.check_allowed(path, allowed)
        current = file_at(self._read_files(), path)
        filedata.check_text(path, current)
        filedata.check_version(path, current, expected_version)
        data, count = filedata.make_edited(path, current, old_string, new_string, replace_all)
        edit = {"edit": [old_string, new_string, replace_all], "modified_at": data.get("modified_at")}
        write_channel(CHANNEL, {path: FileChange(edit, data)})
        return EditResult(path=path, occurrences=count, version=filedata.file_version(data))

    @errors_as_result(DeleteResult)
    def delete(self, file_path: str, *, allowed: Allowed | None = None) -> DeleteResult:
        """Remove a file, or all files below a directory; what changes at the same time is kept."""
        path = filedata.normalise_deleted(file_path)
        filedata.check_allowed(path, allowed)
        files = self._read_files()
        gone = [path] if path in files else [key for key in files if is_within(key, path)]
        if not gone:
            raise BackendError("file_not_found", f"File '{path}' not found")
        check_all_allowed(gone, path, allowed)
        # With the version, so that a file that another task of this step changes is not lost.
        write_channel(CHANNEL, {key: _deletion(files[key]) for key in gone})
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
                key = filedata.normalise_file(path)
                filedata.check_allowed(key, allowed)
                update[key] = filedata.make_uploaded(key, current.get(key), content)
                answers.append(FileUploadResponse(path))
            except BackendError as error:
                answers.append(FileUploadResponse(path, error.code))
        # One write for all, after all are checked: each write is an entry in the checkpoint.
        write_channel(CHANNEL, update)
        return answers

    def download_files(
        self, paths: list[str], *, allowed: Allowed | None = None
    ) -> list[FileDownloadResponse]:
        """Read many files as bytes; the answers keep the order."""
        files = self._read_files()
        return [_download(files, path, allowed) for path in paths]

    def _read_files(self) -> dict[str, FileData]:
        return cast("dict[str, FileData] | None", read_channel(CHANNEL)) or {}


def _addition(content: str | bytes) -> dict[str, str]:
    if isinstance(content, str):
        return {"append": content, "modified_at": filedata.now()}
    added = base64.b64encode(content).decode()
    return {"append": added, "encoding": "base64", "modified_at": filedata.now()}


def _deletion(data: FileData) -> dict[str, str] | None:
    return None if filedata.text_or_none(data) is None else {"delete": filedata.file_version(data)}


def _download(files: dict[str, FileData], path: str, allowed: Allowed | None) -> FileDownloadResponse:
    try:
        key = normalise(path)
        filedata.check_allowed(key, allowed)
        return filedata.read_download(path, file_at(files, key))
    except BackendError as error:
        return FileDownloadResponse(path, error=error.code)
