"""Find text in files."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field, PositiveInt

from deepagents._paths import normalise
from deepagents._text import truncate
from deepagents.backends.calls import SearchOptions
from deepagents.backends.matches import OutputMode, format_grep_matches, regex_literal_hint
from deepagents.backends.results import GrepResult
from deepagents.errors import ToolFailure
from deepagents.tools._tool import ToolContext, ToolOutput, ToolSpec

GREP_TRUNCATION_NOTE = "The search stopped early, so matches may be missing. Narrow it by path or glob."
_MOST_CHARACTERS = 80_000


class GrepSchema(BaseModel):
    """What `grep` takes."""

    pattern: str = Field(description="Text to find, literally.")
    path: str | None = Field(default=None, description="File or directory to search; default: everything.")
    glob: str | None = Field(default=None, description="Only files that match this pattern, e.g. *.py")
    output_mode: Literal["files_with_matches", "content", "count"] = Field(default="files_with_matches")
    max_count: PositiveInt | None = Field(default=None, description="Most matches in all.")
    regex: bool = Field(default=False, description="Take pattern as a regular expression.")
    context: int = Field(default=0, ge=0, le=50, description="Lines around each match, in content mode.")


async def _grep(
    desk: ToolContext,
    pattern: str,
    path: str | None = None,
    glob: str | None = None,
    output_mode: OutputMode = "files_with_matches",
    max_count: int | None = None,
    regex: bool = False,
    context: int = 0,
) -> ToolOutput:
    lines_around = context if output_mode == "content" else 0
    wanted = SearchOptions(max_count or desk.limits.grep_matches, regex, lines_around)
    root = None if path is None else normalise(path)
    found = await desk.files.grep(pattern, root, glob, wanted)
    report = _report(found, pattern, output_mode, regex)
    return ToolOutput("\n".join(filter(None, [report, desk.files.left_out()])))


def _report(found: GrepResult, pattern: str, mode: OutputMode, regex: bool) -> str:
    body = truncate(format_grep_matches(found.matches or [], mode), _MOST_CHARACTERS)
    if found.error:
        raise ToolFailure(found.code or "io_error", f"{found.error}\n\nPartial matches:\n{body}")
    if found.truncated:
        return f"{body}\n\n{GREP_TRUNCATION_NOTE}"
    hint = None if found.matches or regex else regex_literal_hint(pattern)
    return f"{body}\n{hint}" if hint else body


GREP = ToolSpec(
    "grep",
    "Find text in files. Shows the files, or with output_mode=content the lines.",
    GrepSchema,
    _grep,
)
