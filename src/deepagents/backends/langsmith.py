"""Make a backend of a LangSmith sandbox: its files, and commands in it."""

from __future__ import annotations

from shlex import quote
from typing import Final

from langsmith.sandbox import (
    CommandTimeoutError,
    ResourceNotFoundError,
    Sandbox,
    SandboxClientError,
    SandboxOperationError,
)

from deepagents.backends.results import (
    ExecuteResponse,
    FileDownloadResponse,
    FileOperationError,
    FileUploadResponse,
)
from deepagents.backends.sandbox import BaseSandbox

_HALF_AN_HOUR: Final = 30 * 60
_TIMED_OUT: Final = 124


class LangSmithSandbox(BaseSandbox):
    """Files and commands of one LangSmith sandbox, which the caller starts and deletes.

    Args:
        sandbox: a `langsmith.sandbox.Sandbox`, as `SandboxClient().sandbox(...)` gives it.
    """

    enable_capture_offload = True

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._default_timeout = _HALF_AN_HOUR

    @property
    def id(self) -> str:
        """Return the sandbox's name."""
        return self._sandbox.name

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Run a command in bash; `timeout` is in seconds, half an hour when none is given, 0 for none.

        Raises:
            SandboxClientError: of LangSmith, when the sandbox cannot be reached.
        """
        seconds = self._default_timeout if timeout is None else timeout
        try:
            ended = self._sandbox.run(command, timeout=seconds)
        except CommandTimeoutError:
            return ExecuteResponse(f"Error: Command timed out after {seconds} seconds.", _TIMED_OUT)
        parts = [ended.stdout.rstrip("\n"), ended.stderr] if ended.stdout and ended.stderr else []
        return ExecuteResponse("\n".join(parts) or ended.stdout or ended.stderr, ended.exit_code)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Write many files, one request each; the answers keep the order."""
        return [FileUploadResponse(path, self._upload(path, content)) for path, content in files]

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Read many files, one request each; the answers keep the order."""
        return [self._download(path) for path in paths]

    async def aclose(self) -> None:
        """Do nothing: no connection is held between calls."""

    def _upload(self, path: str, content: bytes) -> FileOperationError | str | None:
        if not path.startswith("/"):
            return "invalid_path"
        try:
            self._sandbox.write(path, content)
        except SandboxClientError as error:
            return self._problem(path, error)
        return None

    def _download(self, path: str) -> FileDownloadResponse:
        if not path.startswith("/"):
            return FileDownloadResponse(path, error="invalid_path")
        try:
            return FileDownloadResponse(path, self._sandbox.read(path))
        except SandboxClientError as error:
            return FileDownloadResponse(path, error=self._problem(path, error))

    def _problem(self, path: str, error: SandboxClientError) -> FileOperationError | str:
        match error:
            case ResourceNotFoundError():
                return "file_not_found"
            case SandboxOperationError(error_type="PermissionDenied"):
                return "permission_denied"
            # The service reports a directory only as a failed operation.
            case SandboxOperationError() if self._is_directory(path):
                return "is_directory"
            case _:
                return f"{type(error).__name__}: the sandbox could not do that."

    def _is_directory(self, path: str) -> bool:
        try:
            return self._sandbox.run(f"test -d {quote(path)}").exit_code == 0
        except SandboxClientError:
            return False
