"""Create or replace a file."""

from __future__ import annotations

from pydantic import BaseModel, Field

from deepagents._paths import normalise
from deepagents.tools._context import ToolContext
from deepagents.tools._tool import ToolOutput, ToolSpec


class WriteFileSchema(BaseModel):
    """The arguments of `write_file`."""

    file_path: str = Field(description="Absolute file path.")
    content: str = Field(description="The whole new content.")


async def _write_file(context: ToolContext, file_path: str, content: str) -> ToolOutput:
    path = normalise(file_path)
    real_path = await context.files.real_path(path)
    written = await context.files.write(path, content, context.versions.recall(real_path))
    context.versions.remember(real_path, written.version)
    return ToolOutput(f"Updated file {path}")


WRITE_FILE = ToolSpec(
    "write_file",
    "Create a file or replace it whole. To change part of a file use edit_file.",
    WriteFileSchema,
    _write_file,
    effect="write",
    path_argument="file_path",
    offload_result=False,
    clipped_arguments=("content",),
    summary_arguments=("file_path",),
)
