"""Create or replace a file."""

from __future__ import annotations

from pydantic import BaseModel, Field

from deepagents._paths import normalise
from deepagents.tools._tool import ToolContext, ToolOutput, ToolSpec


class WriteFileSchema(BaseModel):
    """What `write_file` takes."""

    file_path: str = Field(description="Absolute file path.")
    content: str = Field(description="The whole new content.")


async def _write_file(desk: ToolContext, file_path: str, content: str) -> ToolOutput:
    path = normalise(file_path)
    place = await desk.files.place(path)
    written = await desk.files.write(path, content, desk.seen.recall(place))
    desk.seen.remember(place, written.version)
    return ToolOutput(f"Updated file {path}")


WRITE_FILE = ToolSpec(
    "write_file",
    "Create a file or replace it whole. To change part of a file use edit_file.",
    WriteFileSchema,
    _write_file,
)
