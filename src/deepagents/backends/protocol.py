"""Define the protocol of backends: files by virtual path, every operation blocking and awaiting.

A backend overrides the methods that it can do natively. Each `a...` method that is not overridden runs its
blocking twin in a worker thread. Failures that a caller can act on come back as results with `error` and
`code`; only misuse raises.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol, TypeAlias

from deepagents._async import await_thread, within
from deepagents._deprecation import legacy, legacy_method, load_legacy
from deepagents.backends._signatures import accepts, execute_accepts_timeout, overrides, signature_of
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.results import (
    FILE_NOT_FOUND,
    INVALID_PATH,
    IS_DIRECTORY,
    PERMISSION_DENIED,
    CommandStatus,
    ContextLine,
    DeleteResult,
    EditResult,
    ExecuteArtifact,
    ExecuteOffloadResult,
    ExecuteResponse,
    FileData,
    FileDownloadResponse,
    FileInfo,
    FileOperationError,
    FileUploadResponse,
    GlobResult,
    GlobTruncationReason,
    GrepMatch,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
)
from deepagents.errors import AwaitableOnly

__all__ = [
    "ASYNC_GLOB_TIMEOUT",
    "ASYNC_GREP_TIMEOUT",
    "Allowed",
    "BACKEND_TYPES",
    "DEFAULT_GREP_TIMEOUT",
    "BackendFactory",
    "BackendProtocol",
    "CommandStatus",
    "ContextLine",
    "DeleteResult",
    "EditResult",
    "ExecuteArtifact",
    "ExecuteOffloadResult",
    "ExecuteResponse",
    "FILE_NOT_FOUND",
    "FileData",
    "FileDownloadResponse",
    "FileInfo",
    "FileOperationError",
    "FileUploadResponse",
    "GlobResult",
    "GlobTruncationReason",
    "GrepMatch",
    "GrepResult",
    "INVALID_PATH",
    "IS_DIRECTORY",
    "LsResult",
    "OnOutput",
    "PERMISSION_DENIED",
    "ReadResult",
    "SandboxBackendProtocol",
    "WriteResult",
    "execute_accepts_timeout",
]

__getattr__ = legacy(__name__)

DEFAULT_GREP_TIMEOUT = 15.0
"""Seconds that one phase of a search may take."""
ASYNC_GREP_TIMEOUT = 2 * DEFAULT_GREP_TIMEOUT + 5
"""Seconds that an awaited search may take: two phases and some air."""
ASYNC_GLOB_TIMEOUT = 30.0
"""Seconds that an awaited walk may take."""


OnOutput: TypeAlias = Callable[[str, str], None]
"""Takes a piece of what a command prints, and the name of its stream: `stdout` or `stderr`."""


OLDER_NAMES: Final = ("ls_info", "als_info", "grep_raw", "agrep_raw", "glob_info", "aglob_info")
"""Methods that answered with lists, before `ls`, `grep` and `glob`."""


class Allowed(Protocol):
    """Decides whether the caller may know of, or change, the file at a path."""

    def __call__(self, path: str) -> bool:
        """Return the answer for one path, normalised, without a slash at its end."""
        ...

    def all_below(self, directory: str) -> bool:
        """Return whether every path below a directory is surely allowed, so that none need be asked about."""
        ...


class BackendProtocol(ABC):
    """Files, wherever they live. Override what you can do; the rest raises `NotImplementedError`.

    The path, pattern or text that a method is about is given by position, all else by name: `offset`,
    `limit`, `replace_all`, `path` and `glob` as below. A method may take further options, which are given
    only where its signature names them: `expected_version` on `write` and `edit`; `regex` and
    `context_lines` on `grep`; `allowed`, an `Allowed`, on all of them. With `allowed`, searches and listings
    pass over what is not allowed, and the rest refuses it with `permission_denied`. Ask it about paths as
    the caller sees them, and also as they are once links on the way are resolved, at the moment of use.
    """

    # Methods of earlier versions. A subclass that has only these is given today's, made of its own.
    ls_info, als_info = legacy_method("ls_info"), legacy_method("als_info")
    grep_raw, agrep_raw = legacy_method("grep_raw"), legacy_method("agrep_raw")
    glob_info, aglob_info = legacy_method("glob_info"), legacy_method("aglob_info")

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if any(overrides(cls, each) for each in OLDER_NAMES):
            load_legacy("backends").adapt_older_names(cls)

    def capabilities(self, path: str = "/") -> Capabilities:
        """Return what this backend can do at `path`."""
        kind = type(self)
        return Capabilities(delete=overrides(kind, "delete") or overrides(kind, "adelete"))

    def real_path(self, path: str) -> str:
        """Return where a path leads, in this backend's own paths, once links are resolved.

        Raises:
            BackendError: when that cannot be found out.
        """
        return path

    def ls(self, path: str) -> LsResult:
        """List one directory."""
        raise lacks(self, "ls")

    async def als(self, path: str, **options: Any) -> LsResult:
        """List one directory."""
        return await await_blocking(self, "ls", path, **options)

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        """Read `limit` lines from line `offset` (counted from 0); media come whole, as base64."""
        raise lacks(self, "read")

    async def aread(self, file_path: str, offset: int = 0, limit: int = 2000, **options: Any) -> ReadResult:
        """Read `limit` lines from line `offset` (counted from 0); media come whole, as base64."""
        return await await_blocking(self, "read", file_path, offset=offset, limit=limit, **options)

    def grep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        """Find the lines that hold `pattern`, literally; `max_count` caps all matches together."""
        raise lacks(self, "grep")

    async def agrep(
        self,
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        *,
        max_count: int | None = None,
        **options: Any,
    ) -> GrepResult:
        """Find the lines that hold `pattern`, waiting at most `ASYNC_GREP_TIMEOUT` seconds."""
        # Backends from before this option are capped here, after they have answered.
        if accepts(type(self), "grep", "max_count"):
            options["max_count"] = max_count
        try:
            search = await_blocking(self, "grep", pattern, path=path, glob=glob, **options)
            found = await within(ASYNC_GREP_TIMEOUT, search)
        except TimeoutError:
            waited = f"Search for {pattern!r} timed out after {ASYNC_GREP_TIMEOUT:.0f} s."
            return GrepResult(error=f"{waited} Narrow it by path or glob.", code="timeout")
        return cap_matches(found, max_count)

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        """Find the files whose path matches `pattern`."""
        raise lacks(self, "glob")

    async def aglob(self, pattern: str, path: str | None = None, **options: Any) -> GlobResult:
        """Find the files whose path matches `pattern`."""
        return await await_blocking(self, "glob", pattern, path=path, **options)

    def write(self, file_path: str, content: str) -> WriteResult:
        """Create a file or replace it whole."""
        raise lacks(self, "write")

    async def awrite(self, file_path: str, content: str, **options: Any) -> WriteResult:
        """Create a file or replace it whole."""
        return await await_blocking(self, "write", file_path, content, **options)

    def append(self, file_path: str, content: str | bytes) -> WriteResult:
        """Add to the end of a file, byte for byte; a file that is not there is made.

        A backend need not have this: without it a file is fetched and put back whole.
        """
        raise lacks(self, "append")

    async def aappend(self, file_path: str, content: str | bytes, **options: Any) -> WriteResult:
        """Add to the end of a file, byte for byte; a file that is not there is made."""
        return await await_blocking(self, "append", file_path, content, **options)

    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        """Replace exact text; more than one occurrence needs `replace_all`."""
        raise lacks(self, "edit")

    async def aedit(
        self, file_path: str, old_string: str, new_string: str, replace_all: bool = False, **options: Any
    ) -> EditResult:
        """Replace exact text; more than one occurrence needs `replace_all`."""
        return await await_blocking(
            self, "edit", file_path, old_string, new_string, replace_all=replace_all, **options
        )

    def delete(self, file_path: str) -> DeleteResult:
        """Remove a file, or a directory with all that is in it."""
        raise lacks(self, "delete")

    async def adelete(self, file_path: str, **options: Any) -> DeleteResult:
        """Remove a file, or a directory with all that is in it."""
        return await await_blocking(self, "delete", file_path, **options)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Write many files as bytes; the answers keep the order."""
        raise lacks(self, "upload_files")

    async def aupload_files(self, files: list[tuple[str, bytes]], **options: Any) -> list[FileUploadResponse]:
        """Write many files as bytes; the answers keep the order."""
        return await await_blocking(self, "upload_files", files, **options)

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Read many files as bytes; the answers keep the order."""
        raise lacks(self, "download_files")

    async def adownload_files(self, paths: list[str], **options: Any) -> list[FileDownloadResponse]:
        """Read many files as bytes; the answers keep the order."""
        return await await_blocking(self, "download_files", paths, **options)


class SandboxBackendProtocol(BackendProtocol):
    """A backend that can also run commands."""

    @property
    def id(self) -> str:
        """The unique name of this sandbox."""
        raise lacks(self, "id")

    def capabilities(self, path: str = "/") -> Capabilities:
        """Return what this backend can do at `path`: always `execute`, which bypasses rules."""
        kind = type(self)
        background = overrides(kind, "start_command") or overrides(kind, "astart_command")
        return replace(super().capabilities(path), execute=True, exposed=True, background=background)

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Run a shell command; `timeout` is in seconds.

        A method whose signature names `on_output`, an `OnOutput`, is given a function to call, in any thread,
        a few times a second.
        """
        raise lacks(self, "execute")

    async def aexecute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Run a shell command; `timeout` is in seconds."""
        options = {"timeout": timeout} if timeout is not None and execute_accepts_timeout(type(self)) else {}
        return await await_blocking(self, "execute", command, **options)

    def start_command(self, command: str, *, timeout: int | None = None) -> str:
        """Start a command in the background, and return its id at once; without `timeout` it has no bound.

        A backend need not have this and the next three: where it has, agents may run commands in the
        background. All of them raise `BackendError`.
        """
        raise lacks(self, "start_command")

    async def astart_command(self, command: str, *, timeout: int | None = None) -> str:
        """Start a command in the background, and return its id at once."""
        return await await_blocking(self, "start_command", command, timeout=timeout)

    def poll_command(self, command_id: str, *, offset: int = 0, wait: float = 0) -> CommandStatus:
        """Return what a command printed from an offset on, once it has ended or `wait` seconds are over."""
        raise lacks(self, "poll_command")

    async def apoll_command(self, command_id: str, *, offset: int = 0, wait: float = 0) -> CommandStatus:
        """Return what a command printed from an offset on, once it has ended or `wait` seconds are over."""
        return await await_blocking(self, "poll_command", command_id, offset=offset, wait=wait)

    def write_command(self, command_id: str, text: str, *, close: bool = False) -> None:
        """Write to the standard input of a command, and `close` it if nothing more comes."""
        raise lacks(self, "write_command")

    async def awrite_command(self, command_id: str, text: str, *, close: bool = False) -> None:
        """Write to the standard input of a command, and `close` it if nothing more comes."""
        await await_blocking(self, "write_command", command_id, text, close=close)

    def stop_command(self, command_id: str) -> None:
        """End a command with all that it started; one that has ended stays as it is."""
        raise lacks(self, "stop_command")

    async def astop_command(self, command_id: str) -> None:
        """End a command with all that it started; one that has ended stays as it is."""
        await await_blocking(self, "stop_command", command_id)


BackendFactory: TypeAlias = Callable[[Any], BackendProtocol]
"""The older way to give a backend: called with the runtime of each call."""
BACKEND_TYPES: TypeAlias = BackendProtocol | BackendFactory


def cap_matches(found: GrepResult, max_count: int | None) -> GrepResult:
    """Keep at most `max_count` matches, and say so when some were dropped; an older answer stays as it is."""
    matches: Sequence[GrepMatch] = getattr(found, "matches", None) or ()
    if max_count is None or len(matches) <= max_count:
        return found
    return replace(found, matches=list(matches[:max_count]), truncated=True)


async def await_blocking(backend: BackendProtocol, method: str, *positional: Any, **keywords: Any) -> Any:
    """Await a blocking method in a thread of its own; its parameters may have other names than here."""
    called = signature_of(type(backend), method)
    return await await_thread(lambda: called.call(getattr(backend, method), positional, keywords))


def lacks(backend: BackendProtocol, method: str) -> NotImplementedError:
    """Make the error for a method that a backend lacks, or has only in the form that is awaited."""
    text = f"{type(backend).__name__} does not implement {method}()"
    if overrides(type(backend), f"a{method}"):
        return AwaitableOnly(f"{text}, only a{method}(): run the agent with ainvoke() or astream()")
    return NotImplementedError(text)
