"""Make a backend of anything that can run a command and move files."""

from __future__ import annotations

from deepagents.backends.protocol import SandboxBackendProtocol
from deepagents.backends.sandbox.base import BaseSandbox
from deepagents.backends.sandbox.operations import MAX_BINARY_BYTES, MAX_OUTPUT_BYTES
from deepagents.backends.sandbox.results import TRUNCATION_MSG

__all__ = [
    "MAX_BINARY_BYTES",
    "MAX_OUTPUT_BYTES",
    "TRUNCATION_MSG",
    "BaseSandbox",
    "SandboxBackendProtocol",
]
