"""Change lines of a file that `read_file` has shown with anchors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, Field

from deepagents._paths import normalise
from deepagents._text.anchors import LineChange, LineOperation, change_lines
from deepagents.errors import ToolFailure
from deepagents.tools._tool import ToolContext, ToolOutput, ToolSpec
from deepagents.tools._whole import read_whole


class LineEdit(BaseModel):
    """One change of lines."""

    op: LineOperation = Field(description="insert puts text after the anchored line.")
    anchor: str = Field(description='Anchor of the first line, such as "12:a3f"; "0" inserts at the start.')
    to: str | None = Field(default=None, description="Anchor of the last line, if there are several.")
    text: str | None = Field(default=None, description="The new lines, without anchors.")


class EditLinesSchema(BaseModel):
    """The arguments of `edit_lines`."""

    file_path: str = Field(description="Absolute file path.")
    edits: list[LineEdit] = Field(description="Changes, all made at once or none.")


async def _edit_lines(context: ToolContext, file_path: str, edits: Sequence[Any]) -> ToolOutput:
    path = normalise(file_path)
    real_path = await context.files.real_path(path)
    content, version = await read_whole(context.files, path)
    seen = context.versions.recall(real_path)
    changes = [LineChange(**LineEdit.model_validate(each).model_dump()) for each in edits]
    stale = seen is not None and seen != version
    changed, shown = change_lines(content, changes, stale=stale)
    if changed == content:
        raise ToolFailure("invalid_argument", f"nothing would change: the lines read so already:\n{shown}")
    written = await context.files.write(path, changed, version)
    # Of a file that somebody else changed, this agent has still not seen all; and where lines moved, an
    # anchor of before may fit an equal line now.
    if not stale and changed.count("\n") == content.count("\n"):
        context.versions.remember(real_path, written.version)
    return ToolOutput(
        f"Made {len(changes)} edit(s) in '{context.paths.show(path)}'. It reads there now:\n{shown}"
    )


EDIT_LINES = ToolSpec(
    "edit_lines",
    "Change whole lines of a file by the anchors (number:hash) that read_file shows before |. All edits of a "
    "call use the anchors as last shown.",
    EditLinesSchema,
    _edit_lines,
    effect="write",
    path_argument="file_path",
    offload_result=False,
    clipped_arguments=("edits",),
    summary_arguments=("file_path",),
    instead_of=("edit_file",),
)
