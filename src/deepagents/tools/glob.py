"""Find files by the shape of their path."""

from __future__ import annotations

from pydantic import BaseModel, Field

from deepagents._paths import normalise
from deepagents.backends.guarded import PATHLESS_DENIED_HINT
from deepagents.backends.results import GlobResult
from deepagents.tools._tool import ToolContext, ToolOutput, ToolSpec

NOTHING_FOUND = "No files found"
GLOB_TRUNCATION_NOTE = "The search stopped early, so files may be missing. Narrow the pattern or give a path."
GLOB_UNREADABLE_NOTE = "Some directories could not be read, so files may be missing; narrowing will not help."
GLOB_PATHLESS_DENIED_HINT = PATHLESS_DENIED_HINT
GLOB_TIMEOUT = 10.0
"""Seconds that the tool waits for a backend."""
_MOST_PATHS = 2000


class GlobSchema(BaseModel):
    """What `glob` takes."""

    pattern: str = Field(description="e.g. *.py (any depth), src/**/*.ts, /*.md (top level only), {a,b}.txt")
    path: str | None = Field(
        default=None, description="Directory to search; default: the backend's default root."
    )


async def _glob(desk: ToolContext, pattern: str, path: str | None = None) -> ToolOutput:
    root = None if path is None else normalise(path)
    found = await desk.files.glob(pattern, root, GLOB_TIMEOUT)
    paths = [match["path"] for match in found.matches or ()]
    lines = paths[:_MOST_PATHS] or [NOTHING_FOUND]
    left_out = desk.files.left_out()
    return ToolOutput("\n".join([*lines, *_notes(found, len(paths)), *filter(None, [left_out])]))


def _notes(found: GlobResult, count: int) -> list[str]:
    notes: list[str] = []
    if count > _MOST_PATHS:
        notes.append(f"\n{count - _MOST_PATHS} more files match. Narrow the pattern or give a path.")
    if found.truncated:
        unreadable = found.truncation_reason == "unreadable"
        notes.append("\n" + (GLOB_UNREADABLE_NOTE if unreadable else GLOB_TRUNCATION_NOTE))
    if found.error:
        notes.append(f"\n(incomplete: {found.error})")
    return notes


GLOB = ToolSpec("glob", "Find files by pattern. A name without / is found at any depth.", GlobSchema, _glob)
