"""Confine commands to a directory on this machine."""

from deepagents_sandbox.backend import PROTECTED, LocalSandbox

__all__ = ["PROTECTED", "LocalSandbox"]
