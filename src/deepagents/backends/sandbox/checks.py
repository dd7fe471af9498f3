"""What is checked before a sandbox is asked."""

from __future__ import annotations

import base64

from deepagents._paths import normalise
from deepagents.backends.filedata import validate_addition
from deepagents.backends.protocol import Allowed
from deepagents.backends.sandbox.answers import Knows
from deepagents.errors import BackendError, ErrorCode


def normal(path: str) -> str:
    """Return the one spelling of a path.

    Raises:
        BackendError: `invalid_path`.
    """
    shown = normalise(path)
    try:
        shown.encode()
    except UnicodeEncodeError as error:
        raise BackendError("invalid_path", f"A path must be UTF-8: {path!r}.") from error
    return shown


def start(path: str | None) -> str | None:
    """Return where a search begins; nothing when none was named."""
    return None if path is None else normal(path)


def file_at(path: str, doing: str) -> tuple[str, str]:
    """Return a path and what messages call it.

    Raises:
        BackendError: `is_directory` for the root.
    """
    shown = normal(path)
    if shown == "/":
        raise BackendError("is_directory", f"Error {doing} file '/': it is a directory.")
    return shown, f"File '{shown}'"


def knows(allowed: Allowed | None) -> Knows:
    """Make the test that a found path must pass, by its name and by where it leads."""
    if allowed is None or allowed.all_below("/"):
        return lambda path, real: True
    return lambda path, real: allowed(path) and (real == path or allowed(real))


def refuse_unless(is_allowed: bool, operation: str, shown: str) -> None:
    """Refuse what the rules do not allow.

    Raises:
        BackendError: `permission_denied`.
    """
    if not is_allowed:
        raise BackendError("permission_denied", f"permission denied for {operation} on {shown}")


def addition(shown: str, content: str | bytes) -> dict[str, str]:
    """Return what is to be added to a file as texts that a program takes.

    Raises:
        BackendError: for what can be added to no file.
    """
    given = validate_addition(shown, content)
    if isinstance(given, str):
        return {"content": given}
    return {"base64": base64.b64encode(given).decode()}


def transfer_code(error: str) -> ErrorCode:
    """Find the code for a failed upload."""
    match error:
        case "file_not_found" | "permission_denied" | "is_directory" | "invalid_path":
            return error
        case _:
            return "io_error"
