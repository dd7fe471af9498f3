"""Delete a file, or a directory with all that is in it."""

from __future__ import annotations

from pydantic import BaseModel, Field

from deepagents._paths import is_within, name, normalise, parent
from deepagents.errors import ToolFailure
from deepagents.tools._tool import ToolContext, ToolOutput, ToolSpec

_ARTIFACTS = ("large_tool_results", "conversation_history", "blobs")


class DeleteSchema(BaseModel):
    """What `delete` takes."""

    file_path: str = Field(description="Absolute path.")


async def _delete(desk: ToolContext, file_path: str) -> ToolOutput:
    path = normalise(file_path)
    _spare_artifacts(desk, path)
    above = await desk.files.place(parent(path))
    await desk.files.delete(path)
    desk.seen.forget_below(f"{above.rstrip('/')}/{name(path)}")
    return ToolOutput(f"Deleted {path}")


def _spare_artifacts(desk: ToolContext, path: str) -> None:
    root = desk.files.capabilities(path).artifacts_root.rstrip("/")
    kept = next((each for each in _ARTIFACTS if path != "/" and is_within(f"{root}/{each}", path)), None)
    if kept is not None:
        raise ToolFailure(
            "permission_denied",
            f"permission denied for write on {path}: {root}/{kept} holds what was moved out of the "
            "conversation. Delete single files in it.",
        )


DELETE = ToolSpec(
    "delete",
    "Delete a file, or a directory with everything in it. This cannot be undone.",
    DeleteSchema,
    _delete,
)
