"""Small things that earlier versions had beside their backends, in terms of what there is today."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

from deepagents._text import split_lines
from deepagents.backends.filedata import file_data_to_string
from deepagents.backends.filesystem.faults import code_of
from deepagents.backends.matches import OutputMode, format_grep_matches, regex_literal_hint
from deepagents.backends.protocol import BackendProtocol, accepts
from deepagents.backends.results import (
    FILE_NOT_FOUND,
    INVALID_PATH,
    IS_DIRECTORY,
    PERMISSION_DENIED,
    FileData,
    FileOperationError,
)
from deepagents.backends.utils import (
    check_empty_content,
    format_content_with_line_numbers,
    grep_matches_from_files,
    slice_read_response,
)

FileFormat: TypeAlias = Literal["v1", "v2"]
LINE_NUMBER_WIDTH: Final = 6

_STANDARD: Final = frozenset({FILE_NOT_FOUND, PERMISSION_DENIED, IS_DIRECTORY, INVALID_PATH})


def supports_delete(backend: BackendProtocol) -> bool:
    """Tell whether a backend can delete."""
    return backend.capabilities().delete


def accepts_max_count(backend: type[BackendProtocol], method: str = "grep") -> bool:
    """Tell whether a class's search takes `max_count`."""
    return accepts(backend, method.removeprefix("a"), "max_count")


def standard_error(error: Exception) -> FileOperationError | None:
    """Return the standard code of what the system refused, if it is one of these."""
    code = code_of(error) if isinstance(error, OSError) else "io_error"
    return cast("FileOperationError", code) if code in _STANDARD else None


def looks_like_regex(pattern: str) -> bool:
    """Tell whether a pattern was surely meant as a regular expression."""
    return regex_literal_hint(pattern) is not None


def to_legacy_file_data(file_data: FileData) -> dict[str, Any]:
    """Return a file with its content as a list of lines, and without encoding."""
    older = {key: value for key, value in file_data.items() if key != "encoding"}
    return {**older, "content": file_data_to_string(file_data).split("\n")}


def format_read_response(file_data: FileData, offset: int, limit: int) -> str:
    """Return a window of a file with numbered lines, or a sentence that says what is wrong."""
    empty = check_empty_content(file_data_to_string(file_data))
    if empty is not None:
        return empty
    page = slice_read_response(file_data, offset, limit)
    if page.error or page.file_data is None:
        return f"Error: {page.error}"
    lines = split_lines(file_data_to_string(page.file_data))
    return format_content_with_line_numbers(lines, page.start_line or 1)


def grep_search_files(
    files: Mapping[str, Any],
    pattern: str,
    path: str | None = None,
    glob: str | None = None,
    output_mode: OutputMode = "files_with_matches",
) -> str:
    """Search files in a mapping, literally, and return what a reader sees of it."""
    found = grep_matches_from_files(files, pattern, path, glob)
    return found.error or format_grep_matches(found.matches or [], output_mode)


def raise_if_symlink_loop(path: Path) -> None:
    """Look where a path leads.

    Raises:
        OSError: `ELOOP` when its links lead in a circle.
    """
    try:
        path.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise
