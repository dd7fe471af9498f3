"""Find text in files."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import BaseModel, Field, PositiveInt

from deepagents._paths import normalise
from deepagents._text import escape_controls
from deepagents.backends.handle import SearchOptions
from deepagents.backends.matches import OutputMode, format_grep_matches, regex_literal_hint
from deepagents.backends.results import GrepMatch
from deepagents.tools._context import ToolContext
from deepagents.tools._listing import render_listing, require_some
from deepagents.tools._tool import ToolOutput, ToolSpec

GREP_TRUNCATION_NOTE: Final = (
    "The search stopped early, so matches may be missing. Narrow it by path or glob."
)


class GrepSchema(BaseModel):
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
    options = SearchOptions(max_count or tool_context.limits.grep_matches, regex, lines_around)
    root = None if path is None else normalise(path)
    found = await tool_context.files.grep(pattern, root, glob, options)
    require_some(found.matches, found.error, found.code)
    matches = [GrepMatch({**match, "path": escape_controls(match["path"])}) for match in found.matches or ()]
    lines = format_grep_matches(matches, output_mode).split("\n")
    more = f"{'lines' if output_mode == 'content' else 'files'}. Narrow the search by path or glob."
    hint = None if matches or regex else regex_literal_hint(pattern)
    truncated = GREP_TRUNCATION_NOTE if found.truncated else None
    # What could not be searched does not hide what was found.
    incomplete = f"(incomplete: {found.error})" if found.error else None
    return ToolOutput(render_listing(tool_context, lines, more, [truncated or hint, incomplete]))


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
