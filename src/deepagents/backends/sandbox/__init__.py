"""Any place that can run a command and move files, as a backend."""

from __future__ import annotations

from types import MappingProxyType

from deepagents._deprecation import warn_legacy
from deepagents.backends.protocol import SandboxBackendProtocol
from deepagents.backends.sandbox.answers import TRUNCATION_MSG
from deepagents.backends.sandbox.base import BaseSandbox
from deepagents.backends.sandbox.offload import EXECUTE_CAPTURE_MAX_BYTES
from deepagents.backends.sandbox.operations import (
    EDIT_INLINE_MAX_BYTES,
    MAX_BINARY_BYTES,
    MAX_OUTPUT_BYTES,
)

__all__ = [
    "MAX_BINARY_BYTES",
    "MAX_OUTPUT_BYTES",
    "TRUNCATION_MSG",
    "BaseSandbox",
    "SandboxBackendProtocol",
]

_OLDER = MappingProxyType(
    {
        "_EDIT_INLINE_MAX_BYTES": EDIT_INLINE_MAX_BYTES,
        "_EXECUTE_CAPTURE_MAX_BYTES": EXECUTE_CAPTURE_MAX_BYTES,
    }
)


def __getattr__(name: str) -> int:
    """Serve names that other packages import."""
    if name not in _OLDER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warn_legacy(f"{name} of {__name__} is deprecated.")
    return _OLDER[name]
