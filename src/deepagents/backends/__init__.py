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

__getattr__ = lazy(
    __name__,
    {
        ".composite": "CompositeBackend",
        ".context_hub": "ContextHubBackend",
        ".filesystem": "FilesystemBackend",
        ".langsmith": "LangSmithSandbox",
        ".local_shell": "DEFAULT_EXECUTE_TIMEOUT LocalShellBackend",
        ".protocol": "BackendProtocol",
        ".state": "StateBackend",
        ".store": "NamespaceFactory StoreBackend",
        "deepagents_sandbox": "LocalSandbox",
    },
)
