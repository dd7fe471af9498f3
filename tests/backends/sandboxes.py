"""Sandboxes that run real processes in a temporary directory."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from deepagents._paths import normalise
from deepagents.backends.protocol import ExecuteResponse, FileDownloadResponse, FileUploadResponse
from deepagents.backends.results import FileOperationError
from deepagents.backends.sandbox import BaseSandbox
from deepagents.errors import BackendError

BIN = Path(sys.executable).parent


@dataclass
class DirectorySandbox(BaseSandbox):
    """Runs commands in a directory; its paths start at `virtual_root`: that directory, or this machine's."""

    directory: Path
    virtual_root: str = "/"
    env: dict[str, str] = field(default_factory=lambda: {"PATH": f"{BIN}:/usr/bin:/bin"})
    commands: list[str] = field(default_factory=list[str])

    @property
    def id(self) -> str:
        return f"directory-{self.directory.name}"

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        self.commands.append(command)
        done = subprocess.run(
            ["/bin/sh", "-c", command], cwd=self.directory, env=self.env, timeout=timeout, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        return ExecuteResponse(done.stdout.decode("utf-8", "replace"), done.returncode)

    async def aexecute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        self.commands.append(f"async {command}")
        process = await asyncio.create_subprocess_exec(
            "/bin/sh", "-c", command, cwd=self.directory, env=self.env,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        output, _ = await asyncio.wait_for(process.communicate(), timeout)
        return ExecuteResponse(output.decode("utf-8", "replace"), process.returncode)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        return [FileUploadResponse(path, self._upload(path, content)) for path, content in files]

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        return [self._download(path) for path in paths]

    def _upload(self, path: str, content: bytes) -> FileOperationError | None:
        try:
            place = self._place(path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        except (BackendError, OSError) as error:
            return _code(error)
        return None

    def _download(self, path: str) -> FileDownloadResponse:
        try:
            return FileDownloadResponse(path, self._place(path).read_bytes())
        except (BackendError, OSError) as error:
            return FileDownloadResponse(path, error=_code(error))

    def _place(self, path: str) -> Path:
        if self.virtual_root == "/" and not path.startswith("/"):
            raise BackendError("invalid_path", f"not absolute: {path!r}")
        return Path(self.virtual_root + normalise(path))


def _code(error: BackendError | OSError) -> FileOperationError:
    match error:
        case FileNotFoundError():
            return "file_not_found"
        case IsADirectoryError():
            return "is_directory"
        case PermissionError():
            return "permission_denied"
        case _:
            return "invalid_path"


def rooted(directory: Path) -> DirectorySandbox:
    """Make a sandbox whose `/` is a directory."""
    return DirectorySandbox(directory, virtual_root=str(directory))
