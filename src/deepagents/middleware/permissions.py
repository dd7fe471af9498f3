"""Keep the rules of `deepagents.permissions` under the name of the middleware that they bind."""

from deepagents.permissions import FilesystemPermission

__all__ = ["FilesystemPermission"]
