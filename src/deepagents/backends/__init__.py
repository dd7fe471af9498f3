"""Offer places where an agent's files live. Names load on first use: files in state need no disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepagents._lazy import lazy

if TYPE_CHECKING:
    from deepagents.backends.composite import CompositeBackend
    from deepagents.backends.context_hub import ContextHubBackend
    from deepagents.backends.filesystem import FilesystemBackend
    from deepagents.backends.langsmith import LangSmithSandbox
    from deepagents.backends.local_shell import DEFAULT_EXECUTE_TIMEOUT, LocalShellBackend
    from deepagents.backends.protocol import BackendProtocol
    from deepagents.backends.state import StateBackend
    from deepagents.backends.store import NamespaceFactory, StoreBackend
    from deepagents_sandbox import LocalSandbox

__all__ = [
    "DEFAULT_EXECUTE_TIMEOUT",
    "BackendProtocol",
    "CompositeBackend",
    "ContextHubBackend",
    "FilesystemBackend",
    "LangSmithSandbox",
    "LocalSandbox",
    "LocalShellBackend",
    "NamespaceFactory",
    "StateBackend",
    "StoreBackend",
]

_HOMES = {
    "DEFAULT_EXECUTE_TIMEOUT": "deepagents.backends.local_shell",
    "BackendProtocol": "deepagents.backends.protocol",
    "CompositeBackend": "deepagents.backends.composite",
    "ContextHubBackend": "deepagents.backends.context_hub",
    "FilesystemBackend": "deepagents.backends.filesystem",
    "LangSmithSandbox": "deepagents.backends.langsmith",
    "LocalSandbox": "deepagents_sandbox",
    "LocalShellBackend": "deepagents.backends.local_shell",
    "NamespaceFactory": "deepagents.backends.store",
    "StateBackend": "deepagents.backends.state",
    "StoreBackend": "deepagents.backends.store",
}

__getattr__ = lazy(__name__, _HOMES)
