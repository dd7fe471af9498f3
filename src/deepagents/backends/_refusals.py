"""Say what every backend says when it refuses the same thing: models learn one sentence and one way out.

Paths stand in quotes: that is how a composite backend finds them, and names them as they are in its tree.
"""

from __future__ import annotations

from typing import Literal

from deepagents.errors import BackendError
from deepagents.permissions import FilesystemOperation


class Denied(BackendError):
    """A rule forbids a path."""

    def __init__(self, operation: FilesystemOperation, path: str) -> None:
        super().__init__("permission_denied", f"permission denied for {operation} on '{path}'")


def stale_version(what: str, happened: str) -> BackendError:
    """Make the error for a change to a file that is no longer what its writer saw.

    Reading is the way on also where it was deleted: after that, a file tool makes it anew.
    """
    text = f"{what} {happened} since it was read. Read it again, then repeat the change."
    return BackendError("stale_version", text)


def already_there(what: str) -> BackendError:
    """Make the error for a new file where there is one."""
    return BackendError("already_exists", f"{what} exists already.")


def not_a_file(what: str) -> BackendError:
    """Make the error for a directory where a file is wanted."""
    return BackendError("is_directory", f"{what} not found: it is a directory. List it with ls.")


def not_text() -> BackendError:
    """Make the error for an edit of bytes."""
    return BackendError("invalid_encoding", "Cannot edit binary files. Write the file whole instead.")


def undeletable_root(path: str) -> BackendError:
    """Make the error for a deletion of the root."""
    return BackendError("invalid_path", f"Error deleting '{path}': the root cannot be deleted.")


def not_listable(
    path: str, code: Literal["file_not_found", "not_a_directory"], hint: str = ""
) -> BackendError:
    """Make the error for a listing of what is not a directory."""
    if code == "not_a_directory":
        return BackendError(code, f"'{path}' is a file, not a directory.{hint}")
    return BackendError(code, f"Path '{path}': path_not_found.{hint}")
