"""List a directory."""

from __future__ import annotations

from pydantic import BaseModel, Field

from deepagents._paths import normalise
from deepagents._text import escape_controls, format_size
from deepagents.backends.results import FileInfo
from deepagents.tools._context import ToolContext
from deepagents.tools._listing import NOTHING_FOUND, render_listing, require_some
from deepagents.tools._tool import ToolOutput, ToolSpec


class LsSchema(BaseModel):
    """The arguments of `ls`."""

    path: str = Field(description="Absolute directory path.")


async def _ls(context: ToolContext, path: str) -> ToolOutput:
    listing = await context.files.ls(normalise(path))
    require_some(listing.entries, listing.error, listing.code)
    entries = sorted(listing.entries or (), key=lambda entry: entry["path"])
    lines = [_line(entry) for entry in entries] or [NOTHING_FOUND]
    incomplete = f"(incomplete: {listing.error})" if listing.error else None
    return ToolOutput(
        render_listing(context, lines, "entries. Find them with glob and a narrower pattern.", [incomplete])
    )


def _line(entry: FileInfo) -> str:
    path = escape_controls(entry["path"])
    if entry.get("is_dir"):
        return f"{path.rstrip('/')}/"
    size = entry.get("size")
    modified = entry.get("modified_at", "")[:16].replace("T", " ")
    return "  ".join(filter(None, [path, "" if size is None else format_size(size), modified]))


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
