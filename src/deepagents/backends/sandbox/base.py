"""A sandbox: all file operations, out of a way to run commands and to move files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from deepagents._flow import Call, Flow, arun, run
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.protocol import Allowed, SandboxBackendProtocol, accepts
from deepagents.backends.results import (
    DeleteResult,
    EditResult,
    ExecuteOffloadResult,
    ExecuteResponse,
    FileDownloadResponse,
    FileUploadResponse,
    GlobResult,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
)
from deepagents.backends.sandbox.offload import EXECUTE_CAPTURE_MAX_BYTES, Capture
from deepagents.backends.sandbox.operations import Operations
from deepagents.errors import BackendError

_HOOKS = ("_write_preflight", "_awrite_preflight")


class BaseSandbox(SandboxBackendProtocol, ABC):
    """A machine, container or directory in which commands run and files lie.

    A subclass says how to run a command and how to move files; if it can, natively awaiting too. All else is
    done by small programs that run inside, for which the sandbox needs Python 3.6 or newer as `python3`.
    Without it every file operation answers `not_supported`. Class attributes may be set anew:

    - `root`: where the caller's `/` lies inside. The paths of `upload_files` and `download_files` are the
      caller's.
    - `artifacts_root`: where the harness may put files of its own.
    - `grep_exclude_dirs`: names of directories that `grep` passes over; none, as in every other backend.
    - `enable_capture_offload`: whether the output of a command may be kept in a file where it runs.
    """

    root: str = "/"
    artifacts_root: str = "/tmp/deepagents"
    grep_exclude_dirs: Sequence[str] = ()
    enable_capture_offload: bool = False

    @property
    @abstractmethod
    def id(self) -> str:
        """Name this place, uniquely."""

    @abstractmethod
    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Run a shell command; `timeout` is in seconds."""

    @abstractmethod
    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Write many files as bytes; the answers keep the order."""

    @abstractmethod
    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Read many files as bytes; the answers keep the order."""

    def capabilities(self, path: str = "/") -> Capabilities:
        """Say what this sandbox can do; versions, unless a subclass writes or edits without them."""
        versions = all(accepts(type(self), each, "expected_version") for each in ("write", "edit"))
        return replace(
            super().capabilities(path),
            versions=versions,
            artifacts_root=self.artifacts_root,
            capture=self.enable_capture_offload,
        )

    def real_path(self, path: str) -> str:
        """Name the place to which a path leads once links are resolved; this runs a command.

        Raises:
            BackendError: when there is no telling.
        """
        return run(self._files.where(path))

    def ls(self, path: str, *, allowed: Allowed | None = None) -> LsResult:
        """List one directory."""
        return run(self._files.ls(path, allowed))

    async def als(self, path: str, **options: Any) -> LsResult:
        """List one directory; takes what `ls` takes."""
        return await arun(self._files.ls(path, **options))

    def read(
        self, file_path: str, offset: int = 0, limit: int = 2000, *, allowed: Allowed | None = None
    ) -> ReadResult:
        """Read `limit` lines from line `offset` (counted from 0); other files come whole, as base64."""
        return run(self._files.read(file_path, offset, limit, allowed))

    async def aread(self, file_path: str, offset: int = 0, limit: int = 2000, **options: Any) -> ReadResult:
        """Read `limit` lines from line `offset`; takes what `read` takes."""
        return await arun(self._files.read(file_path, offset, limit, **options))

    def write(
        self,
        file_path: str,
        content: str,
        *,
        expected_version: str | None = None,
        allowed: Allowed | None = None,
    ) -> WriteResult:
        """Create a file or replace it whole, unless it changed since `expected_version`."""
        return run(self._write(file_path, content, expected_version, allowed))

    async def awrite(self, file_path: str, content: str, **options: Any) -> WriteResult:
        """Create a file or replace it whole; takes what `write` takes."""
        return await arun(self._write(file_path, content, **options))

    def edit(
        self,
        file_path: str,
        old_string: str,
        new_string: str,
        replace_all: bool = False,
        *,
        expected_version: str | None = None,
        allowed: Allowed | None = None,
    ) -> EditResult:
        """Replace exact text, unless the file changed since `expected_version`."""
        return run(
            self._files.edit(file_path, old_string, new_string, replace_all, expected_version, allowed)
        )

    async def aedit(
        self,
        file_path: str,
        old_string: str,
        new_string: str,
        replace_all: bool = False,
        **options: Any,
    ) -> EditResult:
        """Replace exact text; takes what `edit` takes."""
        return await arun(self._files.edit(file_path, old_string, new_string, replace_all, **options))

    def delete(self, file_path: str, *, allowed: Allowed | None = None) -> DeleteResult:
        """Remove a file, or a directory with all that is in it; of a link, the link alone."""
        return run(self._files.delete(file_path, allowed))

    async def adelete(self, file_path: str, **options: Any) -> DeleteResult:
        """Remove a file, or a directory with all that is in it; takes what `delete` takes."""
        return await arun(self._files.delete(file_path, **options))

    def glob(self, pattern: str, path: str | None = None, *, allowed: Allowed | None = None) -> GlobResult:
        """Find the files whose path matches, by path; without `path` below where commands run."""
        return run(self._files.glob(pattern, path, allowed))

    async def aglob(self, pattern: str, path: str | None = None, **options: Any) -> GlobResult:
        """Find the files whose path matches; takes what `glob` takes."""
        return await arun(self._files.glob(pattern, path, **options))

    def grep(
        self,
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        *,
        max_count: int | None = None,
        regex: bool = False,
        context_lines: int = 0,
        allowed: Allowed | None = None,
    ) -> GrepResult:
        """Find the lines that hold `pattern`, by path and line; without `path` below where commands run.

        Raises:
            ValueError: when `context_lines` is negative.
        """
        return run(
            self._files.grep(
                pattern,
                path,
                glob,
                max_count=max_count,
                regex=regex,
                context_lines=context_lines,
                allowed=allowed,
            )
        )

    async def agrep(
        self,
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        *,
        max_count: int | None = None,
        **options: Any,
    ) -> GrepResult:
        """Find the lines that hold `pattern`; takes what `grep` takes.

        Raises:
            ValueError: when `context_lines` is negative.
        """
        return await arun(self._files.grep(pattern, path, glob, max_count=max_count, **options))

    def execute_with_offload(
        self,
        command: str,
        capture_path: str,
        *,
        max_inline_bytes: int,
        max_capture_bytes: int | None = None,
        timeout: int | None = None,
    ) -> ExecuteOffloadResult:
        """Run a command; output over `max_inline_bytes` stays in `capture_path`, and a preview comes back."""
        most = EXECUTE_CAPTURE_MAX_BYTES if max_capture_bytes is None else max_capture_bytes
        capture = Capture(self, command, timeout, self.root, capture_path, max_inline_bytes, most)
        return run(capture.kept() if self.enable_capture_offload else capture.plain())

    async def aexecute_with_offload(
        self,
        command: str,
        capture_path: str,
        *,
        max_inline_bytes: int,
        max_capture_bytes: int | None = None,
        timeout: int | None = None,
    ) -> ExecuteOffloadResult:
        """Run a command; output over `max_inline_bytes` stays in `capture_path`, and a preview comes back."""
        most = EXECUTE_CAPTURE_MAX_BYTES if max_capture_bytes is None else max_capture_bytes
        capture = Capture(self, command, timeout, self.root, capture_path, max_inline_bytes, most)
        return await arun(capture.kept() if self.enable_capture_offload else capture.plain())

    @property
    def _files(self) -> Operations:
        return Operations(self, self.root, tuple(self.grep_exclude_dirs))

    def _write_preflight(self, file_path: str) -> WriteResult | None:
        return run(self._make_parents(file_path))

    async def _awrite_preflight(self, file_path: str) -> WriteResult | None:
        return await arun(self._make_parents(file_path))

    def _make_parents(self, file_path: str) -> Flow[WriteResult | None]:
        try:
            yield from self._files.where(file_path, make_parents=True)
        except BackendError as error:
            return WriteResult(error=error.text, code=error.code)
        return None

    def _write(
        self,
        path: str,
        content: str,
        expected_version: str | None = None,
        allowed: Allowed | None = None,
    ) -> Flow[WriteResult]:
        """Write, after what a subclass wants to be done before."""
        if any(getattr(type(self), each) is not getattr(BaseSandbox, each) for each in _HOOKS):
            refused: WriteResult | None = yield from Call(
                lambda: self._write_preflight(path), lambda: self._awrite_preflight(path)
            )
            if refused is not None:
                return refused
        return (yield from self._files.write(path, content, expected_version, allowed))
