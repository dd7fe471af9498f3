"""Operations on files as values, and the base class of backends that are made of them.

An operation carries all that its call needs on the way to a backend, so each layer on that way (permissions,
time limit, routing) is one function of one value, and not one method for each operation.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Final, TypeAlias, cast

from deepagents._async import sync_and_async
from deepagents.backends.protocol import Allowed, BackendProtocol
from deepagents.backends.results import (
    DeleteResult,
    EditResult,
    FileDownloadResponse,
    FileUploadResponse,
    GlobResult,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
)
from deepagents.errors import BackendError
from deepagents.permissions import FilesystemOperation

_forms = cast("Callable[[Any], tuple[Any, Any]]", sync_and_async)
Perform: TypeAlias = Callable[["Operation"], Coroutine[Any, Any, Any]]
"""What performs an operation: it returns the result, or raises `BackendError`. There is no third way."""
Layer: TypeAlias = Callable[["Operation", Perform], Coroutine[Any, Any, Any]]
"""What stands before a `Perform`: it may refuse, change the operation, or filter the result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation on the files of a backend.

    `allowed` says what the caller may know or change; `seconds` is how long the caller waits, where that is
    not what it waits for any operation.
    """

    method: ClassVar[str]
    right: ClassVar[FilesystemOperation] = "read"
    result: ClassVar[Callable[..., Any]]

    allowed: Allowed | None = None
    seconds: float | None = None

    @property
    def paths(self) -> Sequence[str]:
        """The paths that the operation is about."""
        return [getattr(self, "path", None) or "/"]

    @property
    def at(self) -> str:
        """The path that the operation is about; `/` when these are several, or none."""
        return self.paths[0] if len(self.paths) == 1 else "/"

    def positional(self) -> tuple[Any, ...]:
        """Return what the method is given by position."""
        return (self.at,)

    def keywords(self) -> dict[str, Any]:
        """Return what the method is given by name."""
        return {}

    def options(self) -> dict[str, Any]:
        """Return what the method is given where its signature takes it."""
        return {"allowed": self.allowed}


@dataclass(frozen=True, slots=True)
class Ls(Operation):
    """List one directory."""

    method, result = "ls", LsResult
    path: str


@dataclass(frozen=True, slots=True)
class Read(Operation):
    """Read `limit` lines from line `offset`, counted from 0."""

    method, result = "read", ReadResult
    path: str
    offset: int = 0
    limit: int = 2000

    def keywords(self) -> dict[str, Any]:
        return {"offset": self.offset, "limit": self.limit}


@dataclass(frozen=True, slots=True)
class Write(Operation):
    """Create a file or replace it whole, unless it changed since `expected_version`."""

    method, right, result = "write", "write", WriteResult
    path: str
    content: str
    expected_version: str | None = None

    def positional(self) -> tuple[Any, ...]:
        return self.path, self.content

    def options(self) -> dict[str, Any]:
        return {"expected_version": self.expected_version, "allowed": self.allowed}


@dataclass(frozen=True, slots=True)
class Append(Operation):
    """Add to the end of a file, which is made when it is not there."""

    method, right, result = "append", "write", WriteResult
    path: str
    content: str | bytes

    def positional(self) -> tuple[Any, ...]:
        return self.path, self.content


@dataclass(frozen=True, slots=True)
class Edit(Operation):
    """Replace exact text, unless the file changed since `expected_version`."""

    method, right, result = "edit", "write", EditResult
    path: str
    old: str
    new: str
    replace_all: bool = False
    expected_version: str | None = None

    def positional(self) -> tuple[Any, ...]:
        return self.path, self.old, self.new

    def keywords(self) -> dict[str, Any]:
        return {"replace_all": self.replace_all}

    def options(self) -> dict[str, Any]:
        return {"expected_version": self.expected_version, "allowed": self.allowed}


@dataclass(frozen=True, slots=True)
class Delete(Operation):
    """Remove a path and all below it."""

    method, right, result = "delete", "write", DeleteResult
    path: str


@dataclass(frozen=True, slots=True)
class Glob(Operation):
    """Find files by pattern, below a path or from where the backend starts."""

    method, result = "glob", GlobResult
    pattern: str
    path: str | None = None

    def positional(self) -> tuple[Any, ...]:
        return (self.pattern,)

    def keywords(self) -> dict[str, Any]:
        return {"path": self.path}


@dataclass(frozen=True, slots=True)
class Grep(Operation):
    """Find lines, below a path or from where the backend starts; `max_count` caps all matches together."""

    method, result = "grep", GrepResult
    pattern: str
    path: str | None = None
    glob: str | None = None
    _: KW_ONLY
    max_count: int | None = None
    regex: bool = False
    context_lines: int = 0

    def positional(self) -> tuple[Any, ...]:
        return (self.pattern,)

    def keywords(self) -> dict[str, Any]:
        return {"path": self.path, "glob": self.glob}

    def options(self) -> dict[str, Any]:
        return {
            "max_count": self.max_count,
            "regex": self.regex or None,
            "context_lines": self.context_lines or None,
            "allowed": self.allowed,
        }


@dataclass(frozen=True, slots=True)
class Upload(Operation):
    """Write many files as bytes; the answers keep the order."""

    method, right, result = "upload_files", "write", FileUploadResponse
    files: Sequence[tuple[str, bytes]]

    @property
    def paths(self) -> Sequence[str]:
        return [path for path, _ in self.files]

    def positional(self) -> tuple[Any, ...]:
        return (list(self.files),)


@dataclass(frozen=True, slots=True)
class Download(Operation):
    """Read many files as bytes; the answers keep the order."""

    method, result = "download_files", FileDownloadResponse
    files: Sequence[str]

    @property
    def paths(self) -> Sequence[str]:
        return self.files

    def positional(self) -> tuple[Any, ...]:
        return (list(self.files),)


@dataclass(frozen=True, slots=True)
class Execute(Operation):
    """Run a shell command; `left` is how many seconds there are at most, where the command can be told."""

    method = "execute"
    command: str
    timeout: int | None = None
    left: float | None = None

    def positional(self) -> tuple[Any, ...]:
        return (self.command,)

    def keywords(self) -> dict[str, Any]:
        return {} if self.timeout is None else {"timeout": self.timeout}


@dataclass(frozen=True, slots=True)
class CapturedExecute(Execute):
    """Run a shell command whose output, if it is longer than `most_inline` bytes, stays in a file."""

    method = "execute_with_offload"
    _: KW_ONLY
    capture_path: str
    most_inline: int
    most_kept: int | None = None

    def positional(self) -> tuple[Any, ...]:
        return self.command, self.capture_path

    def keywords(self) -> dict[str, Any]:
        timeout = {} if self.timeout is None else {"timeout": self.timeout}
        return {"max_inline_bytes": self.most_inline, **timeout}

    def options(self) -> dict[str, Any]:
        return {"max_capture_bytes": self.most_kept}


@dataclass(frozen=True, slots=True)
class Resolve(Operation):
    """Say where a path leads once links are resolved; with `entry`, all links but one at its end."""

    method = "real_path"
    path: str
    entry: bool = False


class OperationBackend(BackendProtocol):
    """A backend that performs operations; this makes its public methods, blocking and awaiting, of that."""

    @abstractmethod
    async def _perform(self, op: Operation) -> Any:
        """Perform one operation: return its result, or raise `BackendError`."""

    async def _ls(self, path: str, *, allowed: Allowed | None = None) -> LsResult:
        """List one directory."""
        return await as_result(self._perform, Ls(path, allowed=allowed))

    async def _read(
        self, file_path: str, offset: int = 0, limit: int = 2000, *, allowed: Allowed | None = None
    ) -> ReadResult:
        """Read `limit` lines from line `offset` (counted from 0); media come whole, as base64."""
        return await as_result(self._perform, Read(file_path, offset, limit, allowed=allowed))

    async def _grep(
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
        """Find the lines that hold `pattern`, by path and line; `max_count` caps all matches together.

        Raises:
            ValueError: when `context_lines` is negative.
        """
        op = Grep(
            pattern, path, glob,
            max_count=max_count, regex=regex, context_lines=context_lines, allowed=allowed,
        )  # fmt: skip
        return await as_result(self._perform, op)

    async def _glob(
        self, pattern: str, path: str | None = None, *, allowed: Allowed | None = None
    ) -> GlobResult:
        """Find the files whose path matches `pattern`."""
        return await as_result(self._perform, Glob(pattern, path, allowed=allowed))

    async def _write(
        self,
        file_path: str,
        content: str,
        *,
        expected_version: str | None = None,
        allowed: Allowed | None = None,
    ) -> WriteResult:
        """Create a file or replace it whole, unless it changed since `expected_version`."""
        return await as_result(self._perform, Write(file_path, content, expected_version, allowed=allowed))

    async def _append(
        self, file_path: str, content: str | bytes, *, allowed: Allowed | None = None
    ) -> WriteResult:
        """Add to the end of a file, byte for byte; a file that is not there is made."""
        return await as_result(self._perform, Append(file_path, content, allowed=allowed))

    async def _edit(
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
        op = Edit(file_path, old_string, new_string, replace_all, expected_version, allowed=allowed)
        return await as_result(self._perform, op)

    async def _delete(self, file_path: str, *, allowed: Allowed | None = None) -> DeleteResult:
        """Remove a file, or a directory with all that is in it."""
        return await as_result(self._perform, Delete(file_path, allowed=allowed))

    ls, als = _forms(_ls)
    read, aread = _forms(_read)
    grep, agrep = _forms(_grep)
    glob, aglob = _forms(_glob)
    write, awrite = _forms(_write)
    append, aappend = _forms(_append)
    edit, aedit = _forms(_edit)
    delete, adelete = _forms(_delete)


class TransferBackend(OperationBackend):
    """A backend that performs transfers of whole files as well."""

    async def _upload_files(
        self, files: list[tuple[str, bytes]], *, allowed: Allowed | None = None
    ) -> list[FileUploadResponse]:
        """Write many files as bytes; the answers keep the order."""
        return await self._perform(Upload(files, allowed=allowed))

    async def _download_files(
        self, paths: list[str], *, allowed: Allowed | None = None
    ) -> list[FileDownloadResponse]:
        """Read many files as bytes; the answers keep the order."""
        return await self._perform(Download(paths, allowed=allowed))

    upload_files, aupload_files = _forms(_upload_files)
    download_files, adownload_files = _forms(_download_files)


async def as_result(perform: Perform, op: Operation) -> Any:
    """Perform an operation for a caller who gets results and not exceptions."""
    try:
        return await perform(op)
    except BackendError as error:
        return op.result(error=error.text, code=error.code)


METHODS: Final = tuple(
    kind.method for kind in (Ls, Read, Write, Append, Edit, Delete, Glob, Grep, Upload, Download)
)
"""The public methods that work on files."""
