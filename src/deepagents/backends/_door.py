"""One call of one backend, whatever its generation: the answer is a result, a failure a `BackendError`."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from langgraph.errors import GraphBubbleUp

from deepagents._async import IOCall
from deepagents.backends._answering import abilities
from deepagents.backends._legacy import one_for_each, understood
from deepagents.backends._patience import Patience
from deepagents.backends.protocol import BackendProtocol, accepts
from deepagents.errors import BackendError, CodedError, ErrorCode

_NO_BOUND = Patience()
_log = logging.getLogger(__name__)
_PATH_AT: Final[Mapping[str, int]] = {
    **dict.fromkeys(("ls", "read", "write", "append", "edit", "delete", "upload_files", "download_files"), 0),
    **dict.fromkeys(("grep", "glob"), 1),
}
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


async def ask(
    backend: BackendProtocol,
    method: str,
    *args: Any,
    patience: Patience = _NO_BOUND,
    seconds: float | None = None,
    **options: Any,
) -> Any:
    """Call a method of a backend as the driver wants it; options that it does not know are left out.

    Raises:
        BackendError: for whatever the backend raised, and when it took too long.
    """
    try:
        call = _prepared(backend, method, args, options)
        if patience.bounds(seconds):
            can = abilities(backend.capabilities, _path_of(method, args))
            call = call if can.in_process else patience.bound(call, method, seconds, can.part)
        answer = understood(backend, method, await call)
        return one_for_each(method, args[0] if args else (), answer)
    except (GraphBubbleUp, BackendError):
        raise
    except Exception as error:
        raise failure(method, error) from error


def _path_of(method: str, args: tuple[Any, ...]) -> str:
    """Name the place that a call asks about; of many files, the root stands for all."""
    at = _PATH_AT.get(method)
    given: object = args[at] if at is not None and at < len(args) else None
    files = cast("list[object]", given) if isinstance(given, list) else [given]
    only = files[0] if len(files) == 1 else None
    path = cast("tuple[object, ...]", only)[0] if isinstance(only, tuple) else only
    return path if path and isinstance(path, str) else "/"


def failure(method: str, error: Exception) -> BackendError:
    """Say what went wrong in a method, with the code that fits."""
    return BackendError(_code_of(error), f"{method} failed: {_reason(error)}")


def _prepared(
    backend: BackendProtocol, method: str, args: tuple[Any, ...], options: Mapping[str, Any]
) -> IOCall[Any]:
    blocking: Callable[..., Any] = getattr(backend, method)
    awaiting: Callable[..., Any] = getattr(backend, f"a{method}")
    known = {
        name: value
        for name, value in options.items()
        if value is not None and accepts(type(backend), method, name)
    }
    return IOCall(lambda: blocking(*args, **known), lambda: awaiting(*args, **known))


def _reason(error: Exception) -> str:
    """Say what went wrong, without texts that may tell of real paths, hosts and keys: those go to the log."""
    match error:
        case OSError() if error.errno:
            return os.strerror(error.errno)
        case UnicodeError():
            return "what is there is not text in the expected encoding"
        case NotImplementedError() | ValueError():
            return str(error)
        case _:
            _log.warning("a backend failed", exc_info=error)
            return type(error).__name__


def _code_of(error: Exception) -> ErrorCode:
    if isinstance(error, CodedError):
        return error.code
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code
    return "io_error"
