"""List a directory."""

from __future__ import annotations

from pydantic import BaseModel, Field

from deepagents._paths import normalise
from deepagents._text import format_size
from deepagents.backends.results import FileInfo
from deepagents.tools._tool import ToolContext, ToolOutput, ToolSpec

NOTHING_FOUND = "No files found"


class LsSchema(BaseModel):
    """What `ls` takes."""

    path: str = Field(description="Absolute directory path.")


async def _ls(desk: ToolContext, path: str) -> ToolOutput:
    listing = await desk.files.ls(normalise(path))
    lines = [_line(entry) for entry in listing.entries or ()]
    if listing.error:
        lines.append(f"(incomplete: {listing.error})")
    left_out = desk.files.left_out()
    return ToolOutput("\n".join([*(lines or [NOTHING_FOUND]), *filter(None, [left_out])]))


def _line(entry: FileInfo) -> str:
    if entry.get("is_dir"):
        return f"{entry['path'].rstrip('/')}/"
    size = entry.get("size")
    when = entry.get("modified_at", "")[:16].replace("T", " ")
    facts = ["" if size is None else format_size(size), when]
    return "  ".join([entry["path"], *filter(None, facts)])


LS = ToolSpec("ls", "List a directory: one entry a line, with size and time of change.", LsSchema, _ls)
