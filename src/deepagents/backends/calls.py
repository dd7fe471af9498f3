"""A backend as flow calls: the only door through which tools and middleware reach files."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import ceil
from typing import Any, Final, TypeVar

from deepagents._state.deadline import seconds_left
from deepagents.backends._appending import append, transfer_failure
from deepagents.backends._door import ask
from deepagents.backends._enforcing import RealPaths
from deepagents.backends._missing import made
from deepagents.backends._patience import Patience
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.protocol import (
    BACKEND_TYPES,
    Allowed,
    BackendProtocol,
    accepts,
    capped,
    execute_accepts_timeout,
)
from deepagents.backends.results import (
    DeleteResult,
    EditResult,
    ExecuteOffloadResult,
    FileDownloadResponse,
    GlobResult,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
)
from deepagents.errors import BackendError, ToolFailure

Result = TypeVar("Result")

_USUAL_TIMEOUT: Final = 120
"""Seconds that backends give a command for which nobody asked for another time."""


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How to search: most matches in all, whether the pattern is an expression, and lines around a match."""

    max_count: int | None = None
    regex: bool = False
    context_lines: int = 0


@dataclass(frozen=True, slots=True)
class Keep:
    """Where output of more than so many bytes goes, if the backend can keep it there."""

    path: str
    most_inline: int


