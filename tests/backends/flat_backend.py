"""A small backend in memory, for tests that need many of them at hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from deepagents._globs import compile_glob
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.protocol import BackendProtocol, cap_matches
from deepagents.backends.results import (
    FileInfo,
    GlobResult,
    GrepMatch,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
)


class FlatBackend(BackendProtocol):
    """Text files in a dict; searches know no option but the cap, and nothing can be deleted."""

    def __init__(self, files: Mapping[str, str] | None = None) -> None:
        self.files = dict(files or {})
        self.asked: list[tuple[object, ...]] = []

    def capabilities(self, path: str = "/") -> Capabilities:
        return Capabilities(host=False)

    def ls(self, path: str) -> LsResult:
        self.asked.append(("ls", path))
        if path in self.files:
            return LsResult(error=f"Path '{path}': not_a_directory", code="not_a_directory")
        names = sorted({self._name(below) for below, _ in self._below(path)})
        base = path.rstrip("/") + "/"
        return LsResult(entries=[FileInfo(path=base + each, is_dir=each.endswith("/")) for each in names])

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        self.asked.append(("read", file_path))
        if file_path not in self.files:
            return ReadResult(error=f"File '{file_path}' not found", code="file_not_found")
        return ReadResult(file_data={"content": self.files[file_path], "encoding": "utf-8"})

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        self.asked.append(("glob", pattern, path))
        matches = compile_glob(pattern)
        return GlobResult(matches=[{"path": key} for below, key in self._below(path) if matches(below)])

    def grep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        self.asked.append(("grep", pattern, path, glob, max_count))
        matches = compile_glob("{*,.*}" if glob is None else glob)
        found: list[GrepMatch] = [
            {"path": key, "line": number, "text": text}
            for below, key in self._below(path)
            if matches(below)
            for number, text in enumerate(self.files[key].split("\n"), 1)
            if pattern in text
        ]
        return cap_matches(GrepResult(matches=found), max_count)

    def write(self, file_path: str, content: str) -> WriteResult:
        self.asked.append(("write", file_path))
        self.files[file_path] = content
        return WriteResult(path=file_path)

    def _below(self, path: str | None) -> Iterator[tuple[str, str]]:
        base = (path or "/").rstrip("/") + "/"
        for key in sorted(self.files):
            if key.startswith(base):
                yield key[len(base) :], key

    @staticmethod
    def _name(below: str) -> str:
        name, slash, _ = below.partition("/")
        return name + slash
