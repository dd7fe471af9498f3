"""Run commands in a directory on this machine."""

from deepagents.backends.local_shell.backend import DEFAULT_EXECUTE_TIMEOUT, LocalShellBackend

__all__ = ["DEFAULT_EXECUTE_TIMEOUT", "LocalShellBackend"]
