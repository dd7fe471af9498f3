"""Delete a file, or a directory with all that is in it."""

from __future__ import annotations

from pydantic import BaseModel, Field

from deepagents._paths import ARTIFACT_FOLDERS, is_within, name, normalise, parent
from deepagents.errors import ToolFailure
from deepagents.tools._context import ToolContext
from deepagents.tools._tool import ToolOutput, ToolSpec


class DeleteSchema(BaseModel):
    """The arguments of `delete`."""

    file_path: str = Field(description="Absolute path.")


async def _delete(context: ToolContext, file_path: str) -> ToolOutput:
    path = normalise(file_path)
    _refuse_artifacts(context, path)
    # A link is deleted, not what it leads to: only the directory above is resolved.
    real_parent = await context.files.real_path(parent(path))
    await context.files.delete(path)
    context.versions.forget_below(f"{real_parent.rstrip('/')}/{name(path)}")
    return ToolOutput(f"Deleted {path}")


def _refuse_artifacts(context: ToolContext, path: str) -> None:
    """Refuse to delete a folder whose files the conversation still refers to."""
    root = context.files.capabilities(path).artifacts_root.rstrip("/")
    kept = next(
        (each for each in ARTIFACT_FOLDERS if path != "/" and is_within(f"{root}/{each}", path)), None
    )
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
    effect="delete",
    path_argument="file_path",
    offload_result=False,
    summary_arguments=("file_path",),
)
