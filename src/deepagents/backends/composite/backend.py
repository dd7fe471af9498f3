"""Several backends as one tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deepagents._flow import arun, run
from deepagents._paths import normalise
from deepagents.backends._legacy import is_factory, resolve, warn_form
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.composite.routes import Route, route_for_path, table
from deepagents.backends.composite.tree import Tree
from deepagents.backends.protocol import BACKEND_TYPES, Allowed, BackendProtocol
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


class CompositeBackend(BackendProtocol):
    """One tree of files out of several backends: the longest route that a path lies in serves it.

    `routes` maps directories to backends; `default` serves the rest, and runs commands where it can. What the
    default, or a shorter route, holds at or below a longer route cannot be seen. Listings and searches cover
    every route at or below their path, and patterns match whole paths of the tree. `artifacts_root` is where
    the harness puts files of its own; without it, where the default says.

    Raises:
        ConfigError: for a route that is no directory below the root, or what is no backend.
    """

    def __init__(
        self,
        default: BACKEND_TYPES,
        routes: Mapping[str, BACKEND_TYPES],
        *,
        artifacts_root: str | None = None,
    ) -> None:
        self._table = table(default, routes)
        self._tree = Tree(self._table)
        self._artifacts_root = artifacts_root
        self.default = default
        self.routes = dict(routes)
        self.sorted_routes = sorted(
            self.routes.items(), key=lambda route: len(normalise(route[0])), reverse=True
        )
        for each in (default, *self.routes.values()):
            if not is_factory(each):
                resolve(each, None)
            warn_form(each)

    @property
    def artifacts_root(self) -> str:
        """Where the harness may put files of its own."""
        if self._artifacts_root is not None:
            return self._artifacts_root
        return self._tree.can(self._table.default, "/").artifacts_root

    def capabilities(self, path: str = "/") -> Capabilities:
        """Say what can be done at `path`, or on any route below it."""
        where = normalise(path)
        served, default = self._table.serving(where), self._tree.can(self._table.default, "/")
        here = self._tree.can(served, served.key(where))
        below = [(route, self._tree.can(route, "/")) for route in self._table.below(where)]
        parts = [(served, here), *below]
        return Capabilities(
            execute=default.execute,
            delete=any(can.delete for _, can in parts),
            versions=here.versions,
            state_files=any(can.state_files for _, can in parts),
            artifacts_root=self.artifacts_root,
            host=any(can.host for _, can in parts),
            exposed=any(_is_exposed(route, can, default) for route, can in parts),
            in_process=all(can.in_process for _, can in parts),
            capture=default.capture and served == self._table.default,
        )

    def real_path(self, path: str) -> str:
        """Name the place to which a path leads once the backend that serves it has resolved links.

        Raises:
            BackendError: when there is no telling.
        """
        where = normalise(path)
        route = self._table.serving(where)
        return route.path(self._tree.open(route).real_path(route.key(where))).rstrip("/") or "/"

    def ls(self, path: str, *, allowed: Allowed | None = None) -> LsResult:
        """List one directory, and the directories in it that lead to routes."""
        return run(self._tree.ls(path, allowed))

    async def als(self, path: str, **options: Any) -> LsResult:
        """List one directory, and the directories in it that lead to routes."""
        return await arun(self._tree.ls(path, **options))

    def read(
        self, file_path: str, offset: int = 0, limit: int = 2000, *, allowed: Allowed | None = None
    ) -> ReadResult:
        """Read `limit` lines from line `offset` (counted from 0); media come whole, as base64."""
        return run(self._tree.read(file_path, offset, limit, allowed))

    async def aread(self, file_path: str, offset: int = 0, limit: int = 2000, **options: Any) -> ReadResult:
        """Read `limit` lines from line `offset` (counted from 0); media come whole, as base64."""
        return await arun(self._tree.read(file_path, offset, limit, **options))

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
        """Find the lines that hold `pattern` on all routes, by path and line."""
        return run(self._tree.grep(pattern, path, glob, max_count, regex, context_lines, allowed))

    async def agrep(
        self,
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        *,
        max_count: int | None = None,
        **options: Any,
    ) -> GrepResult:
        """Find the lines that hold `pattern` on all routes at the same time, by path and line."""
        return await arun(self._tree.grep(pattern, path, glob, max_count, **options))

    def glob(self, pattern: str, path: str | None = None, *, allowed: Allowed | None = None) -> GlobResult:
        """Find the files on all routes whose path below `path` matches `pattern`, by path."""
        return run(self._tree.glob(pattern, path, allowed))

    async def aglob(self, pattern: str, path: str | None = None, **options: Any) -> GlobResult:
        """Find the files on all routes at the same time whose path below `path` matches, by path."""
        return await arun(self._tree.glob(pattern, path, **options))

    def write(
        self,
        file_path: str,
        content: str,
        *,
        expected_version: str | None = None,
        allowed: Allowed | None = None,
    ) -> WriteResult:
        """Create a file or replace it whole, unless it changed since `expected_version`."""
        return run(self._tree.write(file_path, content, expected_version, allowed))

    async def awrite(self, file_path: str, content: str, **options: Any) -> WriteResult:
        """Create a file or replace it whole, unless it changed since `expected_version`."""
        return await arun(self._tree.write(file_path, content, **options))

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
        return run(self._tree.edit(file_path, old_string, new_string, replace_all, expected_version, allowed))

    async def aedit(
        self, file_path: str, old_string: str, new_string: str, replace_all: bool = False, **options: Any
    ) -> EditResult:
        """Replace exact text, unless the file changed since `expected_version`."""
        return await arun(self._tree.edit(file_path, old_string, new_string, replace_all, **options))

    def delete(self, file_path: str, *, allowed: Allowed | None = None) -> DeleteResult:
        """Remove a file or a directory; never the root, a route, or a directory that leads to one."""
        return run(self._tree.delete(file_path, allowed))

    async def adelete(self, file_path: str, **options: Any) -> DeleteResult:
        """Remove a file or a directory; never the root, a route, or a directory that leads to one."""
        return await arun(self._tree.delete(file_path, **options))

    def upload_files(
        self, files: list[tuple[str, bytes]], *, allowed: Allowed | None = None
    ) -> list[FileUploadResponse]:
        """Write many files as bytes, those of each route at once; the answers keep the order."""
        return run(self._tree.upload_files(files, allowed))

    async def aupload_files(self, files: list[tuple[str, bytes]], **options: Any) -> list[FileUploadResponse]:
        """Write many files as bytes, those of each route at once; the answers keep the order."""
        return await arun(self._tree.upload_files(files, **options))

    def download_files(
        self, paths: list[str], *, allowed: Allowed | None = None
    ) -> list[FileDownloadResponse]:
        """Read many files as bytes, those of each route at once; the answers keep the order."""
        return run(self._tree.download_files(paths, allowed))

    async def adownload_files(self, paths: list[str], **options: Any) -> list[FileDownloadResponse]:
        """Read many files as bytes, those of each route at once; the answers keep the order."""
        return await arun(self._tree.download_files(paths, **options))

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Run a shell command on the default backend.

        Raises:
            NotImplementedError: when the default runs no commands.
            BackendError: `not_supported` when it takes no `timeout`, and for whatever it raised.
        """
        return run(self._tree.execute(command, timeout))

    async def aexecute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Run a shell command on the default backend; raises what `execute` raises."""
        return await arun(self._tree.execute(command, timeout))

    def execute_with_offload(self, command: str, capture_path: str, **options: Any) -> ExecuteOffloadResult:
        """Run a command on the default backend, which keeps a long output in a file of its own."""
        return run(self._tree.execute_with_offload(command, capture_path, options))

    async def aexecute_with_offload(
        self, command: str, capture_path: str, **options: Any
    ) -> ExecuteOffloadResult:
        """Run a command on the default backend, which keeps a long output in a file of its own."""
        return await arun(self._tree.execute_with_offload(command, capture_path, options))

    def _get_backend_and_key(self, key: str) -> tuple[BACKEND_TYPES, str]:
        return route_for_path(default=self.default, sorted_routes=self.sorted_routes, path=key)[:2]


def _is_exposed(route: Route, can: Capabilities, default: Capabilities) -> bool:
    return can.exposed or bool(route.prefix and default.execute and default.host and can.host)
