"""What stands in for a backend that could not be made."""

from __future__ import annotations

from typing import Any

from langgraph.errors import GraphBubbleUp

from deepagents.backends._door import failure
from deepagents.backends._legacy import resolve
from deepagents.backends.protocol import BACKEND_TYPES, BackendProtocol
from deepagents.errors import BackendError, ConfigError

_METHODS = ("ls", "read", "grep", "glob", "write", "edit", "delete", "upload_files", "download_files")


def made(backend: BACKEND_TYPES, runtime: Any) -> BackendProtocol:
    """Return the backend itself, what its factory makes, or what says with each call that the factory failed.

    Raises:
        ConfigError: for what is neither a backend nor a factory of one.
    """
    try:
        return resolve(backend, runtime)
    except Exception as error:
        if isinstance(error, (GraphBubbleUp, ConfigError)):
            raise
        return _Missing(failure("making the backend", error))


class _Missing(BackendProtocol):
    """Refuses every call with the error of its making."""

    def __init__(self, error: BackendError) -> None:
        self._error = error

    def __getattribute__(self, name: str) -> Any:
        if name.removeprefix("a") not in _METHODS:
            return super().__getattribute__(name)
        raise self._error
