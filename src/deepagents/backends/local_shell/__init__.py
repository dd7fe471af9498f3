"""A directory on this machine in which commands can be run."""

from deepagents.backends.local_shell.backend import DEFAULT_EXECUTE_TIMEOUT, LocalShellBackend

__all__ = ["DEFAULT_EXECUTE_TIMEOUT", "LocalShellBackend"]