@dataclass(frozen=True, slots=True)
class Files:
    """One backend, as calls that either answer or raise `ToolFailure`."""

    backend: BackendProtocol
    patience: Patience = field(default_factory=Patience)

    @classmethod
    def of(cls, backend: BACKEND_TYPES, runtime: Any, patience: Patience | None = None) -> Files:
        """Open a backend, or what its factory makes for this runtime."""
        return cls(made(backend, runtime), patience or Patience())

    def capabilities(self, path: str = "/") -> Capabilities:
        """Say what can be done at a path: nothing, when the backend cannot tell."""
        with suppress(Exception):
            return self.backend.capabilities(path)
        return Capabilities()

    async def place(self, path: str) -> str:
        """Name the file that a path leads to, where telling is cheap: on this machine, in this process."""
        can = self.capabilities(path)
        if not (can.host or can.in_process):
            return path
        try:
            return await RealPaths(self.backend, self.patience).of(path)
        except BackendError:
            return path

    def left_out(self) -> str | None:
        """Say in one line what earlier answers left out because it waits for a person."""
        return None

    async def ls(self, path: str, *, allowed: Allowed | None = None) -> LsResult:
        """List a directory; entries that could be read may stand beside an error."""
        found = await self._ask("ls", path, allowed=allowed)
        return _answered(found, or_else=found.entries)

    async def read(self, path: str, offset: int, limit: int, *, allowed: Allowed | None = None) -> ReadResult:
        """Read a window of a file."""
        return _answered(await self._ask("read", path, offset, limit, allowed=allowed))

    async def write(
        self, path: str, content: str, expected_version: str | None, *, allowed: Allowed | None = None
    ) -> WriteResult:
        """Create or replace a file, unless it changed since `expected_version`."""
        options: dict[str, Any] = {
            "expected_version": self._guard(path, expected_version),
            "allowed": allowed,
        }
        return _answered(await self._ask("write", path, content, **options))

    async def append(self, path: str, text: str, *, allowed: Allowed | None = None) -> WriteResult:
        """Add text to the end of a file as it is, half characters included; make the file if need be.

        Where the backend cannot, the file is fetched and put back whole, which costs what the file has.
        """
        content = _text_or_bytes(text)
        try:
            options: dict[str, Any] = {"allowed": allowed, "patience": self.patience}
            return _answered(await append(self.backend, path, content, **options))
        except BackendError as error:
            raise ToolFailure(error.code, error.text) from error

    async def edit(
        self,
        path: str,
        old: str,
        new: str,
        replace_all: bool,
        expected_version: str | None,
        *,
        allowed: Allowed | None = None,
    ) -> EditResult:
        """Replace exact text, unless the file changed since `expected_version`."""
        options: dict[str, Any] = {
            "expected_version": self._guard(path, expected_version),
            "allowed": allowed,
        }
        return _answered(await self._ask("edit", path, old, new, replace_all, **options))

    async def delete(self, path: str, *, allowed: Allowed | None = None) -> DeleteResult:
        """Remove a path and all below it."""
        return _answered(await self._ask("delete", path, allowed=allowed))

    async def glob(
        self, pattern: str, path: str | None, seconds: float | None = None, *, allowed: Allowed | None = None
    ) -> GlobResult:
        """Find files by pattern, within so many seconds; matches may stand beside an error."""
        most = min(filter(None, (seconds, self.patience.seconds)), default=None)
        found = await self._ask("glob", pattern, path, seconds=most, allowed=allowed)
        return _answered(found, or_else=found.matches)

    async def grep(
        self,
        pattern: str,
        path: str | None,
        glob: str | None,
        wanted: SearchOptions,
        *,
        allowed: Allowed | None = None,
    ) -> GrepResult:
        """Find lines that hold a pattern; matches may stand beside an error."""
        options: dict[str, Any] = {**self._search_options(wanted), "allowed": allowed}
        found = capped(await self._ask("grep", pattern, path, glob, **options), wanted.max_count)
        return _answered(found, or_else=found.matches)

    async def download(self, path: str, *, allowed: Allowed | None = None) -> bytes:
        """Read a file whole, as bytes."""
        answer = (await self._ask("download_files", [path], allowed=allowed))[0]
        if answer.error or answer.content is None:
            raise _transfer_failure(path, answer.error or "no content returned")
        return answer.content

    async def download_each(self, paths: Sequence[str]) -> list[FileDownloadResponse]:
        """Read many files whole, as bytes, in order; each answer has its own error."""
        return await self._ask("download_files", list(paths))

    async def download_all(self, paths: Sequence[str]) -> list[bytes | None]:
        """Read many files whole, as bytes, in order; `None` stands for each that cannot be read."""
        answers = await self.download_each(paths)
        return [None if answer.error else answer.content for answer in answers]

    async def upload(self, path: str, content: bytes, *, allowed: Allowed | None = None) -> None:
        """Create or replace a file with these bytes."""
        answer = (await self._ask("upload_files", [(path, content)], allowed=allowed))[0]
        if answer.error:
            raise _transfer_failure(path, answer.error)

    async def upload_all(self, files: Sequence[tuple[str, bytes]]) -> list[bool]:
        """Create or replace many files with bytes; tell in order which of them are there now."""
        answers = await self._ask("upload_files", list(files))
        return [not answer.error for answer in answers]

    async def execute(
        self, command: str, timeout: int | None, seconds: float | None = None, keep: Keep | None = None
    ) -> ExecuteOffloadResult:
        """Run a shell command; `timeout` is in seconds, and so is how long its answer is waited for."""
        if timeout is not None and not execute_accepts_timeout(type(self.backend)):
            raise ToolFailure(
                "not_supported", "This backend does not support per-command timeout; leave it out."
            )
        timeout, seconds = self._in_time(timeout, seconds)
        options: dict[str, Any] = {"timeout": timeout, "seconds": seconds}
        if keep is not None and self.capabilities(keep.path).capture:
            options["max_inline_bytes"] = keep.most_inline
            return await self._ask("execute_with_offload", command, keep.path, **options)
        return ExecuteOffloadResult(False, await self._ask("execute", command, **options))

    def _in_time(self, timeout: int | None, seconds: float | None) -> tuple[int | None, float | None]:
        """Give a command no more time than the work it belongs to has left."""
        left = seconds_left()
        if left is None:
            return timeout, seconds
        if not execute_accepts_timeout(type(self.backend)):
            return timeout, min(seconds or left, max(left, 1))
        whole = max(ceil(left), 1)
        if timeout is not None or whole < _USUAL_TIMEOUT:
            timeout = min(timeout or whole, whole)
        return timeout, seconds

    def _search_options(self, wanted: SearchOptions) -> dict[str, Any]:
        if wanted.regex and not accepts(type(self.backend), "grep", "regex"):
            raise ToolFailure("not_supported", "This backend finds literal text only; leave regex out.")
        return {
            "max_count": wanted.max_count,
            "regex": wanted.regex or None,
            "context_lines": wanted.context_lines or None,
        }

    def _guard(self, path: str, expected_version: str | None) -> str | None:
        return expected_version if self.capabilities(path).versions else None

    async def _ask(self, method: str, *args: Any, seconds: float | None = None, **options: Any) -> Any:
        try:
            return await ask(self.backend, method, *args, patience=self.patience, seconds=seconds, **options)
        except BackendError as error:
            raise ToolFailure(error.code, error.text) from error


def supports_execution(backend: BackendProtocol) -> bool:
    """Tell whether a backend can run commands."""
    return Files(backend).capabilities().execute


def _transfer_failure(path: str, error: str) -> ToolFailure:
    failure = transfer_failure(path, error)
    return ToolFailure(failure.code, failure.text)


def _text_or_bytes(text: str) -> str | bytes:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def _answered(result: Result, or_else: Any = None) -> Result:
    error: str | None = getattr(result, "error", None)
    if error and not or_else:
        raise ToolFailure(getattr(result, "code", None) or "io_error", error)
    return result
