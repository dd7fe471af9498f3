"""Search through a directory backend."""

from __future__ import annotations

from typing import Any

from deepagents.backends import FilesystemBackend


class Searcher:
    """Search below one directory."""

    def __init__(self, root: str) -> None:
        self._backend: Any = FilesystemBackend(root_dir=root, virtual_mode=True)

    def glob(self) -> int:
        """Count the text files."""
        return len(self._backend.glob("*.txt").matches or ())

    def grep(self, needle: str) -> int:
        """Count the lines that hold the needle."""
        return len(self._backend.grep(needle).matches or ())
