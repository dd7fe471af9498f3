"""What the system refused, as a code and a sentence that names no real path."""

from __future__ import annotations

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from deepagents.backends.filesystem.tree import LeavesRoot
from deepagents.errors import BackendError, ErrorCode

_CODES: Final[tuple[tuple[ErrorCode, frozenset[int]], ...]] = (
    ("file_not_found", frozenset({errno.ENOENT})),
    ("not_a_directory", frozenset({errno.ENOTDIR})),
    ("is_directory", frozenset({errno.EISDIR})),
    ("permission_denied", frozenset({errno.EACCES, errno.EPERM, errno.EROFS})),
    ("invalid_path", frozenset({errno.ELOOP, errno.EXDEV, errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ})),
    ("timeout", frozenset({errno.ETIMEDOUT})),
)


def code_of(error: OSError) -> ErrorCode:
    """Find the code for a failure of the system."""
    for code, numbers in _CODES:
        if error.errno in numbers:
            return code
    return "io_error"


def explain(error: OSError) -> str:
    """Say what failed, in the system's words."""
    if isinstance(error, LeavesRoot):
        return str(error.strerror)
    return os.strerror(error.errno) if error.errno else type(error).__name__


@contextmanager
def told(what: str, doing: str, hint: str = "") -> Generator[None]:
    """Turn failures of the system into errors that say what could not be done with `what`."""
    try:
        yield
    except FileNotFoundError as error:
        raise BackendError(
            "file_not_found", f"{what} not found.{hint}" if hint else f"{what} not found"
        ) from error
    except OSError as error:
        named = what[0].lower() + what[1:]
        raise BackendError(code_of(error), f"Error {doing} {named}: {explain(error)}") from error
