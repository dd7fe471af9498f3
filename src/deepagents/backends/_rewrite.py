"""What a write, an edit and an upload make of a file that is kept whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deepagents._paths import normalise
from deepagents._text import keep_line_endings, replace_exact
from deepagents.backends import filedata
from deepagents.backends._flat import text_of
from deepagents.backends.filedata import (
    checked_addition,
    checked_bytes,
    create_file_data,
    encoded,
    file_data_to_bytes,
    file_data_to_string,
    file_version,
    is_text,
    update_file_data,
)
from deepagents.backends.kinds import as_content
from deepagents.backends.results import FileData, FileDownloadResponse
from deepagents.errors import BackendError


def file_path(path: str) -> str:
    """Normalise the path of a file.

    Raises:
        BackendError: `invalid_path`, or `is_directory` for the root.
    """
    normal = normalise(path)
    if normal == "/":
        raise BackendError("is_directory", f"'{normal}' is a directory. Name a file in it.")
    return normal


def deleted_path(path: str) -> str:
    """Normalise the path of a file or directory that may be deleted.

    Raises:
        BackendError: `invalid_path`, also for the root.
    """
    normal = normalise(path)
    if normal == "/":
        raise BackendError("invalid_path", f"Error deleting '{normal}': the root cannot be deleted.")
    return normal


def check_version(path: str, current: FileData | None, expected: str | None) -> None:
    """Refuse a change to a file that is no longer what its writer saw.

    Raises:
        BackendError: `stale_version`.
    """
    if expected is None:
        return
    if current is None:
        raise BackendError(
            "stale_version",
            f"File '{path}' was deleted since it was read. List its directory, then decide again.",
        )
    if text_or_none(current) is None or file_version(current) != expected:
        raise BackendError(
            "stale_version",
            f"File '{path}' changed since it was read. Read it again, then redo the change on what it holds.",
        )


def check_text(path: str, current: FileData) -> None:
    """Refuse to edit a file that holds bytes.

    Raises:
        BackendError: `invalid_encoding`.
    """
    if text_or_none(current) is not None and not is_text(path, current):
        raise BackendError("invalid_encoding", f"Cannot edit binary files: '{path}' holds bytes, not text.")


def written(path: str, current: FileData | None, content: str) -> FileData:
    """Make a file of text, with the time of creation and the line endings of the one that it replaces.

    Raises:
        BackendError: `invalid_encoding` for text that is not Unicode, `invalid_argument` for no text.
    """
    data = encoded(content)
    before = None if current is None else text_or_none(current)
    if current is not None and before is not None and is_text(path, current):
        data = encoded(keep_line_endings(before, content))
    return uploaded(path, current, data)


def edited(path: str, current: FileData, old: str, new: str, replace_all: bool) -> tuple[FileData, int]:
    """Replace exact text; return the file and the number of places.

    Raises:
        BackendError: for text that is not there or not clear, and a file that is not text.
    """
    check_text(path, current)
    encoded(old)
    encoded(new)
    done = replace_exact(text_of(path, current), old, new, replace_all)
    return update_file_data(current, done.content), done.count


def appended(path: str, current: FileData | None, content: str | bytes) -> FileData:
    """Make a file that has something more at its end.

    Raises:
        BackendError: `invalid_encoding` for text that is not Unicode, `invalid_argument` for neither text nor
            bytes, `io_error` when what is there cannot be read.
    """
    added = checked_addition(path, content)
    try:
        return filedata.appended(path, current, added)
    except (TypeError, ValueError) as error:
        raise BackendError("io_error", f"Error reading file '{path}': {error}") from error


def uploaded(path: str, current: FileData | None, content: bytes) -> FileData:
    """Make a file of bytes, with the time of creation of the one that it replaces.

    Raises:
        BackendError: `invalid_argument`, for what is no bytes.
    """
    text, encoding = as_content(path, checked_bytes(path, content))
    return create_file_data(text, current.get("created_at") if current else None, encoding)


def downloaded(path: str, current: FileData) -> FileDownloadResponse:
    """Return the bytes of a file."""
    try:
        return FileDownloadResponse(path, file_data_to_bytes(current))
    except (TypeError, ValueError) as error:
        return FileDownloadResponse(path, error=f"Error reading file '{path}': {error}")


def text_or_none(data: Mapping[str, Any]) -> str | None:
    """Return the content of a file, `None` when it is of a wrong type."""
    try:
        return file_data_to_string(data)
    except TypeError:
        return None
