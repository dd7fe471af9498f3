"""Places where an agent's files live. Names load on first use: files in state need no disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepagents._lazy import lazy

if TYPE_CHECKING:
    from deepagents.backends.filesystem import FilesystemBackend
    from deepagents.backends.local_shell import DEFAULT_EXECUTE_TIMEOUT, LocalShellBackend
    from deepagents.backends.protocol import BackendProtocol
    from deepagents.backends.state import StateBackend

__all__ = [
    "DEFAULT_EXECUTE_TIMEOUT",
    "BackendProtocol",
    "FilesystemBackend",
    "LocalShellBackend",
    "StateBackend",
]

_HOMES = {
    "DEFAULT_EXECUTE_TIMEOUT": "deepagents.backends.local_shell",
    "BackendProtocol": "deepagents.backends.protocol",
    "FilesystemBackend": "deepagents.backends.filesystem",
    "LocalShellBackend": "deepagents.backends.local_shell",
    "StateBackend": "deepagents.backends.state",
}

__getattr__ = lazy(__name__, _HOMES)
