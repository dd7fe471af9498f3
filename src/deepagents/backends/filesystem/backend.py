"""Keep files on disk, below one root directory."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any, ClassVar, Final

from deepagents._async import IOCall, await_thread, in_thread, within
from deepagents._globs import parse_glob
from deepagents._paths import is_within
from deepagents._programs import find_ripgrep, note_changeable
from deepagents.backends import operations as ops
from deepagents.backends._query import Query
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.filesystem import reading, search
from deepagents.backends.filesystem.buffers import Buffers
from deepagents.backends.filesystem.pages import LineMarks
from deepagents.backends.filesystem.paths import HostPaths, Paths, ResolvedPath, StaysBelow, VirtualPaths
from deepagents.backends.filesystem.writing import Writer
from deepagents.backends.operations import MOST_FOR_HINT, Operation, TransferBackend
from deepagents.backends.protocol import ASYNC_GREP_TIMEOUT, DEFAULT_GREP_TIMEOUT, Allowed
from deepagents.backends.results import (
    DeleteResult,
    EditResult,
    FileDownloadResponse,
    FileUploadResponse,
    GlobResult,
    GrepResult,
    WriteResult,
    transfer_error,
)
from deepagents.errors import BackendError

DEFAULT_GLOB_TIMEOUT = 5.0
"""Seconds that a walk may take before it returns what it has."""
_IGNORE_ALL: Final = b"*\n"


class FilesystemBackend(TransferBackend):
    """Files on disk.

    With `virtual_mode` (the default) every path starts at `/`, which is `root_dir`, and no `..`, link or race
    leads out of it. Without it, paths are those of this machine and nothing is confined. Writes replace a
    file whole, or not at all, and keep its mode and line ends. Files of more than `max_file_size_mb` are not
    edited, not searched and not returned as base64; text of any size is read by pages. `glob` gives size and
    time of up to 1,000 files, and of a link `delete` removes the link alone. On Windows, links are
    checked just before use, so that a race could still lead out.
    """

    artifacts_folder: ClassVar[str] = ""
    """Directory below the root for files of the harness, such as `.agent/artifacts`; without it, the root.

    Git does not see it, searches from above pass over it, and no link leads what is written there elsewhere.
    """

    def __init__(
        self,
        root_dir: str | Path | None = None,
        virtual_mode: bool | None = True,
        max_file_size_mb: float = 10,
    ) -> None:
        if virtual_mode is None:
            warnings.warn(
                "virtual_mode=None is deprecated: say True or False.", DeprecationWarning, stacklevel=2
            )
            virtual_mode = True
        self.cwd = Path(root_dir or ".").expanduser().resolve()
        self.virtual_mode = virtual_mode
        self.max_file_size_bytes = int(max_file_size_mb * 1024 * 1024)
        self._paths: Paths = VirtualPaths(self.cwd) if virtual_mode else HostPaths(self.cwd)
        self._writer = Writer(self.max_file_size_bytes)
        self._buffers: Buffers | None = None
        self._marks = LineMarks()
        # Nothing that is in it is run outside of a sandbox.
        note_changeable(self, [self.cwd])

    def capabilities(self, path: str = "/") -> Capabilities:
        """Return what this backend can do."""
        root = self._artifacts_root
        return replace(super().capabilities(path), delete=True, versions=True, artifacts_root=root, host=True)

    @property
    def _artifacts_root(self) -> str:
        root = "/" if self.virtual_mode else self.cwd.as_posix()
        return f"{root.rstrip('/')}/{self.artifacts_folder}" if self.artifacts_folder else root

    def real_path(self, path: str) -> str:
        """Return where a path leads once every link on the way is resolved.

        Raises:
            BackendError: when there is no such path, or none inside the root.
        """
        resolved = self._paths.resolve(path)
        return resolved.name_of(resolved.real_parts())

    def use_buffers(self, buffers: Buffers) -> None:
        """Read and write text files as another program shows them, where they are there.

        Listings and searches are of what is saved, and so is what commands find.
        """
        self._buffers = self._writer.buffers = buffers

    async def _perform(self, op: Operation) -> Any:
        def work() -> Any:
            return self._do(op)

        call: IOCall[Any] = in_thread(work)
        if isinstance(op, ops.Grep):
            call = IOCall(work, lambda: _await_search(work, op.pattern))
        return await call

    def _do(self, op: Operation) -> Any:
        match op:
            case ops.Upload():
                return [self._upload(op, path, content) for path, content in op.files]
            case ops.Download():
                return [self._download(op, path, op.most) for path in op.files]
            case ops.Glob() | ops.Grep():
                return self._search(op)
            case ops.Ls():
                return reading.ls(self._resolve(op, op.path), MOST_FOR_HINT if op.hint else None)
            case ops.Read():
                path = self._resolve(op, op.path)
                buffers = self._find_buffers(path)
                return reading.read(path, op.offset, op.limit, self.max_file_size_bytes, self._marks, buffers)
            case ops.CommandOperation():
                raise NotImplementedError(f"{type(self).__name__} does not implement {op.method}()")
            case _:
                return self._change(op)

    def _change(self, op: Any) -> WriteResult | EditResult | DeleteResult:
        path = self._resolve(op, op.path)
        writer = self._writer_for(path)
        if self.artifacts_folder and isinstance(op, (ops.Write, ops.Append)):
            self._hide_artifacts(path)
        match op:
            case ops.Write():
                like = None if op.mode_of is None else self._resolve(op, op.mode_of)
                return writer.write(path, op.content, op.expected_version, creates=op.creates, like=like)
            case ops.Append():
                return WriteResult(path=path.shown, version=self._writer.append(path, op.content))
            case ops.Edit():
                return writer.edit(path, op.edits, op.expected_version)
            case _:
                self._writer.delete(path, self._paths.is_undeletable)
                return DeleteResult(path=path.shown)

    def _search(self, op: ops.Glob | ops.Grep) -> GlobResult | GrepResult:
        # For paths of this machine, `/` means the working directory here too.
        path = self._paths.start if op.path in (None, "", "/") else op.path
        start = replace(self._paths.resolve(path), allowed=op.allowed)
        glob = op.pattern if isinstance(op, ops.Glob) else op.glob
        passed_over = self._find_passed_over(start.shown, glob or "")
        if isinstance(op, ops.Glob):
            most = MOST_FOR_HINT if op.hint else inf
            return search.glob(start, op.pattern, DEFAULT_GLOB_TIMEOUT, passed_over, most)
        wanted = search.Search(
            Query.of(op.pattern, expression=op.regex, context=op.context_lines),
            None if op.glob is None else parse_glob(op.glob),
            op.max_count,
            self.max_file_size_bytes,
            DEFAULT_GREP_TIMEOUT,
            passed_over=passed_over,
            ripgrep=find_ripgrep(),
        )
        return search.grep(start, wanted)

    def _upload(self, op: Operation, path: str, content: bytes) -> FileUploadResponse:
        try:
            resolved = self._resolve(op, path)
            if self.artifacts_folder:
                self._hide_artifacts(resolved)
            self._writer_for(resolved).write_bytes(resolved, content)
        except BackendError as error:
            return FileUploadResponse(path, transfer_error(error))
        return FileUploadResponse(path)

    def _download(self, op: Operation, path: str, most: int | None) -> FileDownloadResponse:
        try:
            resolved = self._resolve(op, path)
            content = reading.download(resolved, most, self._find_buffers(resolved))
            return FileDownloadResponse(path, content)
        except BackendError as error:
            return FileDownloadResponse(path, error=transfer_error(error))

    def _resolve(self, op: Operation, path: str) -> ResolvedPath:
        resolved = self._paths.resolve(path)
        allowed = op.allowed
        if self.artifacts_folder and op.right == "write" and self._is_artifact(resolved.shown):
            allowed = StaysBelow(self._artifacts_root, allowed)
        return replace(resolved, operation=op.right, allowed=allowed)

    def _find_buffers(self, path: ResolvedPath) -> Buffers | None:
        is_own = self.artifacts_folder and self._is_artifact(path.shown)
        return None if is_own else self._buffers

    def _writer_for(self, path: ResolvedPath) -> Writer:
        buffers = self._find_buffers(path)
        return self._writer if buffers is self._writer.buffers else replace(self._writer, buffers=buffers)

    def _is_artifact(self, shown: str) -> bool:
        return is_within(shown, self._artifacts_root)

    def _hide_artifacts(self, path: ResolvedPath) -> None:
        """Let git ignore the artifacts before one is written."""
        if not self._is_artifact(path.shown):
            return
        ignores = self._paths.resolve(f"{self._artifacts_root}/.gitignore")
        ignores = replace(ignores, allowed=StaysBelow(self._artifacts_root))
        # A project may bring one that lets git see all, for secrets to be committed.
        is_there = False
        with suppress(BackendError):
            is_there = reading.download(ignores) == _IGNORE_ALL
        if not is_there:
            self._writer_for(ignores).write_bytes(ignores, _IGNORE_ALL)

    def _find_passed_over(self, start: str, glob: str) -> str | None:
        """Return where the artifacts lie below the start of a search that does not name them."""
        base = f"{start.rstrip('/')}/"
        if not self.artifacts_folder or self.artifacts_folder in glob:
            return None
        return self._artifacts_root[len(base) :] if self._artifacts_root.startswith(base) else None

    # A history of files asks the next four.

    def _disk_roots(self) -> list[Path]:
        """Return the directories in which tools and commands change files."""
        return [self.cwd]

    def _disk_paths(self, path: str) -> list[Path]:
        """Return where a path lies, and where it leads if that is elsewhere."""
        try:
            resolved = self._paths.resolve(path)
            found = [resolved.root.path_of(resolved.real_parts())]
            if resolved.parts and resolved.parts[-1] not in ("", "..", "."):
                above = replace(resolved, parts=resolved.parts[:-1]).real_parts()
                found.append(resolved.root.path_of((*above, resolved.parts[-1])))
        except BackendError:
            return []
        return [*dict.fromkeys(found)]

    def _disk_name(self, path: Path) -> str | None:
        """Return the path by which tools name what lies there."""
        base = self.cwd if self.virtual_mode else Path(self.cwd.anchor)
        return f"/{'/'.join(path.relative_to(base).parts)}" if path.is_relative_to(base) else None

    def _may_restore(self, path: Path, allowed: Allowed) -> bool:
        """Return whether what lies there may be changed under such rules."""
        name = self._disk_name(path)
        return name is not None and allowed(name)

    # The next two are replaced or called by packages that build on this class.

    def _resolve_path(self, key: str) -> Path:
        path = self._paths.resolve(key)
        return path.root.path_of(path.real_parts())

    def _to_virtual_path(self, path: Path) -> str:
        return f"/{path.resolve().relative_to(self.cwd).as_posix()}".replace("/.", "/", 1)


async def _await_search(work: Callable[[], Any], pattern: str) -> Any:
    try:
        # The thread goes on after that; its own limits end it soon.
        return await within(ASYNC_GREP_TIMEOUT, await_thread(work))
    except TimeoutError as error:
        text = f"Search for {pattern!r} timed out. Narrow it by path or glob."
        raise BackendError("timeout", text) from error
