"""Keep helpers of earlier versions, in terms of what there is today."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias

from deepagents._compat.utils import (
    check_empty_content,
    format_content_with_line_numbers,
    slice_read_response,
)
from deepagents._text import split_lines
from deepagents.backends.filedata import file_data_to_string
from deepagents.backends.results import FileData
from deepagents.permissions import FilesystemOperation, FilesystemPermission, Mode, Rules
from deepagents.tools import FILE_TOOLS
from deepagents.tools.search import GrepSchema

FileFormat: TypeAlias = Literal["v1", "v2"]
LINE_NUMBER_WIDTH: Final = 6
GREP_GLOB_DESCRIPTION: Final = GrepSchema.model_fields["glob"].description
TOOLS_EXCLUDED_FROM_EVICTION: Final = tuple(spec.name for spec in FILE_TOOLS if not spec.offload_result)


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


def raise_if_symlink_loop(path: Path) -> None:
    """Follow the links of a path.

    Raises:
        OSError: `ELOOP` when they lead in a circle.
    """
    try:
        path.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise


def check_fs_permission(
    rules: Sequence[FilesystemPermission], operation: FilesystemOperation, path: str
) -> Mode:
    """Return what rules decide about a path."""
    return Rules(rules).decide(operation, path)
