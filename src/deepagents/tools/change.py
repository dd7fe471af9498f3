"""Write, edit and delete files."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, Final, NotRequired, TypeAlias

from pydantic import ConfigDict, Field, WithJsonSchema
from typing_extensions import TypedDict

from deepagents._paths import ARTIFACT_FOLDERS, is_within, name, normalise, parent
from deepagents._text import Replacement, cut_line, is_escaped_twice, mend, replace_exact
from deepagents.backends.handle import FileCalls
from deepagents.backends.results import EditResult, WriteResult
from deepagents.errors import BackendError, ToolFailure
from deepagents.tools._arguments import Arguments
from deepagents.tools._offered import if_offered
from deepagents.tools._tool import ToolContext, ToolOutput, ToolSpec

_UNREAD_BYTES: Final = 32_768
_UNREAD_LINES: Final = 30
_CHANGED_ELSEWHERE: Final = (
    ". Other parts of the file changed since it was read: read it before you write it whole"
)
_ESCAPES: Final = (
    ". new_string has the two characters \\ and n, and so has the file now. If line ends were meant, "
    "change them"
)
_LONG: Final = 8
"""How many lines a text has at least whose end may get lost when it is written anew."""
_LOST_END: Final = (
    ". The last {many} lines of old_string are gone, from {first!r} on. If that was not meant, put them back"
)


class WriteFileSchema(Arguments):
    """The arguments of `write_file`."""

    file_path: str = Field(description="Absolute file path.")
    content: str = Field(description="The whole new content.")


async def _write_file(context: ToolContext, file_path: str, content: str) -> ToolOutput:
    path = normalise(file_path)
    real_path = await context.files.real_path(path)
    version = context.versions.recall(real_path)
    if version is None:
        written, lost = await _write_unread(context.files, path, content)
    else:
        written, lost = await context.files.write(path, content, version), ""
    context.versions.remember(real_path, written.version)
    return ToolOutput(_describe(context, path, written) + written.note + lost)


async def _write_unread(files: FileCalls, path: str, content: str) -> tuple[WriteResult, str]:
    """Create a file, or replace one that was not read; say then what was lost by that."""
    try:
        return await files.create(path, content), ""
    except ToolFailure as failure:
        if failure.code != "already_exists":
            raise
    before = await _read_head(files, path)
    return await files.write(path, content, None), _describe_lost(before, content)


async def _read_head(files: FileCalls, path: str) -> str:
    """Read what a text begins with; `""` for anything else, and where rules forbid it."""
    with suppress(ToolFailure, BackendError):
        content = (await files.download_each([path], _UNREAD_BYTES))[0].content or b""
        return "" if b"\0" in content else content.decode("utf-8", "ignore")
    return ""


def _describe_lost(before: str, after: str) -> str:
    """Show the lines that a write took away: the model has not read them, and can put them back so."""
    kept = set(after.splitlines())
    lost = [line for line in before.splitlines() if line.strip() and line not in kept]
    if not lost:
        return ""
    more = len(lost) - _UNREAD_LINES
    shown = "\n".join(line[:200] for line in lost[:_UNREAD_LINES]) + (f"\n... and {more} more" * (more > 0))
    return (
        f". It was there and had not been read. These lines of it are gone; put back what was not meant to "
        f"go:\n{shown}"
    )


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
    strict=True,
    summary_arguments=("file_path",),
)


class _Replacement(TypedDict):
    old_string: str
    new_string: str
    replace_all: NotRequired[bool]


_Text: TypeAlias = Annotated[str | None, WithJsonSchema({"type": "string"})]
_FIELDS: Final = {"old_string": "string", "new_string": "string", "replace_all": "boolean"}
_EDITS: Final = {
    "type": "array",
    "items": {"type": "object", "properties": {name: {"type": kind} for name, kind in _FIELDS.items()}},
}


def _without_defaults(schema: dict[str, Any]) -> None:
    """Leave out what an argument is by default: nothing, or false, which goes without saying."""
    for field in schema["properties"].values():
        field.pop("default", None)


class EditFileSchema(Arguments):
    """The arguments of `edit_file`."""

    model_config = ConfigDict(json_schema_extra=_without_defaults)

    file_path: str = Field(description="Absolute file path.")
    old_string: _Text = Field(default=None, description="Exact text of the file, without line numbers.")
    new_string: _Text = Field(default=None, description="Text to put there.")
    replace_all: bool = False
    edits: Annotated[list[_Replacement] | None, WithJsonSchema(_EDITS)] = Field(
        default=None, description="Instead, several in order, all or none."
    )


async def _edit_file(
    context: ToolContext,
    file_path: str,
    old_string: str | None = None,
    new_string: str | None = None,
    replace_all: bool = False,
    edits: Sequence[_Replacement] | None = None,
) -> ToolOutput:
    given = _read_edits(old_string, new_string, replace_all, edits)
    if all(each.old == each.new for each in given):
        look = if_offered("read_file", "; read_file shows it")
        raise ToolFailure(
            "invalid_argument",
            "nothing would change: old_string and new_string are the same. old_string is what stands in the "
            f"file now{look}",
        )
    path = normalise(file_path)
    real_path = await context.files.real_path(path)
    version = context.versions.recall(real_path)
    edited, note = await _edit(context.files, path, given, version)
    # Of a file that somebody else changed, this agent has still not seen all.
    if note != _CHANGED_ELSEWHERE:
        context.versions.remember(real_path, edited.version)
    shown = context.paths.show(path)
    note += edited.note
    note += _ESCAPES * any(is_escaped_twice(each.old, each.new) for each in given)
    note += "".join(_describe_lost_end(each.old, each.new) for each in given)
    return ToolOutput(
        f"Successfully replaced {edited.occurrences} instance(s) of the string in '{shown}'{note}"
    )


def _describe_lost_end(old: str, new: str) -> str:
    """Say which lines are gone where a long text was written anew and broke off at one of its lines."""
    before, after = old.rstrip().split("\n"), new.rstrip().split("\n")
    if len(before) < _LONG or after[-1] not in before or not after[-1].strip():
        return ""
    end = len(before) - before[::-1].index(after[-1])
    lost = [line for line in before[end:] if line.strip()]
    if len(lost) < 2 or not set(lost).isdisjoint(after):
        return ""
    return _LOST_END.format(many=len(before) - end, first=cut_line(lost[0].strip(), 80))


def _read_edits(
    old: str | None, new: str | None, replace_all: bool, edits: Sequence[_Replacement] | None
) -> Sequence[Replacement]:
    """Return what a call replaces, in whichever of the two forms it says so."""
    # Some models fill in what they do not use, with nothing.
    if edits and (old or new or replace_all):
        raise ToolFailure(
            "invalid_argument",
            "edit_file was given old_string, new_string or replace_all, and edits too. Put all into edits, "
            "in order.",
        )
    if edits:
        return [
            Replacement(each["old_string"], each["new_string"], each.get("replace_all", False))
            for each in edits
        ]
    if old is None or new is None:
        lacking = [name for name, text in (("old_string", old), ("new_string", new)) if text is None]
        raise ToolFailure(
            "invalid_argument",
            f"edit_file was given no {' and no '.join(lacking)}. Give both, or edits: "
            '[{"old_string": ..., "new_string": ...}, ...].',
        )
    return [Replacement(old, new, replace_all)]


async def _edit(
    files: FileCalls, path: str, edits: Sequence[Replacement], version: str | None
) -> tuple[EditResult, str]:
    """Edit a file, also where texts differ in looks or the rest of the file has changed; say which."""
    try:
        return await files.edit(path, edits, version), ""
    except ToolFailure as failure:
        if failure.code == "stale_version" and not any(each.replace_all for each in edits):
            # The exact text in one place is the check that matters: nobody touched what is replaced.
            again, version, note = edits, None, _CHANGED_ELSEWHERE
        elif failure.code == "no_match":
            again, note = await _mend_all(files, path, edits)
        else:
            raise
        with suppress(ToolFailure):
            return await files.edit(path, again, version), note
        raise


async def _mend_all(
    files: FileCalls, path: str, edits: Sequence[Replacement]
) -> tuple[Sequence[Replacement], str]:
    """Return edits that stand exactly in the file, as far as that is certain, and what was different."""
    with suppress(ToolFailure, BackendError):
        # The rules may keep it from being read.
        content = (await files.download(path)).decode("utf-8", "surrogateescape")
        exact: list[Replacement] = []
        differences: list[str] = []
        for edit in edits:
            mended = None if edit.replace_all or edit.old in content else mend(content, edit.old, edit.new)
            exact.append(Replacement(mended.old, mended.new) if mended else edit)
            differences += [mended.how] if mended else []
            content, _ = replace_exact(content, *exact[-1])
        return exact, f" (matched {'; '.join(differences)})"
    return edits, ""


EDIT_FILE = ToolSpec(
    "edit_file",
    "Replace text in a file that you have read; old_string must occur once unless replace_all is true.",
    EditFileSchema,
    _edit_file,
    effect="write",
    path_argument="file_path",
    offload_result=False,
    clipped_arguments=("edits", "old_string", "new_string"),
    summary_arguments=("file_path",),
)


class DeleteSchema(Arguments):
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
    strict=True,
    path_argument="file_path",
    offload_result=False,
    summary_arguments=("file_path",),
)
