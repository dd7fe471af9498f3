"""Define the results of backends, and show matches.

Each result carries `error` for readers and `code` for programs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY
from itertools import groupby
from typing import Any, Final, Literal, NotRequired, cast, get_args

from typing_extensions import TypedDict

from deepagents._deprecation import warn_legacy
from deepagents._text import Window
from deepagents._values import field, frozenclass, recordclass
from deepagents.errors import BackendError, ErrorCode

FILE_NOT_FOUND: Final = "file_not_found"
PERMISSION_DENIED: Final = "permission_denied"
IS_DIRECTORY: Final = "is_directory"
INVALID_PATH: Final = "invalid_path"
FileOperationError = Literal["file_not_found", "permission_denied", "is_directory", "invalid_path"]
OutputMode = Literal["files_with_matches", "content", "count"]
GlobTruncationReason = Literal["budget", "unreadable", "transport"]


NO_MATCHES = "No matches found"
EMPTY_FILE: Final = "System reminder: File exists but has empty contents"
_PROBLEMS_SHOWN: Final = 10
_LOOKS_LIKE_REGEX = re.compile(r"\\[|.*+?()\[\]{}^$wdsbWDSB]|\.[*+]|\|")


class FileData(TypedDict):
    """A file at rest in state or in a store."""

    content: str | list[str]
    encoding: NotRequired[str]
    created_at: NotRequired[str]
    modified_at: NotRequired[str]


class FileInfo(TypedDict):
    """An entry of a listing. Directories end in `/`; `size` is in bytes, `modified_at` is ISO 8601."""

    path: str
    is_dir: NotRequired[bool]
    size: NotRequired[int]
    modified_at: NotRequired[str]


class ContextLine(TypedDict):
    """A line around a match; `line` counts from 1."""

    line: int
    text: str


class GrepMatch(TypedDict):
    """A line that holds the pattern; `line` counts from 1."""

    path: str
    line: int
    text: str
    context_before: NotRequired[list[ContextLine]]
    context_after: NotRequired[list[ContextLine]]


class ExecuteArtifact(TypedDict):
    """Facts about a finished command, for programs."""

    exit_code: NotRequired[int]
    truncated: NotRequired[bool]
    output_file: NotRequired[str]
    command_id: NotRequired[str]


@recordclass
class FileDownloadResponse:
    """The bytes of one file, or why there are none."""

    path: str
    content: bytes | None = None
    error: FileOperationError | str | None = None


@recordclass
class FileUploadResponse:
    """The outcome of uploading one file."""

    path: str
    error: FileOperationError | str | None = None


@recordclass
class ReadResult:
    """A window of a file. `start_line` and `end_line` count from 1, both included; `next_offset` from 0.

    Raises:
        ValueError: when the window's fields contradict each other.
    """

    error: str | None = None
    file_data: FileData | None = None
    total_lines: int | None = None
    start_line: int | None = None
    end_line: int | None = None
    next_offset: int | None = None
    no_lines_requested: bool = False
    _: KW_ONLY
    code: ErrorCode | None = None
    version: str | None = None

    def __post_init__(self) -> None:
        problem = self._contradiction()
        if problem:
            raise ValueError(f"ReadResult: {problem}")

    def _contradiction(self) -> str | None:
        start, end = self.start_line, self.end_line
        rest = (self.total_lines, self.next_offset)
        if (start is None) != (end is None):
            return f"start_line {start!r} and end_line {end!r} must be given together"
        if self.no_lines_requested and (self.error or start is not None or rest != (None, None)):
            return "no_lines_requested goes with no error and no window"
        if start is None or end is None:
            return None if rest == (None, None) else "total_lines and next_offset need a window"
        return self._bad_window(start, end)

    def _bad_window(self, start: int, end: int) -> str | None:
        if start < 1 or end < start:
            return f"lines {start} to {end} are not a window"
        if self.total_lines is not None and self.total_lines < end:
            return f"total_lines {self.total_lines} is less than end_line {end}"
        if self.next_offset is not None and self.next_offset != end:
            return f"next_offset {self.next_offset} must equal end_line {end}"
        return None


def page_result(file: FileData | None, page: Window, version: str | None = None) -> ReadResult:
    """Make the result of reading some lines of a file."""
    return ReadResult(
        file_data=file,
        total_lines=page.total,
        start_line=page.start,
        end_line=page.end,
        next_offset=page.next_offset,
        no_lines_requested=page.no_lines_requested,
        version=version,
    )


@recordclass
class WriteResult:
    """The outcome of a write; `version` names the new content.

    `created` is `None` where it is not known whether the file was there, and `new_folders` counts the folders
    above it that were made. `note` is what the model is to read with the outcome.
    """

    error: str | None = None
    path: str | None = None
    files_update: Mapping[str, Any] | None = None
    _: KW_ONLY
    code: ErrorCode | None = None
    version: str | None = None
    created: bool | None = field(default=None, compare=False)
    new_folders: int = field(default=0, compare=False)
    note: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        _warn_of_files(self.files_update)


@recordclass
class EditResult:
    """The outcome of an edit: how many occurrences were replaced; `version` names the new content.

    `note` is what the model is to read with the outcome.
    """

    error: str | None = None
    path: str | None = None
    occurrences: int | None = None
    files_update: Mapping[str, Any] | None = None
    _: KW_ONLY
    code: ErrorCode | None = None
    version: str | None = None
    note: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        # Older backends gave `files_update` as the third value by position.
        third: object = self.occurrences
        if isinstance(third, Mapping):
            self.occurrences = cast("int | None", self.files_update)
            self.files_update = cast("Mapping[str, Any]", third)
        _warn_of_files(self.files_update)


@recordclass
class DeleteResult:
    """The outcome of a deletion."""

    error: str | None = None
    path: str | None = None
    _: KW_ONLY
    code: ErrorCode | None = None


@recordclass
class LsResult:
    """The entries of one directory. An error may come with the entries that could be read."""

    error: str | None = None
    entries: list[FileInfo] | None = None
    _: KW_ONLY
    code: ErrorCode | None = None


@recordclass
class GrepResult:
    """The lines that hold a pattern. An error may come with the matches that were found."""

    error: str | None = None
    matches: list[GrepMatch] | None = None
    truncated: bool = False
    _: KW_ONLY
    code: ErrorCode | None = None


@recordclass
class GlobResult:
    """The files that match a pattern; `truncation_reason` says why some may be missing."""

    error: str | None = None
    matches: list[FileInfo] | None = None
    truncated: bool = False
    truncation_reason: GlobTruncationReason | None = None
    _: KW_ONLY
    code: ErrorCode | None = None


@recordclass
class ExecuteResponse:
    """The output of a command and how it ended; `exit_code` is `None` when unknown.

    `refused` are sentences about hosts that the command was kept from; the output need not repeat them.
    """

    output: str
    exit_code: int | None = None
    truncated: bool = False
    refused: tuple[str, ...] = ()


@frozenclass
class CommandStatus:
    """What a command in the background printed from an offset on; `exit_code` is `None` while it runs.

    `next_offset` is where to read on. `left_out` counts characters from the offset on that are not kept.
    `refused` are sentences about all hosts that the command was kept from so far.
    """

    output: str
    next_offset: int
    exit_code: int | None = None
    left_out: int = 0
    refused: tuple[str, ...] = ()


@frozenclass
class ExecuteOffloadResult:
    """A command's output, kept in a file when it was too large to return."""

    offloaded: bool
    response: ExecuteResponse
    preview_has_truncation_marker: bool = False


