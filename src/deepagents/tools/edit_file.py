"""Replace exact text in a file."""

from __future__ import annotations

from pydantic import BaseModel, Field

from deepagents._paths import normalise
from deepagents.tools._context import ToolContext
from deepagents.tools._tool import ToolOutput, ToolSpec


class EditFileSchema(BaseModel):
    """The arguments of `edit_file`."""

    file_path: str = Field(description="Absolute file path.")
    old_string: str = Field(description="Text to replace, exactly as in the file, without line numbers.")
    new_string: str = Field(description="Text to put there.")
    replace_all: bool = Field(default=False, description="Replace every occurrence.")


async def _edit_file(
    context: ToolContext, file_path: str, old_string: str, new_string: str, replace_all: bool = False
) -> ToolOutput:
    path = normalise(file_path)
    real_path = await context.files.real_path(path)
    version = context.versions.recall(real_path)
    edited = await context.files.edit(path, old_string, new_string, replace_all, version)
    context.versions.remember(real_path, edited.version)
    return ToolOutput(f"Successfully replaced {edited.occurrences} instance(s) of the string in '{path}'")


EDIT_FILE = ToolSpec(
    "edit_file",
    "Replace exact text in a file. Read the file first; old_string must occur once unless replace_all is "
    "true.",
    EditFileSchema,
    _edit_file,
    effect="write",
    path_argument="file_path",
    offload_result=False,
    clipped_arguments=("old_string", "new_string"),
    summary_arguments=("file_path",),
)
