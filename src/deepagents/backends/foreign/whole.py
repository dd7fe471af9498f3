"""Add to a file, edit it in several places, and read it, on backends that can only do that with all of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from deepagents._text import find_change, replace_each
from deepagents.backends._failures import transfer_failure
from deepagents.backends.filedata import file_data_to_bytes, validate_addition
from deepagents.backends.operations import Append, Download, Edit, Operation, Perform, Read, Upload, Write
from deepagents.backends.protocol import Allowed
from deepagents.backends.results import EditResult, FileUploadResponse, ReadResult, WriteResult
from deepagents.errors import BackendError

_ALL_LINES: Final = 1_000_000_000


async def append_whole(op: Operation, following: Perform) -> Any:
    """Perform an operation; to append, fetch the file and put it back with something more at its end.

    Raises:
        BackendError: for what is neither text nor bytes, and when the file cannot be fetched or put back.
    """
    if not isinstance(op, Append):
        return await following(op)
    addition = validate_addition(op.path, op.content)
    added = addition if isinstance(addition, bytes) else addition.encode()
    whole = await _fetch(following, op) + added
    try:
        # Bytes first: a write may change line ends, and takes no binary content.
        sent: list[FileUploadResponse] = await following(Upload([(op.path, whole)], allowed=op.allowed))
    except BackendError as error:
        if error.code != "not_supported":
            raise
        await following(Write(op.path, _as_text(op.path, whole), allowed=op.allowed))
    else:
        if sent[0].error:
            raise transfer_failure(op.path, sent[0].error)
    return WriteResult(path=op.path)


async def edit_at_once(op: Operation, following: Perform) -> Any:
    """Perform an operation; make of several edits one, so that all are made or none."""
    if not isinstance(op, Edit) or not op.more:
        return await following(op)
    before = _as_text(op.path, await _fetch(following, op))
    if not before:
        raise BackendError("file_not_found", f"File {op.path!r} not found, or there is nothing in it.")
    after, count = replace_each(before, op.edits)
    old, new = find_change(before, after)
    one = replace(op, old=old, new=new, replace_all=False, more=())
    edited: EditResult = await following(one)
    return replace(edited, occurrences=count)


async def _fetch(following: Perform, op: Append | Edit) -> bytes:
    try:
        found = (await following(Download([op.path], allowed=op.allowed)))[0]
    except BackendError as error:
        if error.code != "not_supported":
            raise
        return await read_whole(following, op.path, op.allowed)
    if found.error and found.error != "file_not_found":
        raise transfer_failure(op.path, found.error)
    return found.content or b""


async def read_whole(following: Perform, path: str, allowed: Allowed | None = None) -> bytes:
    """Read all of a file by its lines; one that is not there is empty.

    Raises:
        BackendError: when it cannot be read whole.
    """
    try:
        found: ReadResult = await following(Read(path, 0, _ALL_LINES, allowed=allowed))
    except BackendError as error:
        if error.code != "file_not_found":
            raise
        return b""
    # A file read in part and put back would lose its rest.
    if found.file_data is None or found.next_offset is not None:
        raise BackendError("io_error", f"File {path!r} cannot be read whole.")
    try:
        return file_data_to_bytes(found.file_data)
    except (TypeError, ValueError) as error:
        raise BackendError("io_error", f"Error reading file {path!r}: {error}") from error


def _as_text(path: str, whole: bytes) -> str:
    try:
        return whole.decode()
    except UnicodeDecodeError as error:
        raise BackendError(
            "invalid_encoding",
            f"File {path!r} has or would have bytes that are not text, and its backend takes text alone.",
        ) from error
