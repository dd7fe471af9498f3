"""List a directory, find files by name, and find text in files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias, TypeVar

from pydantic import Field, PositiveInt

from deepagents._paths import normalise
from deepagents._text import cut_line, escape_controls, format_size
from deepagents.backends.results import (
    FileInfo,
    GlobResult,
    GrepMatch,
    GrepResult,
    LsResult,
    OutputMode,
    format_grep_matches,
    regex_literal_hint,
)
from deepagents.errors import ToolFailure
from deepagents.tools._arguments import Arguments
from deepagents.tools._missing import describe_instead
from deepagents.tools._offered import if_offered
from deepagents.tools._tool import ToolContext, ToolOutput, ToolSpec

T = TypeVar("T")
Found: TypeAlias = LsResult | GlobResult | GrepResult

GLOB_TRUNCATION_NOTE: Final = (
    "The search stopped early, so files may be missing. Narrow the pattern or give a path."
)
GLOB_UNREADABLE_NOTE: Final = (
    "Some directories could not be read, so files may be missing; narrowing will not help."
)
GLOB_TIMEOUT: Final = 10.0
"""Seconds that the tool waits for a backend."""
GREP_TRUNCATION_NOTE: Final = (
    "The search stopped early, so matches may be missing. Narrow it by path or glob."
)
_NOTHING_FOUND: Final = "No files found"
_MOST_OF_A_LINE: Final = 5_000


class LsSchema(Arguments):
    """The arguments of `ls`."""

    path: str = Field(description="Absolute directory path.")


async def _ls(context: ToolContext, path: str) -> ToolOutput:
    try:
        listing = await context.files.ls(normalise(path))
    except ToolFailure as failure:
        if failure.code != "not_a_directory":
            raise
        way_out = if_offered("read_file", " To see it call read_file.")
        raise ToolFailure(failure.code, f"{failure.text}{way_out}") from failure
    entries = sorted(_require_some(listing, listing.entries), key=lambda entry: entry["path"])
    lines = [_show_entry(context, entry) for entry in entries] or [_NOTHING_FOUND]
    more = f"entries.{if_offered('glob', ' Find them with glob and a narrower pattern.')}"
    return _render_listing(context, lines, more, listing)


def _show_entry(context: ToolContext, entry: FileInfo) -> str:
    path = _show_path(context, entry["path"])
    if entry.get("is_dir"):
        return f"{path.rstrip('/')}/"
    size = entry.get("size")
    modified = entry.get("modified_at", "")[:16].replace("T", " ")
    return "  ".join(filter(None, [path, "" if size is None else format_size(size), modified]))


def _show_path(context: ToolContext, path: str) -> str:
    return escape_controls(context.paths.show(path))


LS = ToolSpec(
    "ls",
    "List a directory: one entry a line, with size and time of change.",
    LsSchema,
    _ls,
    effect="search",
    path_argument="path",
    offload_result=False,
    summary_arguments=("path",),
    result_unit="entry",
)


class GlobSchema(Arguments):
    """The arguments of `glob`."""

    pattern: str = Field(description="e.g. *.py (any depth), src/**/*.ts, /*.md (top level only), {a,b}.txt")
    path: str | None = Field(
        default=None, description="Directory to search; default: the backend's default root."
    )


async def _glob(context: ToolContext, pattern: str, path: str | None = None) -> ToolOutput:
    root = None if path is None else normalise(path)
    found = await context.files.glob(context.paths.own_pattern(pattern, root), root, GLOB_TIMEOUT)
    matches = _require_some(found, found.matches)
    paths = sorted(_show_path(context, match["path"]) for match in matches)
    more = "files match. Narrow the pattern or give a path."
    note = GLOB_UNREADABLE_NOTE if found.truncation_reason == "unreadable" else GLOB_TRUNCATION_NOTE
    note = note if found.truncated else None if paths else await _explain_nothing(context, root)
    return _render_listing(context, paths or [_NOTHING_FOUND], more, found, note)


GLOB = ToolSpec(
    "glob",
    "Find files by pattern. A name without / is found at any depth.",
    GlobSchema,
    _glob,
    effect="search",
    path_argument="path",
    offload_result=False,
    summary_arguments=("pattern", "path"),
    result_unit="path",
)


class GrepSchema(Arguments):
    """The arguments of `grep`."""

    pattern: str = Field(description="Text to find, literally.")
    path: str | None = Field(default=None, description="File or directory to search; default: everything.")
    glob: str | None = Field(default=None, description="Only files that match this pattern, e.g. *.py")
    output_mode: Literal["files_with_matches", "content", "count"] = Field(default="files_with_matches")
    max_count: PositiveInt | None = Field(default=None, description="Most matches in all.")
    regex: bool = Field(default=False, description="Take pattern as a regular expression.")
    context: int = Field(default=0, ge=0, le=50, description="Lines around each match, in content mode.")


async def _grep(
    tool_context: ToolContext,
    /,
    pattern: str,
    path: str | None = None,
    glob: str | None = None,
    output_mode: OutputMode = "files_with_matches",
    max_count: int | None = None,
    regex: bool = False,
    context: int = 0,
) -> ToolOutput:
    lines_around = context if output_mode == "content" else 0
    root = None if path is None else normalise(path)
    found = await tool_context.files.grep(
        pattern,
        root,
        None if glob is None else tool_context.paths.own_pattern(glob, root),
        max_count=min(filter(None, (max_count, tool_context.limits.grep_matches)), default=None),
        regex=regex,
        context_lines=lines_around,
    )
    matches = [
        GrepMatch({**match, "path": _show_path(tool_context, match["path"])})
        for match in _require_some(found, found.matches)
    ]
    lines = format_grep_matches(matches, output_mode).split("\n")
    more = f"{'lines' if output_mode == 'content' else 'files'}. Narrow the search by path or glob."
    if found.truncated:
        hint = _describe_most(max_count, len(matches), output_mode)
    elif matches:
        hint = _point_to_lines(matches, _show_path(tool_context, root) if root else "", output_mode)
    else:
        hint = await _explain_nothing(tool_context, root) or (None if regex else regex_literal_hint(pattern))
    return _render_listing(tool_context, lines, more, found, hint)


def _describe_most(max_count: int | None, found: int, output_mode: OutputMode) -> str:
    """Say why there may be more matches."""
    if max_count is None or found < max_count:
        return GREP_TRUNCATION_NOTE
    shown = "match is" if max_count == 1 else f"{max_count} matches are"
    count = "" if output_mode == "count" else ", or set output_mode='count' to count them"
    return f"Only the first {shown} shown, because of max_count={max_count}: leave it out to see more{count}."


def _point_to_lines(matches: Sequence[GrepMatch], path: str, output_mode: OutputMode) -> str | None:
    """Say how to see the lines of a file that was searched by its own name, which was known before."""
    if output_mode != "files_with_matches" or any(match["path"] != path for match in matches):
        return None
    return f'Lines of it that match: {len(matches):,}. output_mode="content" shows them.'


GREP = ToolSpec(
    "grep",
    "Find text in files. Shows the files, or with output_mode=content the lines.",
    GrepSchema,
    _grep,
    effect="search",
    path_argument="path",
    offload_result=False,
    summary_arguments=("pattern", "path", "glob"),
    result_unit="line",
)


async def _explain_nothing(context: ToolContext, path: str | None) -> str | None:
    """Explain why a search found nothing, where its path is not there."""
    if path is None:
        return None
    try:
        await context.files.ls(path)
    except ToolFailure as failure:
        if failure.code != "file_not_found":
            return None
        instead = await describe_instead(context.files, context.paths, path)
        return " ".join(filter(None, [f"Path {context.paths.show(path)!r} does not exist.", instead]))
    return None


def _require_some(found: Found, entries: Sequence[T] | None) -> Sequence[T]:
    """Return the entries of a result, which may have an error next to them, but not instead of them.

    Raises:
        ToolFailure: with the code of the result.
    """
    if found.error and not entries:
        raise ToolFailure(found.code or "io_error", found.error)
    return entries or ()


def _render_listing(
    context: ToolContext, lines: Sequence[str], more: str, found: Found, note: str | None = None
) -> ToolOutput:
    """Show the lines that fit into a result, how many did not, and the notes.

    `more` says of what there is more, and how to get at it.
    """
    most = context.limits.listing_characters
    room = most
    shown: list[str] = []
    for line in lines:
        line = cut_line(line, min(_MOST_OF_A_LINE, most))
        room -= len(line) + 1
        # One line is always shown, or asking again would never get on.
        if room < 0 and shown:
            break
        shown.append(line)
    left = len(lines) - len(shown)
    notes = [
        f"{left:,} more {more}" if left else None,
        note,
        # What could not be searched does not hide what was found.
        f"(incomplete: {found.error})" if found.error else None,
        context.files.describe_left_out(),
    ]
    return ToolOutput("\n".join([*shown, *(f"\n{each}" for each in notes if each)]))
