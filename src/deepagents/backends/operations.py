"""Describe operations on files as values, with the base class of backends that are made of them.

An operation carries all that its call needs on the way to a backend, so each layer on that way (permissions,
time limit, routing) is one function of one value, and not one method for each operation.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import KW_ONLY, MISSING, fields
from functools import update_wrapper
from inspect import Parameter, Signature
from types import CoroutineType, MappingProxyType
from typing import Any, ClassVar, Final, TypeAlias

from deepagents._async import await_thread, sync_and_async
from deepagents._text import Replacement
from deepagents._values import valueclass
from deepagents.backends.protocol import Allowed, BackendProtocol, OnOutput
from deepagents.backends.results import (
    DeleteResult,
    EditResult,
    ExecuteResponse,
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

Perform: TypeAlias = Callable[["Operation"], Coroutine[Any, Any, Any]]
"""What performs an operation: it returns the result, or raises `BackendError`. There is no third way."""
_FILE: Final = MappingProxyType({"path": "file_path"})
MOST_FOR_HINT: Final = 10_000
"""How many entries of directories are looked at for what is only a hint: some tenths of a second."""


@valueclass
class Operation:
    """One operation on the files of a backend.

    `allowed` says what the caller may know or change; `seconds` is how long the caller waits, where that is
    not what it waits for any operation. What is only for a `hint` may look at `MOST_FOR_HINT` entries, and
    its failure is not logged. The class says which `method` of a backend performs it, and how that
    is called: with which fields by position, with which by name, and with which where its signature takes
    them; `renamed` are fields whose parameters have other names there. `right` is the name that rules have
    for it, `result` what holds its error for callers of a method.
    """

    method: ClassVar[str]
    right: ClassVar[FilesystemOperation] = "read"
    result: ClassVar[Any] = None
    by_position: ClassVar[tuple[str, ...]] = ("path",)
    by_name: ClassVar[tuple[str, ...]] = ()
    optional: ClassVar[tuple[str, ...]] = ("allowed",)
    renamed: ClassVar[Mapping[str, str]] = {}

    _: KW_ONLY
    allowed: Allowed | None = None
    seconds: float | None = None
    hint: bool = False

    @property
    def paths(self) -> Sequence[str]:
        """The paths that the operation is about."""
        # A search without a path may look anywhere, so rules are asked about the root.
        return [getattr(self, "path", None) or "/"]

    @property
    def at(self) -> str:
        """The path that the operation is about; `/` when these are several, or none."""
        return self.paths[0] if len(self.paths) == 1 else "/"


@valueclass
class Ls(Operation):
    """List one directory."""

    method, result = "ls", LsResult
    path: str


@valueclass
class Read(Operation):
    """Read `limit` lines from line `offset` (counted from 0); media come whole, as base64."""

    method, result, renamed = "read", ReadResult, _FILE
    by_name = ("offset", "limit")
    path: str
    offset: int = 0
    limit: int = 2000


@valueclass
class Write(Operation):
    """Create a file or replace it whole, unless it changed since `expected_version`.

    Two more are for backends of this package alone: with `creates`, no file is replaced, and a new file gets
    the mode and owner of `mode_of`.
    """

    method, right, result, renamed = "write", "write", WriteResult, _FILE
    by_position, optional = ("path", "content"), ("expected_version", "allowed")
    path: str
    content: str
    expected_version: str | None = None
    _: KW_ONLY
    creates: bool = False
    mode_of: str | None = None


@valueclass
class Append(Operation):
    """Add to the end of a file, byte for byte; a file that is not there is made."""

    method, right, result, renamed = "append", "write", WriteResult, _FILE
    by_position = ("path", "content")
    path: str
    content: str | bytes


@valueclass
class Edit(Operation):
    """Replace exact text, unless the file changed since `expected_version`.

    `more` is replaced after that, in what it left; all of it is done, or nothing.
    """

    method, right, result = "edit", "write", EditResult
    renamed = {**_FILE, "old": "old_string", "new": "new_string"}
    by_position, by_name = ("path", "old", "new"), ("replace_all",)
    optional = ("expected_version", "allowed")
    path: str
    old: str
    new: str
    replace_all: bool = False
    expected_version: str | None = None
    more: tuple[Replacement, ...] = ()

    @property
    def edits(self) -> Sequence[Replacement]:
        """What is replaced, in this order."""
        return (Replacement(self.old, self.new, self.replace_all), *self.more)


@valueclass
class Delete(Operation):
    """Remove a file, or a directory with all that is in it."""

    method, right, result, renamed = "delete", "write", DeleteResult, _FILE
    path: str


@valueclass
class Glob(Operation):
    """Find the files whose path matches `pattern`."""

    method, result = "glob", GlobResult
    by_position, by_name = ("pattern",), ("path",)
    pattern: str
    path: str | None = None


@valueclass
class Grep(Operation):
    """Find the lines that hold `pattern`, by path and line; `max_count` caps all matches together.

    Raises:
        ValueError: when `context_lines` is negative.
    """

    method, result = "grep", GrepResult
    by_position, by_name = ("pattern",), ("path", "glob")
    optional = ("max_count", "regex", "context_lines", "allowed")
    pattern: str
    path: str | None = None
    glob: str | None = None
    _: KW_ONLY
    max_count: int | None = None
    regex: bool = False
    context_lines: int = 0

    def __post_init__(self) -> None:
        if self.context_lines < 0:
            raise ValueError(f"context_lines must not be negative, got {self.context_lines!r}")


@valueclass
class Upload(Operation):
    """Write many files as bytes; the answers keep the order."""

    method, right, result = "upload_files", "write", FileUploadResponse
    by_position = ("files",)
    files: list[tuple[str, bytes]]

    @property
    def paths(self) -> Sequence[str]:
        return [path for path, _ in self.files]


@valueclass
class Download(Operation):
    """Read many files as bytes; the answers keep the order."""

    method, result, renamed = "download_files", FileDownloadResponse, {"files": "paths"}
    by_position = ("files",)
    files: list[str]
    most: int | None = None
    """How many bytes of each are enough: a backend may stop there, or give the whole file."""

    @property
    def paths(self) -> Sequence[str]:
        return self.files


@valueclass
class CommandOperation(Operation):
    """An operation on commands: it is about no path."""


@valueclass
class Execute(CommandOperation):
    """Run a shell command; `left` is how many seconds there are at most, for backends that take a timeout."""

    method, result = "execute", ExecuteResponse
    by_position, optional = ("command",), ("timeout", "on_output", "allowed")
    command: str
    timeout: int | None = None
    left: float | None = None
    _: KW_ONLY
    on_output: OnOutput | None = None


@valueclass
class CapturedExecute(Execute):
    """Run a shell command whose output, if it is longer than `max_inline_bytes`, stays in a file."""

    method, result = "execute_with_offload", None
    by_position, by_name = ("command", "capture_path"), ("max_inline_bytes",)
    optional = ("timeout", "max_capture_bytes", "on_output", "allowed")
    _: KW_ONLY
    capture_path: str
    max_inline_bytes: int
    max_capture_bytes: int | None = None


@valueclass
class StartCommand(CommandOperation):
    """Start a command in the background."""

    method = "start_command"
    by_position, by_name = ("command",), ("timeout",)
    command: str
    timeout: int | None = None


@valueclass
class PollCommand(CommandOperation):
    """Return what a command printed from an offset on, once it has ended or `wait` seconds are over."""

    method = "poll_command"
    by_position, by_name = ("command_id",), ("offset", "wait")
    command_id: str
    offset: int = 0
    wait: float = 0


@valueclass
class WriteCommand(CommandOperation):
    """Write to the standard input of a command, and `close` it if nothing more comes."""

    method = "write_command"
    by_position, by_name = ("command_id", "text"), ("close",)
    command_id: str
    text: str
    close: bool = False


@valueclass
class StopCommand(CommandOperation):
    """End a command with all that it started."""

    method = "stop_command"
    by_position = ("command_id",)
    command_id: str


@valueclass
class Resolve(Operation):
    """Find where a path leads once links are resolved; with `entry`, all links but one at its end.

    With `if_cheap`, a path is returned as it is where resolving it would leave this machine.
    """

    method = "real_path"
    path: str
    entry: bool = False
    if_cheap: bool = False


def both_forms(method: Callable[..., Coroutine[Any, Any, Any]]) -> tuple[Any, Any]:
    """Make the blocking and the awaiting method of one `async def`.

    The awaiting one runs the blocking one of a subclass that has written only that anew.
    """
    name = method.__name__[1:]
    blocking, awaiting = sync_and_async(method)

    async def either(owner: Any, /, *args: Any, **options: Any) -> Any:
        kind: Any = owner.__class__
        newest = getattr(kind, name)
        if newest is blocking or getattr(kind, f"a{name}") is not either:
            return await awaiting(owner, *args, **options)
        return await await_thread(lambda: newest(owner, *args, **options))

    update_wrapper(either, awaiting)
    del either.__wrapped__  # pyright: ignore[reportFunctionMemberAccess]
    return blocking, either


def methods_of(kind: type[Operation]) -> tuple[Any, Any]:
    """Make the public methods, blocking and awaiting, that perform an operation of their arguments."""
    known = {each.name: each for each in fields(kind)}
    given = (*kind.by_position, *kind.by_name, *kind.optional)
    names = {kind.renamed.get(each, each): each for each in given}
    parameters = [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY if each in kind.optional else Parameter.POSITIONAL_OR_KEYWORD,
            default=Parameter.empty if known[each].default is MISSING else known[each].default,
            annotation=known[each].type,
        )
        for name, each in names.items()
    ]
    is_transfer = issubclass(kind, (Upload, Download))
    returned = f"list[{kind.result.__name__}]" if is_transfer else kind.result.__name__
    owner = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
    signature = Signature([owner, *parameters], return_annotation=returned)
    most = len(names) - len(kind.optional)

    async def perform(self: Any, /, *args: Any, **options: Any) -> Any:
        try:
            if len(args) > most:
                raise TypeError("too many positional arguments")
            op = kind(*args, **{names[name]: value for name, value in options.items()})
        except (KeyError, TypeError):
            # Slow, so it is only asked for the error, in terms of the parameters.
            signature.bind(self, *args, **options)
            raise
        # A transfer has an error for each file; one that fails as a whole raises.
        return await (self._perform(op) if is_transfer else as_result(self._perform, op))

    made: Any = perform
    made.__name__, made.__doc__, made.__signature__ = f"_{kind.method}", kind.__doc__, signature
    return both_forms(made)


class OperationBackend(BackendProtocol):
    """A backend that performs operations; this makes its public methods, blocking and awaiting, of that."""

    @abstractmethod
    async def _perform(self, op: Operation) -> Any:
        """Perform one operation: return its result, or raise `BackendError`."""

    # Declared, or type checkers would take them for the methods of the protocol, which have fewer options.
    ls: Callable[..., LsResult]
    als: Callable[..., CoroutineType[Any, Any, LsResult]]
    ls, als = methods_of(Ls)
    read: Callable[..., ReadResult]
    aread: Callable[..., CoroutineType[Any, Any, ReadResult]]
    read, aread = methods_of(Read)
    grep: Callable[..., GrepResult]
    agrep: Callable[..., CoroutineType[Any, Any, GrepResult]]
    grep, agrep = methods_of(Grep)
    glob: Callable[..., GlobResult]
    aglob: Callable[..., CoroutineType[Any, Any, GlobResult]]
    glob, aglob = methods_of(Glob)
    write: Callable[..., WriteResult]
    awrite: Callable[..., CoroutineType[Any, Any, WriteResult]]
    write, awrite = methods_of(Write)
    append: Callable[..., WriteResult]
    aappend: Callable[..., CoroutineType[Any, Any, WriteResult]]
    append, aappend = methods_of(Append)
    edit: Callable[..., EditResult]
    aedit: Callable[..., CoroutineType[Any, Any, EditResult]]
    edit, aedit = methods_of(Edit)
    delete: Callable[..., DeleteResult]
    adelete: Callable[..., CoroutineType[Any, Any, DeleteResult]]
    delete, adelete = methods_of(Delete)


class TransferBackend(OperationBackend):
    """A backend that performs transfers of whole files as well."""

    upload_files: Callable[..., list[FileUploadResponse]]
    aupload_files: Callable[..., CoroutineType[Any, Any, list[FileUploadResponse]]]
    upload_files, aupload_files = methods_of(Upload)
    download_files: Callable[..., list[FileDownloadResponse]]
    adownload_files: Callable[..., CoroutineType[Any, Any, list[FileDownloadResponse]]]
    download_files, adownload_files = methods_of(Download)


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
COMMAND_METHODS: Final = tuple(
    kind.method for kind in (Execute, CapturedExecute, StartCommand, PollCommand, WriteCommand, StopCommand)
)
"""The public methods that work on commands."""
