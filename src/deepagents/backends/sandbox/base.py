"""Make all file operations of a way to run commands and a way to move files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import CoroutineType
from typing import Any

from deepagents._async import IOCall, arun, run
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.operations import Operation, OperationBackend, both_forms
from deepagents.backends.protocol import OnOutput, SandboxBackendProtocol, accepts
from deepagents.backends.results import (
    ExecuteOffloadResult,
    ExecuteResponse,
    FileDownloadResponse,
    FileUploadResponse,
    WriteResult,
)
from deepagents.backends.sandbox.capture import EXECUTE_CAPTURE_MAX_BYTES, Capture
from deepagents.backends.sandbox.operations import Operations
from deepagents.errors import BackendError

_HOOKS = ("_write_preflight", "_awrite_preflight")


class BaseSandbox(OperationBackend, SandboxBackendProtocol, ABC):
    """A machine, container or directory in which commands run and files lie.

    A subclass says how to run a command and how to move files; if it can, natively awaiting too. All else is
    done by small programs that run inside, for which the sandbox needs Python 3.6 or newer as `python3`.
    Without it every file operation answers `not_supported`. Class attributes may be set anew:

    - `virtual_root`: where the caller's `/` is inside. `upload_files` and `download_files` get the caller's
      paths.
    - `artifacts_root`: where the harness may put files of its own.
    - `grep_exclude_dirs`: names of directories that `grep` passes over; none, as in every other backend.
    - `enable_capture_offload`: whether the output of a command may be kept in a file where it runs.
    """

    virtual_root: str = "/"
    artifacts_root: str = "/tmp/deepagents"
    grep_exclude_dirs: Sequence[str] = ()
    enable_capture_offload: bool = False

    @property
    @abstractmethod
    def id(self) -> str:
        """Return a name that is unique to this sandbox."""

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
        """Return what this sandbox can do; versions, unless a subclass writes or edits without them."""
        versions = all(accepts(type(self), each, "expected_version") for each in ("write", "edit"))
        return replace(
            super().capabilities(path),
            versions=versions,
            artifacts_root=self.artifacts_root,
            capture=self.enable_capture_offload,
        )

    def real_path(self, path: str) -> str:
        """Return where a path leads once links are resolved; this runs a command.

        Raises:
            BackendError: when that cannot be found out.
        """
        return run(self._operations.where(path))

    async def _execute_with_offload(
        self,
        command: str,
        capture_path: str,
        *,
        max_inline_bytes: int,
        max_capture_bytes: int | None = None,
        timeout: int | None = None,
        on_output: OnOutput | None = None,
    ) -> ExecuteOffloadResult:
        """Run a command; output over `max_inline_bytes` stays in `capture_path`, and a preview comes back.

        Where `execute` takes `on_output`, pieces of the output come while the command runs.
        """
        most = EXECUTE_CAPTURE_MAX_BYTES if max_capture_bytes is None else max_capture_bytes
        capture = Capture(
            self, command, timeout, self.virtual_root, capture_path, max_inline_bytes, most,
            on_output if accepts(type(self), "execute", "on_output") else None,
        )  # fmt: skip
        return await (capture.keep() if self.enable_capture_offload else capture.plain())

    execute_with_offload: Callable[..., ExecuteOffloadResult]
    aexecute_with_offload: Callable[..., CoroutineType[Any, Any, ExecuteOffloadResult]]
    execute_with_offload, aexecute_with_offload = both_forms(_execute_with_offload)

    async def _perform(self, op: Operation) -> Any:
        return await getattr(self._operations, op.method)(op)

    @property
    def _operations(self) -> Operations:
        # Subclasses may override these hooks; without that, the write itself makes parents, with one command
        # less.
        prepared = any(getattr(type(self), each) is not getattr(BaseSandbox, each) for each in _HOOKS)
        return Operations(
            self, self.virtual_root, tuple(self.grep_exclude_dirs), self._prepare if prepared else None
        )

    def _write_preflight(self, file_path: str) -> WriteResult | None:
        return run(self._make_parents(file_path))

    async def _awrite_preflight(self, file_path: str) -> WriteResult | None:
        return await arun(self._make_parents(file_path))

    async def _make_parents(self, file_path: str) -> WriteResult | None:
        try:
            await self._operations.where(file_path, make_parents=True)
        except BackendError as error:
            return WriteResult(error=error.text, code=error.code)
        return None

    def _prepare(self, file_path: str) -> IOCall[WriteResult | None]:
        return IOCall(lambda: self._write_preflight(file_path), lambda: self._awrite_preflight(file_path))
