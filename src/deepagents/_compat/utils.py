"""Offer helpers for text, paths and globs as earlier versions had them; the work is done elsewhere."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from deepagents._globs import GlobPattern, InvalidGlobPatternError, compile_glob
from deepagents._paths import normalise
from deepagents._text import is_blank, number_lines, replace_exact, truncate, window
from deepagents.backends._query import Query
from deepagents.backends.filedata import file_data_to_string, is_base64
from deepagents.backends.keyed_files import search_files
from deepagents.backends.results import EMPTY_FILE, FileData, GrepMatch, GrepResult, ReadResult, page_result
from deepagents.errors import BackendError

TOOL_RESULT_TOKEN_LIMIT: Final = 20_000
TRUNCATION_GUIDANCE: Final = "... [results truncated: narrow the request to see the rest]"
TRUNCATION_MARKER_TEMPLATE: Final = "... [{omitted_lines} lines truncated] ..."

_CHARACTERS: Final = 4 * TOOL_RESULT_TOKEN_LIMIT
_LONGEST_ID: Final = 128


def sanitize_tool_call_id(tool_call_id: str) -> str:
    """Make a file name of the id of a tool call."""
    name = re.sub(r"[./\\]", "_", tool_call_id)
    # File systems take names of 255 bytes; some providers make ids longer than that.
    if len(name.encode("utf-8", "surrogatepass")) <= _LONGEST_ID:
        return name
    return "call-" + hashlib.sha256(tool_call_id.encode("utf-8", "surrogatepass")).hexdigest()


def format_content_with_line_numbers(content: str | Sequence[str], start_line: int = 1) -> str:
    """Number lines as `cat -n` does."""
    return number_lines(content if isinstance(content, str) else "\n".join([*content, ""]), start_line)


def check_empty_content(content: str) -> str | None:
    """Return a reminder for a blank text, `None` for any other."""
    return EMPTY_FILE if is_blank(content) else None


def normalize_read_bounds(offset: int, limit: int) -> tuple[int, int]:
    """Make both bounds whole numbers that are not negative."""
    return max(int(offset), 0), max(int(limit), 0)


def slice_read_response(file_data: FileData, offset: int, limit: int) -> ReadResult:
    """Return a window of a file's text."""
    try:
        shown = window(file_data_to_string(file_data), *normalize_read_bounds(offset, limit))
    except BackendError as error:
        return ReadResult(error=error.text, code=error.code)
    return page_result({**file_data, "content": shown.text}, shown)


def perform_string_replacement(
    content: str, old_string: str, new_string: str, replace_all: bool = False
) -> tuple[str, int] | str:
    """Return the new content and the number of replacements, or a sentence that says what is wrong."""
    try:
        return replace_exact(content, old_string, new_string, replace_all)
    except BackendError as error:
        return f"Error: {error.text}"


def truncate_if_too_long(result: str | Sequence[str]) -> str | list[str]:
    """Cut a text, or a list of them, to what one tool result may hold."""
    if isinstance(result, str):
        return truncate(result, _CHARACTERS, f"\n{TRUNCATION_GUIDANCE}")
    kept: list[str] = []
    room = _CHARACTERS
    for item in result:
        room -= len(repr(item)) + 2
        if room < 0:
            return [*kept, TRUNCATION_GUIDANCE]
        kept.append(item)
    return kept


def validate_path(path: str, *, allowed_prefixes: Sequence[str] | None = None) -> str:
    """Normalise a virtual path.

    Raises:
        ValueError: when the path could leave its root, or starts with none of the prefixes.
    """
    try:
        normal = normalise(path)
    except BackendError as error:
        raise ValueError(error.text) from error
    if allowed_prefixes is not None and not normal.startswith(tuple(allowed_prefixes)):
        raise ValueError(f"Path must start with one of {list(allowed_prefixes)}: {path!r}")
    return normal


def to_posix_path(path: str) -> str:
    """Write a path with `/`."""
    return path.replace("\\", "/")


def grep_matches_from_files(
    files: Mapping[str, Any],
    pattern: str,
    path: str | None = None,
    glob: str | None = None,
    *,
    max_count: int | None = None,
) -> GrepResult:
    """Search files in a mapping, literally."""
    try:
        root = normalise(path or "/")
    except BackendError:
        return GrepResult(matches=[])
    try:
        matching: GlobPattern | None = None if glob is None else compile_glob(glob)
    except InvalidGlobPatternError as error:
        return GrepResult(error=str(error), code="invalid_pattern")
    plain = {key: data for key, data in files.items() if not is_base64(data)}
    return search_files(plain, root, Query.of(pattern), matching, max_count)


def build_grep_results_dict(matches: Sequence[GrepMatch]) -> dict[str, list[tuple[int, str]]]:
    """Group matches by path."""
    grouped: dict[str, list[tuple[int, str]]] = {}
    for match in matches:
        grouped.setdefault(match["path"], []).append((match["line"], match["text"]))
    return grouped
