"""Change, add, move and delete files by one patch: all of it is made, or nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from pydantic import BaseModel, Field

from deepagents._async import as_io_call, finish_first
from deepagents._paths import normalise
from deepagents._text.patch import FilePatch, apply_hunks, parse_patch
from deepagents._text.spans import Problems
from deepagents._values import replace, valueclass
from deepagents.errors import BackendError, ToolFailure
from deepagents.tools._tool import Part, ToolContext, ToolOutput, ToolSpec
from deepagents.tools._whole import read_whole
from deepagents.tools.change import DELETE, EDIT_FILE, WRITE_FILE

_UNDONE: Final = "Nothing was changed."


class ApplyPatchSchema(BaseModel):
    """The arguments of `apply_patch`."""

    patch: str = Field(description="The patch, from *** Begin Patch to *** End Patch.")


@valueclass
class _Step:
    """What a file holds and what it shall hold; `None` where there is or shall be no file.

    `other` is the other path of a file that moves, `note` what the model is to know of its change.
    """

    path: str
    before: bytes | None
    after: str | None
    version: str | None = None
    other: str | None = None
    note: str = ""


async def _apply_patch(context: ToolContext, patch: str) -> ToolOutput:
    files = parse_patch(patch)
    steps: list[_Step] = []
    problems = Problems(_UNDONE)
    for each in files:
        with problems.noting(each.path * (len(files) > 1)):
            steps += await _find_steps(context, each)
    paths = [each.path for each in steps]
    with problems.noting():
        if twice := next((path for path in paths if paths.count(path) > 1), None):
            raise ToolFailure("invalid_argument", f"'{twice}' is in the patch twice.")
    problems.report()
    # A cancellation waits until all is made or taken back.
    versions = await finish_first(as_io_call(partial(_make, context, steps)))
    for path, version in versions:
        if version is None:
            context.versions.forget_below(path)
        context.versions.remember(path, version)
    notes = "".join(each.note for each in steps)
    return ToolOutput("; ".join(_describe(context, each) for each in files) + notes)


async def _find_steps(context: ToolContext, file: FilePatch) -> list[_Step]:
    """Return what becomes of each path, once it is known that it can."""
    path = normalise(context.paths.own(file.path))
    await context.files.check_write(path)
    if file.action == "add":
        return [await _new_file(context, path, file.text)]
    if (file.action == "delete" or file.move_to) and not context.files.capabilities(path).delete:
        raise ToolFailure("not_supported", f"'{path}' cannot be deleted or moved here")
    if file.action == "delete":
        await context.files.read(path, 0, 1)
        return [_Step(path, await context.files.download(path), None)]
    text, version = await read_whole(context.files, path)
    changed, differences = apply_hunks(text, file.hunks) if file.hunks else (text, [])
    note = f" (matched {'; '.join(differences)})" if differences else ""
    target = normalise(context.paths.own(file.move_to)) if file.move_to else path
    if target == path:
        if changed == text:
            raise BackendError("invalid_argument", f"'{path}' would stay as it is: nothing changes.")
        return [_Step(path, text.encode(), changed, version, note=note)]
    await context.files.check_write(target)
    new = await _new_file(context, target, changed)
    return [replace(new, other=path, note=note), _Step(path, text.encode(), None, other=target)]


async def _new_file(context: ToolContext, path: str, text: str) -> _Step:
    try:
        await context.files.read(path, 0, 1)
    except ToolFailure as failure:
        # Who may write there need not be allowed to look; the write itself replaces nothing.
        if failure.code in ("file_not_found", "permission_denied"):
            return _Step(path, None, text)
        raise
    raise ToolFailure("already_exists", f"'{path}' exists already. Change it with *** Update File: {path}")


async def _make(context: ToolContext, steps: Sequence[_Step]) -> list[tuple[str, str | None]]:
    """Write and then delete; if a step fails, take back the ones before it.

    Return the paths, each with the version that this agent has seen of it.
    """
    made: list[_Step] = []
    versions: list[tuple[str, str | None]] = []
    for step in sorted(steps, key=lambda each: each.after is None):
        try:
            versions.append(await _make_step(context, step))
        except BaseException as error:
            left = [each.path for each in reversed(made) if not await _take_back(context, each)]
            if not isinstance(error, ToolFailure):
                raise
            undone = _describe_undone(error, step, left)
            raise ToolFailure(error.code, f"{error.text.rstrip('.')}. {undone}") from error
        made.append(step)
    return versions


def _describe_undone(failure: ToolFailure, step: _Step, left: Sequence[str]) -> str:
    if left:
        return f"These files are changed all the same: {', '.join(left)}."
    # What took too long may still happen.
    return f"Apart from '{step.path}', nothing was changed." if failure.code == "timeout" else _UNDONE


async def _make_step(context: ToolContext, step: _Step) -> tuple[str, str | None]:
    """Write or delete; return the path with the version that this agent has seen of it, if it has."""
    real_path = await context.files.real_path(step.path)
    if step.after is None:
        await context.files.delete(step.path)
        return real_path, None
    known = context.versions.recall(real_path)
    if step.before is None:
        written = await context.files.create(step.path, step.after, step.other)
    else:
        written = await context.files.write(step.path, step.after, step.version)
    # Of a file that somebody else changed, this agent has still not seen all.
    return real_path, written.version if known in (None, step.version) else known


async def _take_back(context: ToolContext, step: _Step) -> bool:
    try:
        if step.before is None:
            await context.files.delete(step.path)
        elif step.other:
            await context.files.create(step.path, step.before.decode(), step.other)
        else:
            await context.files.upload(step.path, step.before)
    except ToolFailure:
        return False
    return True


def _describe(context: ToolContext, file: FilePatch) -> str:
    shown = context.paths.show(normalise(context.paths.own(file.path)))
    match file.action:
        case "add":
            return f"Added {shown}"
        case "delete":
            return f"Deleted {shown}"
        case "update" if file.move_to:
            return f"Moved {shown} to {context.paths.show(normalise(context.paths.own(file.move_to)))}"
        case "update":
            return f"Updated {shown}"


def _split(arguments: Mapping[str, Any]) -> list[Part]:
    """Return the calls of other tools that would do the same; none for what is not a patch."""
    try:
        files = parse_patch(str(arguments.get("patch", "")))
    except BackendError:
        return []
    parts: list[Part] = []
    for each in files:
        at = {"file_path": each.path}
        if each.action == "add":
            parts.append((WRITE_FILE, {**at, "content": each.text}))
        elif each.action == "delete":
            parts.append((DELETE, at))
        elif each.move_to:
            parts += [(DELETE, at), (WRITE_FILE, {"file_path": each.move_to})]
        else:
            parts.append((EDIT_FILE, at))
    return parts


APPLY_PATCH = ToolSpec(
    "apply_patch",
    "Change, add, move or delete files by a patch, all at once or not at all:\n"
    "*** Begin Patch\n*** Update File: /a.py\n*** Move to: /b.py (only to move it)\n@@ class or function\n"
    " context\n-old line\n+new line\n*** Add File: /c.py\n+each line\n*** Delete File: /d.py\n*** End Patch\n"
    "Lines that stay begin with a space; show 3 before and after each change.",
    ApplyPatchSchema,
    _apply_patch,
    effect="write",
    offload_result=False,
    clipped_arguments=("patch",),
    split=_split,
    instead_of=("edit_file", "write_file", "delete"),
)
