"""Open a backend for an agent, once: the one way in which tools and middleware reach files."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, cast

from langgraph.errors import GraphBubbleUp

from deepagents._async import IOCall, await_thread, seconds_left
from deepagents._paths import name, parent, without_slash
from deepagents._text import Replacement
from deepagents._values import replace, valueclass
from deepagents.backends import operations as ops
from deepagents.backends._failures import failure, transfer_failure
from deepagents.backends._signatures import execute_accepts_timeout, overrides
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.foreign import adapt, divert, find_foreign
from deepagents.backends.foreign.forms import is_factory, resolve_backend
from deepagents.backends.guard import CallRights, find_exposed_rule
from deepagents.backends.operations import Operation, Perform
from deepagents.backends.protocol import BACKEND_TYPES, BackendProtocol, OnOutput, cap_matches
from deepagents.backends.results import (
    CommandStatus,
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
from deepagents.backends.timeout import CallTimeout, Overdue
from deepagents.errors import BackendError, ConfigError, RunConfigError, ToolFailure

BACKEND_SECONDS: Final = 60.0
"""Seconds that one operation may take where the caller of a feature says nothing else."""


@valueclass
class OutputCapture:
    """The file for output of more than so many bytes, if the backend can keep it there."""

    path: str
    most_inline: int


class BackendHandle:
    """A backend as one agent or middleware uses it: older forms resolved, and the layers before it composed.

    What a factory makes is opened anew for each call; only the overdue calls are kept, or nothing would bound
    them.
    """

    def __init__(self, backend: BACKEND_TYPES, seconds: float | None = None) -> None:
        self.backend = backend
        self.seconds = seconds
        self.is_factory = is_factory(backend)
        self._overdue = Overdue()
        self._resolved = None if self.is_factory else resolve_backend(backend, None)
        self._opened: FileCalls | None = None

    def capabilities(self, path: str = "/") -> Capabilities:
        """Return what can be done at a path; nothing, for a factory."""
        return Capabilities() if self._resolved is None else can_at(self._resolved, path)

    def files(self, runtime: Any, rights: CallRights | None = None) -> FileCalls:
        """Return the files of the backend for one call, under the rules of that call if there are any."""
        opened = self._opened or self._make(runtime)
        return opened if rights is None else opened.under(rights)

    def _make(self, runtime: Any) -> FileCalls:
        if self._resolved is not None:
            # At the first call: most handles of an agent with subagents are never used.
            self._opened = self._open(self._resolved)
            return self._opened
        try:
            return self._open(resolve_backend(self.backend, runtime))
        except Exception as error:
            # An interrupt and a developer's mistake go up; all else the model reads at its next call.
            if isinstance(error, (GraphBubbleUp, ConfigError)):
                raise
            return FileCalls(None, partial(_raise, failure("making the backend", error)), self.seconds)

    def _open(self, backend: BackendProtocol) -> FileCalls:
        layers = open_layers(backend, self.seconds, self._overdue)
        return FileCalls(backend, layers, self.seconds, has_links=overrides(type(backend), "real_path"))


def open_backend(backend: BACKEND_TYPES | BackendHandle, seconds: float | None = None) -> BackendHandle:
    """Open a backend for calls that may take `seconds` each, unless it answers from memory.

    Raises:
        ConfigError: for what is neither a backend nor a factory of one.
    """
    return backend if isinstance(backend, BackendHandle) else BackendHandle(backend, seconds)


async def _raise(error: BackendError, _: Operation) -> Any:
    raise error


async def _do_nothing(_: Operation) -> None:
    """Stand for a backend where only the rules are asked."""


def open_layers(backend: BackendProtocol, seconds: float | None, overdue: Overdue) -> Perform:
    """Compose what stands before a backend: only those layers that it needs."""
    # Asked by name: the composite package builds on this module, so it cannot be imported here.
    open_routes = getattr(backend, "_open_routes", None)
    foreign = find_foreign(backend, is_tree=open_routes is not None)
    if open_routes is None:
        return _open_one(backend, foreign, seconds, overdue)
    routed: Perform = open_routes(seconds, overdue)
    if not foreign:
        return routed
    # A tree is not called by its public methods, except for those that a subclass has written anew.
    return divert(foreign, _open_one(backend, foreign, seconds, overdue), routed)


def _open_one(
    backend: BackendProtocol, foreign: frozenset[str], seconds: float | None, overdue: Overdue
) -> Perform:
    can = can_at(backend, "/")
    check = partial(_check, backend, can)
    own: Any = getattr(backend, "_perform", None)
    performing = adapt(backend, foreign, can, own, check) if foreign else check(own)
    # What answers from memory cannot hang, and a timeout would cost it a thread for each call.
    if not can.in_process:
        timeout = CallTimeout(seconds, execute_accepts_timeout(type(backend)), overdue)
        performing = partial(timeout.in_time, following=performing)
    return performing


def _check(backend: BackendProtocol, can: Capabilities, performing: Perform) -> Perform:
    """Let what performs operations raise `BackendError`, whatever goes wrong, and find where paths lead."""
    has_links = overrides(type(backend), "real_path")
    # In a sandbox each question is a command, which costs more than the call that asks.
    is_cheap = bool(can.host or can.in_process)

    async def perform(op: Operation) -> Any:
        try:
            if not isinstance(op, ops.Resolve):
                return check_answer(op, await performing(op))
            if not has_links or (op.if_cheap and not is_cheap):
                return op.path
            return await _resolve(backend, op, can.in_process)
        # GraphBubbleUp is how LangGraph interrupts a run; turned into an error, no person would be asked.
        except (GraphBubbleUp, BackendError, RunConfigError):
            raise
        except Exception as error:
            raise failure(op.method, error, is_news=not op.hint) from error

    return perform


def check_answer(op: Operation, answer: Any) -> Any:
    """Return an answer, of which an error may be a part; raise one that is an error alone."""
    error: str | None = getattr(answer, "error", None)
    # Found entries must not be lost because one directory could not be read.
    if error and not (getattr(answer, "entries", None) or getattr(answer, "matches", None)):
        raise BackendError(getattr(answer, "code", None) or "io_error", error)
    return cap_matches(answer, op.max_count) if isinstance(op, ops.Grep) else answer


async def _resolve(backend: BackendProtocol, op: ops.Resolve, in_process: bool) -> str:
    def resolve() -> str:
        if not op.entry or op.path == "/":
            return without_slash(backend.real_path(op.path))
        above = without_slash(backend.real_path(parent(op.path)))
        return f"{above.rstrip('/')}/{name(op.path)}"

    return resolve() if in_process else await IOCall(resolve, lambda: await_thread(resolve))


def can_at(backend: BackendProtocol, path: str) -> Capabilities:
    """Return what a backend can do at a path; one that cannot tell can do nothing."""
    try:
        return backend.capabilities(path)
    except Exception as error:
        if isinstance(error, GraphBubbleUp):
            raise
        return Capabilities()


@valueclass
class FileCalls:
    """The files of a backend: each method performs one operation, and raises `ToolFailure` if that fails."""

    backend: BackendProtocol | None
    perform: Perform
    seconds: float | None = None
    rights: CallRights | None = None
    has_links: bool = False

    def under(self, rights: CallRights) -> FileCalls:
        """Return the same files for one call that keeps to rules."""
        return replace(self, perform=partial(rights.guard, following=self.perform), rights=rights)

    def capabilities(self, path: str = "/") -> Capabilities:
        """Return what can be done at a path: nothing, when the backend cannot tell."""
        return Capabilities() if self.backend is None else can_at(self.backend, path)

    def describe_left_out(self) -> str | None:
        """Describe in one line what earlier answers left out because it waits for a person."""
        return self.rights.describe_left_out() if self.rights else None

    async def real_path(self, path: str) -> str:
        """Return where a path leads, if finding out is cheap: on this machine, or in this process."""
        if not self.has_links:
            return path
        try:
            return await self.perform(ops.Resolve(path, if_cheap=True))
        except BackendError:
            return path

    async def resolve(self, path: str, *, entry: bool = False) -> str:
        """Return where a path leads once links are resolved; with `entry`, all links but one at its end."""
        return await self._do(ops.Resolve(path, entry=entry))

    async def check_write(self, path: str) -> None:
        """Raise what rules have against a change at a path, or where it leads, before there is one."""
        for each in dict.fromkeys((path, await self.resolve(path))) if self.rights else ():
            try:
                await cast("CallRights", self.rights).guard(ops.Write(each, ""), _do_nothing)
            except ToolFailure as failure:
                raise ToolFailure(failure.code, failure.text.replace(each, path)) from failure

    async def ls(self, path: str) -> LsResult:
        """List a directory; entries that could be read may come with an error."""
        return await self._do(ops.Ls(path))

    async def read(self, path: str, offset: int, limit: int) -> ReadResult:
        """Read a window of a file."""
        return await self._do(ops.Read(path, offset, limit))

    async def write(self, path: str, content: str, expected_version: str | None) -> WriteResult:
        """Create or replace a file, unless it changed since `expected_version`."""
        return await self._do(ops.Write(path, content, self._expect_version(path, expected_version)))

    async def create(self, path: str, content: str, mode_of: str | None = None) -> WriteResult:
        """Create a file, if need be with the mode of another; none is replaced, if the backend knows how."""
        return await self._do(ops.Write(path, content, creates=True, mode_of=mode_of))

    async def append(self, path: str, text: str) -> WriteResult:
        """Add text to the end of a file as it is, half characters included; make the file if need be.

        Where the backend cannot, the file is fetched and put back whole, which costs what the file has.
        """
        return await self._do(ops.Append(path, _text_or_bytes(text)))

    async def edit(self, path: str, edits: Sequence[Replacement], expected_version: str | None) -> EditResult:
        """Replace exact texts in order, all or none, unless the file changed since `expected_version`."""
        first, *more = edits
        version = self._expect_version(path, expected_version)
        return await self._do(ops.Edit(path, *first, version, tuple(more)))

    async def delete(self, path: str) -> DeleteResult:
        """Remove a path and all below it."""
        return await self._do(ops.Delete(path))

    async def glob(self, pattern: str, path: str | None, seconds: float | None = None) -> GlobResult:
        """Find files by pattern, within so many seconds; matches may come with an error."""
        most = min(filter(None, (seconds, self.seconds)), default=None)
        return await self._do(ops.Glob(pattern, path, seconds=most))

    async def grep(
        self,
        pattern: str,
        path: str | None,
        glob: str | None = None,
        *,
        max_count: int | None = None,
        regex: bool = False,
        context_lines: int = 0,
    ) -> GrepResult:
        """Find lines that hold a pattern, at most so many; matches may come with an error."""
        return await self._do(
            ops.Grep(pattern, path, glob, max_count=max_count, regex=regex, context_lines=context_lines)
        )

    async def download(self, path: str) -> bytes:
        """Read a file whole, as bytes."""
        answer = (await self.download_each([path]))[0]
        if answer.error or answer.content is None:
            raise _as_failure(transfer_failure(path, answer.error or "no content returned"))
        return answer.content

    async def download_each(
        self, paths: Sequence[str], most: int | None = None
    ) -> list[FileDownloadResponse]:
        """Read many files as bytes, in order, each with its own error; `most` bytes of each are enough."""
        return await self._do(ops.Download(list(paths), most))

    async def download_all(self, paths: Sequence[str]) -> list[bytes | None]:
        """Read many files whole, as bytes, in order; `None` stands for each that cannot be read."""
        answers = await self.download_each(paths)
        return [None if answer.error else answer.content for answer in answers]

    async def upload(self, path: str, content: bytes) -> None:
        """Create or replace a file with these bytes."""
        answer = (await self._do(ops.Upload([(path, content)])))[0]
        if answer.error:
            raise _as_failure(transfer_failure(path, answer.error))

    async def upload_all(self, files: Sequence[tuple[str, bytes]]) -> list[bool]:
        """Create or replace many files with bytes; return in order which of them are there now."""
        return [not answer.error for answer in await self._do(ops.Upload(list(files)))]

    async def execute(
        self,
        command: str,
        timeout: int | None,
        seconds: float | None = None,
        capture: OutputCapture | None = None,
        on_output: OnOutput | None = None,
    ) -> ExecuteOffloadResult:
        """Run a shell command; `timeout` is in seconds, and so is how long its answer is waited for.

        A backend that can calls `on_output`, in any thread, with pieces of the output and their streams.
        """
        self._check_exposed()
        # A command must not outlast the time that is left for the whole run.
        left = seconds_left()
        if capture is not None and self.capabilities(capture.path).capture:
            op = ops.CapturedExecute(
                command, timeout, left,
                capture_path=capture.path, max_inline_bytes=capture.most_inline,
                seconds=seconds, on_output=on_output,
            )  # fmt: skip
            return await self._do(op)
        op = ops.Execute(command, timeout, left, seconds=seconds, on_output=on_output)
        return ExecuteOffloadResult(False, await self._do(op))

    async def start_command(self, command: str, timeout: int | None) -> str:
        """Start a command in the background, and return its id."""
        self._check_exposed()
        return await self._do(ops.StartCommand(command, timeout))

    async def poll_command(self, command_id: str, offset: int = 0, wait: float = 0) -> CommandStatus:
        """Return what a command printed from an offset on, once it has ended or `wait` seconds are over."""
        left = seconds_left()
        wait = wait if left is None else min(wait, left)
        seconds = None if self.seconds is None else self.seconds + wait
        return await self._do(ops.PollCommand(command_id, offset, wait, seconds=seconds))

    async def write_command(self, command_id: str, text: str, close: bool) -> None:
        """Write to the standard input of a command, and `close` it if nothing more comes."""
        await self._do(ops.WriteCommand(command_id, text, close))

    async def stop_command(self, command_id: str) -> None:
        """End a command with all that it started."""
        await self._do(ops.StopCommand(command_id))

    def _check_exposed(self) -> None:
        exposed = self.rights and find_exposed_rule(self.capabilities_or_raise, self.rights.rules)
        if exposed:
            raise ToolFailure(
                "permission_denied",
                f"permission denied for execute: commands could bypass the rule for {exposed}. Use the "
                "file tools.",
            )

    def capabilities_or_raise(self, path: str) -> Capabilities:
        """Return what can be done at a path; raise what the backend raises when it cannot tell."""
        return Capabilities() if self.backend is None else self.backend.capabilities(path)

    def _expect_version(self, path: str, expected_version: str | None) -> str | None:
        """Return the version to expect, where the backend knows versions."""
        if expected_version is None or not self.capabilities(path).versions:
            return None
        return expected_version

    async def _do(self, op: Operation) -> Any:
        try:
            return await self.perform(op)
        except BackendError as error:
            raise _as_failure(error) from error


def supports_execution(backend: BackendProtocol) -> bool:
    """Return whether a backend can run commands."""
    return can_at(backend, "/").execute


def _as_failure(error: BackendError) -> ToolFailure:
    return ToolFailure(error.code, error.text)


def _text_or_bytes(text: str) -> str | bytes:
    try:
        text.encode()
    except UnicodeEncodeError:
        # Models send half characters now and then; text that is only added must not be lost for them.
        return text.encode("utf-8", "surrogatepass")
    return text
