"""Delete a file, or a directory with all that is in it."""

from __future__ import annotations

from pydantic import BaseModel, Field

from deepagents._flow import Flow
from deepagents._paths import normalise
from deepagents.tools._tool import Desk, Reply, ToolSpec


class DeleteSchema(BaseModel):
    """What `delete` takes."""

    file_path: str = Field(description="Absolute path.")


def _delete(desk: Desk, file_path: str) -> Flow[Reply]:
    path = normalise(file_path)
    yield from desk.files.delete(path)
    desk.seen.forget_below(path)
    return Reply(f"Deleted {path}")


DELETE = ToolSpec(
    "delete",
    "Delete a file, or a directory with everything in it. This cannot be undone.",
    DeleteSchema,
    _delete,
)
