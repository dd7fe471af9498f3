"""A directory on this machine, and commands that reach nothing else."""

from deepagents_sandbox.backend import PROTECTED, LocalSandbox

__all__ = ["PROTECTED", "LocalSandbox"]
