"""What each method of the tree does, as flows over the routes that it reaches."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from langgraph.errors import GraphBubbleUp
from langgraph.runtime import get_runtime

from deepagents._paths import normalise
from deepagents.backends._answering import abilities
from deepagents.backends._appending import ask_or_append, method_for
from deepagents.backends._door import ask
from deepagents.backends._enforcing import RealPaths, asks, told, without_slash
from deepagents.backends._legacy import is_factory, resolve
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.composite.guarding import OnRoute, check, options
from deepagents.backends.composite.merging import globbed, grepped, listed, placed
from deepagents.backends.composite.routes import Route, Table
from deepagents.backends.composite.searching import Lines, globbing, grepping, parts, search_all
from deepagents.backends.composite.transferring import Transfer
from deepagents.backends.composite.waiting import in_time
from deepagents.backends.protocol import (
    Allowed,
    BackendProtocol,
    SandboxBackendProtocol,
    execute_accepts_timeout,
)
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
from deepagents.errors import BackendError, HarnessError

Result = TypeVar("Result", LsResult, ReadResult, WriteResult, EditResult, DeleteResult)
_UNKNOWN = Capabilities(delete=True, state_files=True, host=False)
"""What to expect of a factory while there is no run to make its backend for."""


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """The routes of a composite backend, with a flow for each of its methods."""

    table: Table
    _last: dict[str, tuple[Any, BackendProtocol]] = field(
        default_factory=dict[str, tuple[Any, BackendProtocol]]
    )

    async def ls(self, path: str, allowed: Allowed | None = None) -> LsResult:
        try:
            where = normalise(path)
        except BackendError as error:
            return LsResult(error=error.text, code=error.code)
        found = listed(where, await self._ls_served(where, allowed), self.table.below(where))
        if allowed and found.entries:
            found.entries = [each for each in found.entries if allowed(without_slash(each["path"]))]
        return found

    async def read(self, path: str, offset: int, limit: int, allowed: Allowed | None = None) -> ReadResult:
        return await self._one(ReadResult, "read", path, offset, limit, allowed=allowed)

    async def grep(
        self,
        pattern: str,
        path: str | None,
        glob: str | None,
        *,
        max_count: int | None = None,
        regex: bool = False,
        context_lines: int = 0,
        allowed: Allowed | None = None,
    ) -> GrepResult:
        wanted = Lines(pattern, max_count, regex, context_lines)
        try:
            reached = list(parts(self.table, path, glob))
        except BackendError as error:
            return GrepResult(error=error.text, code=error.code)
        search = grepping(wanted, allowed)
        return grepped(await search_all(reached, self.open, "grep", GrepResult, search), max_count)

    async def glob(self, pattern: str, path: str | None, allowed: Allowed | None = None) -> GlobResult:
        try:
            reached = list(parts(self.table, path, pattern))
        except BackendError as error:
            return GlobResult(error=error.text, code=error.code)
        search = globbing(allowed)
        return globbed(await search_all(reached, self.open, "glob", GlobResult, search))

    async def write(
        self, path: str, content: str, expected_version: str | None = None, allowed: Allowed | None = None
    ) -> WriteResult:
        extra = {"expected_version": expected_version}
        return await self._one(WriteResult, "write", path, content, allowed=allowed, **extra)

    async def append(self, path: str, content: str | bytes, allowed: Allowed | None = None) -> WriteResult:
        return await self._one(WriteResult, "append", path, content, allowed=allowed)

    async def edit(
        self,
        path: str,
        old: str,
        new: str,
        replace_all: bool,
        expected_version: str | None = None,
        allowed: Allowed | None = None,
    ) -> EditResult:
        extra = {"expected_version": expected_version}
        return await self._one(EditResult, "edit", path, old, new, replace_all, allowed=allowed, **extra)

    async def delete(self, path: str, allowed: Allowed | None = None) -> DeleteResult:
        try:
            held = self.table.is_held(normalise(path))
        except BackendError as error:
            return DeleteResult(error=error.text, code=error.code)
        if held:
            said = f"{path!r} is the root, a route, or leads to a route; delete what is in it instead."
            return DeleteResult(error=said, code="invalid_path")
        return await self._one(DeleteResult, "delete", path, allowed=allowed)

    async def upload_files(
        self, files: Sequence[tuple[str, bytes]], allowed: Allowed | None = None
    ) -> list[FileUploadResponse]:
        transfer = Transfer("upload_files", FileUploadResponse, self.open, allowed)
        return await transfer.of(files, self.table)

    async def download_files(
        self, paths: Sequence[str], allowed: Allowed | None = None
    ) -> list[FileDownloadResponse]:
        transfer = Transfer("download_files", FileDownloadResponse, self.open, allowed)
        return await transfer.of([(path,) for path in paths], self.table)

    async def execute(self, command: str, timeout: int | None) -> ExecuteResponse:
        default = self.open(self.table.default)
        if not abilities(default.capabilities).execute:
            raise NotImplementedError(
                f"The default backend, {type(default).__name__}, doesn't support command execution."
            )
        takes_timeout = execute_accepts_timeout(cast("type[SandboxBackendProtocol]", type(default)))
        if timeout is not None and not takes_timeout:
            raise BackendError(
                "not_supported", "The default backend does not support per-command timeout; leave it out."
            )
        return await ask(default, "execute", command, timeout=timeout)

    async def execute_with_offload(
        self, command: str, path: str, options: dict[str, Any]
    ) -> ExecuteOffloadResult:
        default = self.open(self.table.default)
        return await ask(default, "execute_with_offload", command, path, **options)

    async def _ls_served(self, where: str, allowed: Allowed | None) -> LsResult:
        route = self.table.serving(where)
        try:
            backend, rule = self.open(route), OnRoute.of(allowed, route)
            if self.table.below(where):
                found = await in_time(route, backend, "ls", lambda: _ls(route, backend, where, rule))
            else:
                found = await _ls(route, backend, where, rule)
        except BackendError as error:
            return LsResult(error=route.reworded(error.text, where), code=error.code)
        return found

    async def _one(
        self, result: type[Result], method: str, path: str, *args: Any, allowed: Allowed | None, **extra: Any
    ) -> Result:
        """Call a method for one file on the route that serves it."""
        route = self.table.default
        try:
            path = normalise(path)
            route = self.table.serving(path)
            backend, rule = self.open(route), OnRoute.of(allowed, route)
            by = method_for(backend, method)
            if rule and not asks(backend, by):
                await check(backend, by, route.key(path), rule)
            found: Result = await ask_or_append(
                backend, method, route.key(path), *args, **options(backend, by, rule), **extra
            )
        except BackendError as error:
            return result(error=route.reworded(error.text, path), code=error.code)
        found = copy.copy(found)
        if found.error:
            found.error = route.reworded(found.error, path)
        elif hasattr(found, "path"):
            vars(found)["path"] = path
        return found

    def open(self, route: Route) -> BackendProtocol:
        """Return the backend of a route; a factory makes it once for each task of a run that this is in.

        Raises:
            BackendError: when the factory fails.
        """
        if not is_factory(route.backend):
            return self._made_for(None, route)
        runtime = _runtime()
        last = self._last.get(route.prefix)
        if runtime is None or last is None or last[0] is not runtime:
            last = self._last[route.prefix] = (runtime, self._made_for(runtime, route))
        return last[1]

    def _made_for(self, runtime: Any, route: Route) -> BackendProtocol:
        try:
            return resolve(route.backend, runtime)
        except (GraphBubbleUp, HarnessError):
            raise
        except Exception as error:
            said = f"The backend of '{route.root}' could not be made: {type(error).__name__}: {error}"
            raise BackendError("io_error", said) from error

    def can(self, route: Route, key: str) -> Capabilities:
        if is_factory(route.backend) and _runtime() is None:
            return _UNKNOWN
        return abilities(lambda path: self.open(route).capabilities(path), key)


async def _ls(route: Route, backend: BackendProtocol, where: str, rule: OnRoute | None) -> LsResult:
    found: LsResult = await ask(backend, "ls", route.key(where), **options(backend, "ls", rule))
    entries = found.entries
    if entries:
        entries = placed(route, await RealPaths(backend).kept("ls", entries, rule))
    error = told(backend, "ls", route.key(where), found.error, rule)
    return LsResult(error and route.reworded(error, where), entries, code=found.code)


def _runtime() -> Any:
    try:
        return get_runtime()
    except (RuntimeError, KeyError):
        return None
