"""Add to the end of a file: natively where a backend can, else by fetching it and putting it back whole."""

from __future__ import annotations

from typing import Any, Final, cast, get_args

from deepagents.backends._door import ask
from deepagents.backends._patience import Patience
from deepagents.backends.filedata import checked_addition, file_data_to_bytes
from deepagents.backends.protocol import Allowed, BackendProtocol
from deepagents.backends.results import (
    FileDownloadResponse,
    FileUploadResponse,
    ReadResult,
    WriteResult,
)
from deepagents.errors import BackendError, ErrorCode

_NO_BOUND: Final = Patience()
_ALL_LINES: Final = 1_000_000_000


def method_for(backend: BackendProtocol, method: str) -> str:
    """Name the method that really does it: to append without `append`, `upload_files`.

    A subclass that writes in a way of its own is not gone round by an `append` that it inherits.
    """
    if method != "append":
        return method
    for kind in type(backend).__mro__:
        if {"append", "aappend"} & vars(kind).keys():
            return "upload_files" if kind is BackendProtocol else "append"
        if {"write", "awrite"} & vars(kind).keys():
            break
    return "upload_files"


async def append(
    backend: BackendProtocol,
    path: str,
    content: str | bytes,
    *,
    allowed: Allowed | None = None,
    patience: Patience = _NO_BOUND,
) -> WriteResult:
    """Add to the end of a file, which is made when it is not there.

    Raises:
        BackendError: for what is neither text nor bytes, whatever the backend raised, and when the file could
            not be put back.
    """
    if method_for(backend, "append") == "append":
        return await ask(backend, "append", path, content, allowed=allowed, patience=patience)
    addition = checked_addition(path, content)
    added = addition if isinstance(addition, bytes) else addition.encode()
    options: dict[str, Any] = {"allowed": allowed, "patience": patience}
    whole = await _fetched(backend, path, options) + added
    await _put(backend, path, whole, options)
    return WriteResult(path=path)


async def _fetched(backend: BackendProtocol, path: str, options: dict[str, Any]) -> bytes:
    try:
        answers: list[FileDownloadResponse] = await ask(backend, "download_files", [path], **options)
    except BackendError as error:
        if error.code != "not_supported":
            raise
        return await _read(backend, path, options)
    found = answers[0]
    if found.error and found.error != "file_not_found":
        raise transfer_failure(path, found.error)
    return found.content or b""


async def _read(backend: BackendProtocol, path: str, options: dict[str, Any]) -> bytes:
    found: ReadResult = await ask(backend, "read", path, 0, _ALL_LINES, **options)
    if found.code == "file_not_found":
        return b""
    if found.error or found.file_data is None or found.next_offset is not None:
        raise BackendError(found.code or "io_error", found.error or f"File {path!r} cannot be read whole.")
    try:
        return file_data_to_bytes(found.file_data)
    except (TypeError, ValueError) as error:
        raise BackendError("io_error", f"Error reading file {path!r}: {error}") from error


async def _put(backend: BackendProtocol, path: str, whole: bytes, options: dict[str, Any]) -> None:
    try:
        sent: list[FileUploadResponse] = await ask(backend, "upload_files", [(path, whole)], **options)
        error, code = sent[0].error, None
    except BackendError as failure:
        if failure.code != "not_supported":
            raise
        done: WriteResult = await ask(backend, "write", path, _as_text(path, whole), **options)
        error, code = done.error, done.code
    if error:
        raise BackendError(code, error) if code else transfer_failure(path, error)


def _as_text(path: str, whole: bytes) -> str:
    try:
        return whole.decode()
    except UnicodeDecodeError as error:
        raise BackendError(
            "invalid_encoding", f"File {path!r} would hold bytes, and its backend takes text alone."
        ) from error


async def ask_or_append(backend: BackendProtocol, method: str, *args: Any, **options: Any) -> Any:
    """Call a method of a backend, of which `append` may be missing.

    Raises:
        BackendError: for whatever the backend raised.
    """
    call = append(backend, *args, **options) if method == "append" else ask(backend, method, *args, **options)
    return await call


def transfer_failure(path: str, error: str) -> BackendError:
    """Make the error for a file that could not be moved."""
    code = cast("ErrorCode", error) if error in get_args(ErrorCode) else "io_error"
    return BackendError(code, f"File {path!r}: {error}")
