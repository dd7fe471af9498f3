"""Write, edit and delete files."""

from __future__ import annotations

from contextlib import suppress
from typing import Final, NamedTuple

from pydantic import BaseModel, Field

from deepagents._paths import ARTIFACT_FOLDERS, is_within, name, normalise, parent
from deepagents._text import Mended, is_escaped_twice, mend
from deepagents.backends.handle import FileCalls
from deepagents.backends.results import EditResult, WriteResult
from deepagents.errors import ToolFailure
from deepagents.tools._tool import ToolContext, ToolOutput, ToolSpec

_CHANGED_ELSEWHERE: Final = (
    ". Other parts of the file changed since it was read: read it before you write it whole"
)
_ESCAPES: Final = (
    ". new_string has the two characters \\ and n, and so has the file now. If line ends were meant, "
    "change them"
)


class Edit(NamedTuple):
    """Text to replace, and what to put there."""

    old: str
    new: str
    replace_all: bool = False


class WriteFileSchema(BaseModel):
    """The arguments of `write_file`."""

    file_path: str = Field(description="Absolute file path.")
    content: str = Field(description="The whole new content.")


async def _write_file(context: ToolContext, file_path: str, content: str) -> ToolOutput:
    path = normalise(file_path)
    real_path = await context.files.real_path(path)
    written = await context.files.write(path, content, context.versions.recall(real_path))
    context.versions.remember(real_path, written.version)
    return ToolOutput(_describe(context, path, written))


def _describe(context: ToolContext, path: str, written: WriteResult) -> str:
    shown = context.paths.show(path)
    if written.created is None:
        return f"Wrote file {shown}"
    if not written.new_folders:
        return f"{'Created' if written.created else 'Updated'} file {shown}"
    folder = "/".join(path.split("/")[: -written.new_folders])
    return f"Created file {shown}, in the new folder {context.paths.show(folder)}"


WRITE_FILE = ToolSpec(
    "write_file",
    "Create a file or replace it whole. To change part of a file use edit_file.",
    WriteFileSchema,
    _write_file,
    effect="write",
    path_argument="file_path",
    offload_result=False,
    clipped_arguments=("content",),
    creates_files=True,
    summary_arguments=("file_path",),
)


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
    edited, note = await _edit(context.files, path, Edit(old_string, new_string, replace_all), version)
    # Of a file that somebody else changed, this agent has still not seen all.
    if note != _CHANGED_ELSEWHERE:
        context.versions.remember(real_path, edited.version)
    shown = context.paths.show(path)
    note += _ESCAPES * is_escaped_twice(old_string, new_string)
    return ToolOutput(
        f"Successfully replaced {edited.occurrences} instance(s) of the string in '{shown}'{note}"
    )


async def _edit(files: FileCalls, path: str, edit: Edit, version: str | None) -> tuple[EditResult, str]:
    """Edit a file, also where the text differs in looks or the rest of the file has changed; say which."""
    try:
        return await files.edit(path, *edit, version), ""
    except ToolFailure as failure:
        if failure.code == "stale_version" and not edit.replace_all:
            # The exact text in one place is the check that matters: nobody touched what is replaced.
            again, version, note = edit, None, _CHANGED_ELSEWHERE
        elif failure.code == "no_match" and (mended := await _mend(files, path, edit)):
            again, note = Edit(mended.old, mended.new), f" (matched {mended.how})"
        else:
            raise
        with suppress(ToolFailure):
            return await files.edit(path, *again, version), note
        raise


async def _mend(files: FileCalls, path: str, edit: Edit) -> Mended | None:
    if edit.replace_all:
        return None
    try:
        content = await files.download(path)
    # The rules may keep it from being read.
    except ToolFailure:
        return None
    return mend(content.decode("utf-8", "surrogateescape"), edit.old, edit.new)


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
    return ToolOutput(f"Deleted {context.paths.show(path)}")


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