def _warn_of_files(update: Mapping[str, Any] | None) -> None:
    if update is not None:
        warn_legacy(
            "A result's files_update is deprecated: a backend keeps files itself, as StateBackend does."
        )


def transfer_error(error: BackendError) -> FileOperationError | str:
    """Return the error of one file of a transfer: one of the four codes where one fits, or the text."""
    match error.code:
        case "file_not_found" | "permission_denied" | "is_directory" | "invalid_path":
            return error.code
        case "not_a_directory":
            return "invalid_path"
        case _:
            return error.text


def transfer_code(error: str) -> ErrorCode:
    """Return the code for the error of one file of a transfer, which may be a code itself."""
    return cast("ErrorCode", error) if error in get_args(ErrorCode) else "io_error"


def format_grep_matches(matches: Sequence[GrepMatch], output_mode: OutputMode = "files_with_matches") -> str:
    """Show matches as paths, as counts for each path, or as the lines themselves."""
    if not matches:
        return NO_MATCHES
    ordered = sorted(matches, key=lambda match: (match["path"], match["line"]))
    by_path = [(path, list(group)) for path, group in groupby(ordered, key=lambda match: match["path"])]
    match output_mode:
        case "files_with_matches":
            return "\n".join(path for path, _ in by_path)
        case "count":
            return "\n".join(f"{path}: {len(group)}" for path, group in by_path)
        case "content":
            return "\n".join(line for path, group in by_path for line in (f"{path}:", *_lines(group)))


def describe_unread(problems: Sequence[str], what_not: str = "fully searched") -> str | None:
    """Say which files could not be searched or read, if there are such, and why; of many, the first ten."""
    if not problems:
        return None
    more = len(problems) - _PROBLEMS_SHOWN
    rest = [f"- and {more} more"] if more > 0 else []
    shown = [f"- {each}" for each in problems[:_PROBLEMS_SHOWN]]
    return "\n".join([f"Some files could not be {what_not}:", *shown, *rest])


def regex_literal_hint(pattern: str) -> str | None:
    """Explain an empty literal search whose pattern looks like a regular expression."""
    if not _LOOKS_LIKE_REGEX.search(pattern):
        return None
    return f"The pattern {pattern!r} was searched literally; for a regular expression set regex=true."


def _lines(group: Iterable[GrepMatch]) -> list[str]:
    shown: dict[int, str] = {}
    with_context = False
    for match in group:
        around = [*match.get("context_before", ()), *match.get("context_after", ())]
        with_context = with_context or "context_before" in match
        for line in around:
            shown.setdefault(line["line"], f"  {line['line']}- {line['text']}")
        shown[match["line"]] = f"  {match['line']}: {match['text']}"
    numbers = sorted(shown)
    rows: list[str] = []
    for before, number in zip([None, *numbers], numbers, strict=False):
        if with_context and before is not None and number > before + 1:
            rows.append("  --")
        rows.append(shown[number])
    return rows
