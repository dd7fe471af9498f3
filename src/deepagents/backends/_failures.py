"""Make the errors for what a backend raises, and for files that it could not move."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Final

from deepagents.backends.results import transfer_code
from deepagents.errors import BackendError, CodedError, ErrorCode

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


def failure(method: str, error: Exception, *, is_news: bool = True) -> BackendError:
    """Make the error for what a method raised, with the code that fits; log it if that `is_news`."""
    return BackendError(_code_of(error), f"{method} failed: {_reason(error, is_news)}")


def _reason(error: Exception, is_news: bool) -> str:
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
    if is_news:
        _log.log(level, "a backend failed", exc_info=error)
    return reason


def _code_of(error: Exception) -> ErrorCode:
    if isinstance(error, CodedError):
        return error.code
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code
    return "io_error"


def transfer_failure(path: str, error: str) -> BackendError:
    """Make the error for a file that could not be moved; `error` is a code or a sentence."""
    return BackendError(transfer_code(error), f"File {path!r}{_TRANSFER_ENDS.get(error, f': {error}')}")
