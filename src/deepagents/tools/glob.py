"""Find files by the shape of their path."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, Field

from deepagents._paths import normalise
from deepagents._text import escape_controls
from deepagents.backends.guard import PATHLESS_DENIED_HINT
from deepagents.backends.results import GlobResult
from deepagents.tools._context import ToolContext
from deepagents.tools._listing import NOTHING_FOUND, render_listing, require_some
from deepagents.tools._tool import ToolOutput, ToolSpec

GLOB_TRUNCATION_NOTE: Final = (
    "The search stopped early, so files may be missing. Narrow the pattern or give a path."
)
GLOB_UNREADABLE_NOTE: Final = (
    "Some directories could not be read, so files may be missing; narrowing will not help."
)
GLOB_PATHLESS_DENIED_HINT: Final = PATHLESS_DENIED_HINT
GLOB_TIMEOUT: Final = 10.0
"""Seconds that the tool waits for a backend."""


class GlobSchema(BaseModel):
    """The arguments of `glob`."""

    pattern: str = Field(description="e.g. *.py (any depth), src/**/*.ts, /*.md (top level only), {a,b}.txt")
    path: str | None = Field(
        default=None, description="Directory to search; default: the backend's default root."
    )


async def _glob(context: ToolContext, pattern: str, path: str | None = None) -> ToolOutput:
    root = None if path is None else normalise(path)
    found = await context.files.glob(pattern, root, GLOB_TIMEOUT)
    require_some(found.matches, found.error, found.code)
    paths = sorted(escape_controls(match["path"]) for match in found.matches or ())
    more = "files match. Narrow the pattern or give a path."
    return ToolOutput(render_listing(context, paths or [NOTHING_FOUND], more, _notes(found)))


def _notes(found: GlobResult) -> list[str]:
    notes: list[str] = []
    if found.truncated:
        unreadable = found.truncation_reason == "unreadable"
        notes.append(GLOB_UNREADABLE_NOTE if unreadable else GLOB_TRUNCATION_NOTE)
    if found.error:
        notes.append(f"(incomplete: {found.error})")
    return notes


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
