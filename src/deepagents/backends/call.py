"""Call one method of one backend, of any generation; what goes wrong is a `BackendError`."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from math import ceil
from typing import Any, Final

from langgraph.errors import GraphBubbleUp

from deepagents._async import IOCall, await_thread
from deepagents._paths import name, parent
from deepagents.backends._older import lacks
from deepagents.backends._resolve import as_current_result
from deepagents.backends._signatures import MethodFacts, execute_accepts_timeout, method_facts, overrides
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.filedata import file_data_to_bytes, validate_addition
from deepagents.backends.operations import (
    Append,
    CommandOperation,
    Download,
    Execute,
    Grep,
    Operation,
    Perform,
    Read,
    Resolve,
    StartCommand,
    TransferBackend,
    Upload,
    Write,
)
from deepagents.backends.protocol import Allowed, BackendProtocol, cap_matches
from deepagents.backends.results import FileUploadResponse, ReadResult, WriteResult, transfer_code
from deepagents.errors import BackendError, CodedError, ErrorCode, RunConfigError

_ALL_LINES: Final = 1_000_000_000
_USUAL_TIMEOUT: Final = 120
"""Seconds that backends give a command for which no other time was asked."""
_CODES: Final[tuple[tuple[type[Exception], ErrorCode], ...]] = (
    (NotImplementedError, "not_supported"),
    (UnicodeError, "invalid_encoding"),
    (ValueError, "invalid_argument"),
    (FileExistsError, "already_exists"),
    (FileNotFoundError, "file_not_found"),
    (PermissionError, "permission_denied"),
    (IsADirectoryError, "is_directory"),
    (NotADirectoryError, "not_a_directory"),
    (TimeoutError, "timeout"),
)
_TRANSFER_ENDS: Final[Mapping[str, str]] = {
    "file_not_found": " not found",
    "permission_denied": ": permission denied",
    "is_directory": " is a directory. Name a file in it.",
    "invalid_path": " has a path that cannot be used here.",
}
"""What is said of a file, for each code that a transfer may answer with."""
_log = logging.getLogger(__name__)


def call_methods(backend: BackendProtocol, can: Capabilities) -> Perform:
    """Make what performs operations by calling the public methods of a backend.

    `can` is what it can do at its root, and so everywhere below.
    """
    kind = type(backend)
    in_process = can.in_process
    resolves = overrides(kind, "real_path")
    # In a sandbox each question is a command, which costs more than the call that asks.
    resolves_cheaply = resolves and bool(can.host or in_process)

    async def call(op: Operation) -> Any:
        if isinstance(op, Append) and not appends(kind):
            return await _append_to_whole(call, op)
        if isinstance(op, Resolve) and not (resolves_cheaply if op.if_cheap else resolves):
            return op.path
        facts = method_facts(kind, op.method)
        op = _as_taken(op, facts, kind, can)
        try:
            # The method of an `OperationBackend` would only make this operation again.
            if perform := _performer(backend, op.method):
                return check_answer(op, await perform(op))
            answer = await _start(backend, facts, op, in_process)
            # Our own backends answer in today's form, and each is checked by the contract suite.
            if not facts.is_ours:
                answer = as_current_result(backend, op, answer)
        # GraphBubbleUp is how LangGraph interrupts a run; turned into an error, no person would be asked.
        except (GraphBubbleUp, BackendError, RunConfigError):
            raise
        except Exception as error:
            raise failure(op.method, error) from error
        return check_answer(op, answer)

    return call


def _performer(backend: BackendProtocol, method: str) -> Perform | None:
    """Return what performs the operation of a method, unless that was written anew or replaced."""
    for each in (method, f"a{method}"):
        given = getattr(getattr(backend, each, None), "__func__", None)
        if given is None or given is not getattr(TransferBackend, each, None):
            return None
    return getattr(backend, "_perform", None)


async def _start(backend: BackendProtocol, facts: MethodFacts, op: Operation, in_process: bool) -> Any:
    """Call a method in the form that the driver of this code wants, and that the newest class has."""
    # A method newer than the claim to answer from memory may wait for anything.
    in_process = in_process and facts.is_described
    if isinstance(op, Resolve):
        return await _resolve(backend, op, in_process)
    given = arguments_of(op, facts.options)

    def block() -> Any:
        if facts.blocking is None:
            raise lacks(backend, op.method)
        return facts.blocking.call(getattr(backend, op.method), *given)

    # What answers from memory needs no thread, but a search may take seconds, and would stop an event loop.
    if in_process and facts.only_blocking and not isinstance(op, Grep):
        return block()
    awaiting = facts.awaiting
    # The protocol's own awaiting methods for commands take none of the options that a blocking one may have.
    if awaiting is None or (isinstance(op, CommandOperation) and facts.only_blocking):
        return await IOCall(block, lambda: await_thread(block))
    return await IOCall(block, lambda: awaiting.call(getattr(backend, f"a{op.method}"), *given))


def arguments_of(op: Operation, taken: Collection[str]) -> tuple[list[Any], dict[str, Any]]:
    """Return what the method of an operation is given by position and by name.

    Of the options, those that are set and `taken`.
    """
    keywords = {each: getattr(op, each) for each in op.by_name}
    for each in op.optional:
        if each in taken and (value := getattr(op, each)) is not None:
            keywords[each] = value
    return [getattr(op, each) for each in op.by_position], keywords


async def _resolve(backend: BackendProtocol, op: Resolve, in_process: bool) -> str:
    def resolve() -> str:
        if not op.entry or op.path == "/":
            return without_slash(backend.real_path(op.path))
        above = without_slash(backend.real_path(parent(op.path)))
        return f"{above.rstrip('/')}/{name(op.path)}"

    return resolve() if in_process else await IOCall(resolve, lambda: await_thread(resolve))


def _as_taken(op: Operation, facts: MethodFacts, kind: type[BackendProtocol], can: Capabilities) -> Operation:
    """Return an operation that asks for nothing that this backend could not do.

    Raises:
        BackendError: `not_supported`, where leaving it out would do something else than what was asked.
    """
    if isinstance(op, Grep) and op.regex and "regex" not in facts.options:
        # Searched literally, an expression would seem to match nothing.
        raise BackendError("not_supported", "This backend finds literal text only; leave regex out.")
    if isinstance(op, Execute | StartCommand) and op.allowed and can.ruled and "allowed" not in facts.options:
        # It repeats what another backend says of itself, whose rules would be lost on the way.
        raise BackendError(
            "not_supported",
            f"{kind.__name__}.{op.method} takes no `allowed`, so commands would go past the rules. Use the "
            "file tools.",
        )
    if not isinstance(op, Execute):
        return op
    if not execute_accepts_timeout(kind):
        if op.timeout is not None:
            raise BackendError(
                "not_supported", "This backend does not support per-command timeout; leave it out."
            )
        return op
    if op.left is None:
        return op
    left = max(ceil(op.left), 1)
    # The backend's own default ends the command sooner, so it is not asked for more.
    if op.timeout is None and left >= _USUAL_TIMEOUT:
        return op
    return replace(op, timeout=min(op.timeout or left, left))


def check_answer(op: Operation, answer: Any) -> Any:
    """Return an answer, of which an error may be a part; raise one that is an error alone."""
    error: str | None = getattr(answer, "error", None)
    # Found entries must not be lost because one directory could not be read.
    if error and not (getattr(answer, "entries", None) or getattr(answer, "matches", None)):
        raise BackendError(getattr(answer, "code", None) or "io_error", error)
    return cap_matches(answer, op.max_count) if isinstance(op, Grep) else answer


def failure(method: str, error: Exception) -> BackendError:
    """Make the error for what a method raised, with the code that fits."""
    return BackendError(_code_of(error), f"{method} failed: {_reason(error)}")


def _reason(error: Exception) -> str:
    """Describe an error without texts that may name real paths, hosts and keys: those go to the log."""
    level = logging.INFO
    match error:
        case OSError() if error.errno:
            reason = os.strerror(error.errno)
        case UnicodeError():
            reason = "what is there is not text in the expected encoding"
        case NotImplementedError() | ValueError():
            reason = str(error)
        case _:
            reason, level = type(error).__name__, logging.WARNING
    _log.log(level, "a backend failed", exc_info=error)
    return reason


def _code_of(error: Exception) -> ErrorCode:
    if isinstance(error, CodedError):
        return error.code
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code
    return "io_error"


def without_slash(path: str) -> str:
    """Return the path of an entry as rules know it."""
    return path.rstrip("/") or "/"


def appends(kind: type[BackendProtocol]) -> bool:
    """Return whether a class adds to files itself.

    An `append` that it only inherits would bypass a `write` of its own.
    """
    for each in kind.__mro__:
        if {"append", "aappend"} & vars(each).keys():
            return each is not BackendProtocol
        if {"write", "awrite"} & vars(each).keys():
            break
    return False


async def _append_to_whole(call: Perform, op: Append) -> WriteResult:
    """Fetch a file, and put it back with something more at its end.

    Raises:
        BackendError: for what is neither text nor bytes, and when the file cannot be fetched or put back.
    """
    addition = validate_addition(op.path, op.content)
    added = addition if isinstance(addition, bytes) else addition.encode()
    whole = await _fetch(call, op) + added
    try:
        # Bytes first: a write may change line ends, and takes no binary content.
        sent: list[FileUploadResponse] = await call(Upload([(op.path, whole)], allowed=op.allowed))
    except BackendError as error:
        if error.code != "not_supported":
            raise
        await call(Write(op.path, _as_text(op.path, whole), allowed=op.allowed))
    else:
        if sent[0].error:
            raise transfer_failure(op.path, sent[0].error)
    return WriteResult(path=op.path)


async def _fetch(call: Perform, op: Append) -> bytes:
    try:
        found = (await call(Download([op.path], allowed=op.allowed)))[0]
    except BackendError as error:
        if error.code != "not_supported":
            raise
        return await read_whole(call, op.path, op.allowed)
    if found.error and found.error != "file_not_found":
        raise transfer_failure(op.path, found.error)
    return found.content or b""


async def read_whole(call: Perform, path: str, allowed: Allowed | None = None) -> bytes:
    """Read all of a file by its lines; one that is not there is empty.

    Raises:
        BackendError: when it cannot be read whole.
    """
    try:
        found: ReadResult = await call(Read(path, 0, _ALL_LINES, allowed=allowed))
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
            "invalid_encoding", f"File {path!r} would hold bytes, and its backend takes text alone."
        ) from error


def transfer_failure(path: str, error: str) -> BackendError:
    """Make the error for a file that could not be moved; `error` is a code or a sentence."""
    return BackendError(transfer_code(error), f"File {path!r}{_TRANSFER_ENDS.get(error, f': {error}')}")
