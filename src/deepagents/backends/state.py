"""Files in the state of a graph: they live and die with the thread."""

from __future__ import annotations

from typing import Any, Final, cast

from deepagents._channels import read_channel, write_channel
from deepagents._deprecation import warn_legacy
from deepagents._globs import checked_glob
from deepagents._paths import is_within, normalise
from deepagents._text import keep_line_endings, replace_exact
from deepagents.backends import _flat
from deepagents.backends._flat import answering
from deepagents.backends._search import Query
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.filedata import (
    create_file_data,
    file_data_to_bytes,
    file_data_to_string,
    file_version,
    is_base64,
    now,
)
from deepagents.backends.kinds import as_content
from deepagents.backends.protocol import BackendProtocol
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
        return Capabilities(delete=True, versions=True, state_files=True, in_process=True)

    @answering(LsResult)
    def ls(self, path: str) -> LsResult:
        """List one directory."""
        return LsResult(entries=_flat.entries(self._read_files(), normalise(path)))

    @answering(ReadResult)
    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        """Read `limit` lines from line `offset` (counted from 0); media come whole, as base64."""
        path = normalise(file_path)
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
    ) -> GrepResult:
        """Find the lines that hold `pattern`, by path and line; `max_count` caps all matches together."""
        query = Query.of(pattern, expression=regex, context=context_lines)
        wanted = _flat.Search(query, None if glob is None else checked_glob(glob), max_count)
        return _flat.search(self._read_files(), normalise(path or "/"), wanted)

    @answering(GlobResult)
    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        """Find the files whose path matches `pattern`, the newest first."""
        return GlobResult(matches=_flat.matching(self._read_files(), pattern, normalise(path or "/")))

    @answering(WriteResult)
    def write(self, file_path: str, content: str, *, expected_version: str | None = None) -> WriteResult:
        """Create a file or replace it whole, unless it changed since `expected_version`."""
        path = _file_path(file_path)
        current = self._read_files().get(path)
        _check_version(path, current, expected_version)
        base = None if current is None else _text_or_none(current)
        if current is not None and base is not None and not is_base64(current):
            content = keep_line_endings(base, content)
        data = create_file_data(content, None if current is None else current.get("created_at"))
        mergeable = current is None if base is None else len(base) < _MAX_BASE
        self._send_files_update({path: {**data, "base": base} if mergeable else data})
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
    ) -> EditResult:
        """Replace exact text, unless the file changed since `expected_version`."""
        path = _file_path(file_path)
        current = _flat.found_at(self._read_files(), path)
        if is_base64(current):
            raise BackendError(
                "invalid_encoding", f"Cannot edit binary files: '{path}' holds bytes, not text."
            )
        _check_version(path, current, expected_version)
        done = replace_exact(_flat.text_of(path, current), old_string, new_string, replace_all)
        self._send_files_update({path: {"edit": [old_string, new_string, replace_all], "modified_at": now()}})
        version = file_version({**current, "content": done.content})
        return EditResult(path=path, occurrences=done.count, version=version)

    @answering(DeleteResult)
    def delete(self, file_path: str) -> DeleteResult:
        """Remove a file, or all files below a directory; what changes at the same time is kept."""
        path = _file_path(file_path)
        gone = {key: data for key, data in self._read_files().items() if is_within(key, path)}
        if not gone:
            raise BackendError("file_not_found", f"File '{path}' not found")
        self._send_files_update({key: _deletion(data) for key, data in gone.items()})
        return DeleteResult(path=path)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Write many files as bytes; the answers keep the order."""
        answers: list[FileUploadResponse] = []
        update: dict[str, Any] = {}
        for path, data in files:
            try:
                content, encoding = as_content(path, data)
                update[_file_path(path)] = create_file_data(content, encoding=encoding)
                answers.append(FileUploadResponse(path))
            except BackendError as error:
                answers.append(FileUploadResponse(path, error.code))
        self._send_files_update(update)
        return answers

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Read many files as bytes; the answers keep the order."""
        files = self._read_files()
        return [_download(files, path) for path in paths]

    def _read_files(self) -> dict[str, FileData]:
        return cast("dict[str, FileData] | None", read_channel(CHANNEL)) or {}

    def _send_files_update(self, update: dict[str, Any]) -> None:
        write_channel(CHANNEL, update)


def _file_path(path: str) -> str:
    normal = normalise(path)
    if normal == "/":
        raise BackendError(
            "invalid_path", f"{path!r} is the root of all files. Name a file or directory below it."
        )
    return normal


def _check_version(path: str, current: FileData | None, expected: str | None) -> None:
    if expected is None:
        return
    if current is None:
        raise BackendError(
            "stale_version",
            f"File '{path}' was deleted since it was read. List its directory, then decide again.",
        )
    if _text_or_none(current) is None or file_version(current) != expected:
        raise BackendError(
            "stale_version",
            f"File '{path}' changed since it was read. Read it again, then redo the change on what it holds.",
        )


def _text_or_none(data: FileData) -> str | None:
    try:
        return file_data_to_string(data)
    except TypeError:
        return None


def _deletion(data: FileData) -> dict[str, str] | None:
    return None if _text_or_none(data) is None else {"delete": file_version(data)}


def _download(files: dict[str, FileData], path: str) -> FileDownloadResponse:
    try:
        return FileDownloadResponse(path, file_data_to_bytes(_flat.found_at(files, normalise(path))))
    except BackendError as error:
        return FileDownloadResponse(path, error=error.code)
    except (TypeError, ValueError) as error:
        return FileDownloadResponse(path, error=f"Error reading file '{path}': {error}")
