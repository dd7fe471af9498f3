"""Search through a directory backend, with three rules asked while it searches."""

from __future__ import annotations

from typing import Any

from benchmarks.probes.rules import RULES
from deepagents.backends import FilesystemBackend
from deepagents.permissions import Access, Rules


class Searcher:
    """Search below one directory."""

    def __init__(self, root: str) -> None:
        self._backend: Any = FilesystemBackend(root_dir=root, virtual_mode=True)
        self._allowed = Access(Rules(RULES), "read")

    def glob(self) -> int:
        """Count the text files."""
        return len(self._backend.glob("*.txt", allowed=self._allowed).matches or ())

    def grep(self, needle: str) -> int:
        """Count the lines that hold the needle."""
        return len(self._backend.grep(needle, allowed=self._allowed).matches or ())
