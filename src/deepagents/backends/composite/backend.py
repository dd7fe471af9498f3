"""Join several backends to one tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import CoroutineType
from typing import Any

from deepagents._paths import normalise, without_slash
from deepagents.backends._disk import find_disk_name, find_disk_paths, find_disk_roots, may_restore
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.composite.routing import AllowedOnRoute, Route, Router, Routes
from deepagents.backends.foreign.forms import warn_form
from deepagents.backends.operations import (
    CapturedExecute,
    Execute,
    Operation,
    Perform,
    TransferBackend,
    both_forms,
)
from deepagents.backends.protocol import BACKEND_TYPES, Allowed, execute_accepts_timeout
from deepagents.backends.results import ExecuteOffloadResult, ExecuteResponse
from deepagents.backends.timeout import Overdue


class CompositeBackend(TransferBackend):
    """One tree of files out of several backends: the longest route that a path lies in serves it.

    `routes` maps directories to backends; `default` serves the rest, and runs commands where it can. What the
    default, or a shorter route, holds at or below a longer route cannot be seen. Listings and searches cover
    every route at or below their path, and patterns match whole paths of the tree. `artifacts_root` is where
    the harness puts files of its own; without it, where the default says.

    `route_timeout` is how many seconds one route may take where several are searched or listed, so that it
    does not hide the others; without it 8 for `glob`, 30 for `ls` and 40 for `grep`.

    Raises:
        ConfigError: for a route that is not a directory below the root, or what is not a backend.
    """

    def __init__(
        self,
        default: BACKEND_TYPES,
        routes: Mapping[str, BACKEND_TYPES],
        *,
        artifacts_root: str | None = None,
        route_timeout: float | None = None,
    ) -> None:
        self._routes = Routes(default, routes)
        self._route_timeout = route_timeout
        self._artifacts_root = artifacts_root
        self.default = default
        self.routes = dict(routes)
        self.sorted_routes = sorted(
            self.routes.items(), key=lambda route: len(normalise(route[0])), reverse=True
        )
        for each in (default, *self.routes.values()):
            warn_form(each)

    @property
    def artifacts_root(self) -> str:
        """The directory in which the harness may put files of its own."""
        if self._artifacts_root is not None:
            return self._artifacts_root
        return self._routes.can(self._routes.default, "/").artifacts_root

    def capabilities(self, path: str = "/") -> Capabilities:
        """Return what can be done at `path`, or on any route below it."""
        where = normalise(path)
        served, default = self._routes.serving(where), self._routes.can(self._routes.default, "/")
        here = self._routes.can(served, served.key(where))
        below = [(route, self._routes.can(route, "/")) for route in self._routes.below(where)]
        parts = [(served, here), *below]
        routes = [f"{route.root}/" for route in self._routes.routes]
        # Commands run on the default backend, so what is said of them is what that says.
        return replace(
            default,
            delete=any(can.delete for _, can in parts),
            versions=here.versions,
            state_files=any(can.state_files for _, can in parts),
            artifacts_root=self.artifacts_root,
            host=_any_on_host([can.host for _, can in parts]),
            exposed=any(_is_exposed(route, can, default) for route, can in parts),
            in_process=all(can.in_process for _, can in parts),
            capture=default.capture and served == self._routes.default,
            apart=tuple(sorted({*default.apart, *routes})) if default.execute else (),
        )

    def real_path(self, path: str) -> str:
        """Return where a path leads once the backend that serves it has resolved links.

        Raises:
            BackendError: when that cannot be found out.
        """
        where = normalise(path)
        route = self._routes.serving(where)
        return without_slash(route.path(self._routes.backend_of(route).real_path(route.key(where))))

    async def _execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Run a shell command on the default backend, without `timeout` where that takes none.

        Raises:
            NotImplementedError: when the default runs no commands.
            BackendError: for whatever it raised.
        """
        default = self._routes.backend_of(self._routes.default)
        if not self._routes.can(self._routes.default, "/").execute:
            raise NotImplementedError(
                f"The default backend, {type(default).__name__}, doesn't support command execution."
            )
        return await self._perform(
            Execute(command, timeout if execute_accepts_timeout(type(default)) else None)
        )

    async def _execute_with_offload(
        self,
        command: str,
        capture_path: str,
        *,
        max_inline_bytes: int,
        max_capture_bytes: int | None = None,
        timeout: int | None = None,
    ) -> ExecuteOffloadResult:
        """Run a command on the default backend, which keeps a long output in a file of its own."""
        op = CapturedExecute(
            command,
            timeout,
            capture_path=capture_path,
            max_inline_bytes=max_inline_bytes,
            max_capture_bytes=max_capture_bytes,
        )
        return await self._perform(op)

    execute: Callable[..., ExecuteResponse]
    aexecute: Callable[..., CoroutineType[Any, Any, ExecuteResponse]]
    execute, aexecute = both_forms(_execute)
    execute_with_offload: Callable[..., ExecuteOffloadResult]
    aexecute_with_offload: Callable[..., CoroutineType[Any, Any, ExecuteOffloadResult]]
    execute_with_offload, aexecute_with_offload = both_forms(_execute_with_offload)

    @cached_property
    def _router(self) -> Router:
        """The routes as direct callers use them, opened at the first such call."""
        return Router(self._routes, route_seconds=self._route_timeout)

    async def _perform(self, op: Operation) -> Any:
        return await self._router.perform(op)

    def _disk_roots(self) -> list[Path]:
        return [root for each in self._routes.given.values() for root in find_disk_roots(each)]

    def _disk_paths(self, path: str) -> list[Path]:
        where = normalise(path)
        route = self._routes.serving(where)
        return find_disk_paths(self._routes.given.get(route.prefix), route.key(where))

    def _disk_name(self, path: Path) -> str | None:
        for route, backend in self._find_routes(path):
            if name := find_disk_name(backend, path):
                return route.path(name).rstrip("/") or "/"
        return find_disk_name(self._routes.given.get(""), path)

    def _find_routes(self, path: Path) -> list[tuple[Route, Any]]:
        """Return the routes whose directories hold a path on disk, with their backends."""
        routes = [(each, self._routes.given.get(each.prefix)) for each in self._routes.routes]
        routes.append((self._routes.default, self._routes.given.get(self._routes.default.prefix)))
        return [
            (route, backend)
            for route, backend in routes
            if any(path.is_relative_to(root) for root in find_disk_roots(backend))
        ]

    def _may_restore(self, path: Path, allowed: Allowed) -> bool:
        found = [
            may_restore(backend, path, AllowedOnRoute(allowed, route))
            for route, backend in self._find_routes(path)
        ]
        # A file may lie below several routes, and then the rules for each of its names hold.
        return all(found) if found else may_restore(self._routes.given.get(""), path, allowed)

    def _open_routes(self, seconds: float | None, overdue: Overdue) -> Perform:
        """Open the routes for one agent, with its bound on the time of a call."""
        return Router(self._routes, seconds, self._route_timeout, overdue).perform

    def _get_backend_and_key(self, key: str) -> tuple[BACKEND_TYPES, str]:
        where = normalise(key)
        route = self._routes.serving(where)
        return route.backend, route.key(where)


def _any_on_host(parts: Sequence[bool | None]) -> bool | None:
    # One part on this machine is enough for a risk; one unknown part leaves it open.
    return True if True in parts else None if None in parts else False


def _is_exposed(route: Route, can: Capabilities, default: Capabilities) -> bool:
    return can.exposed or bool(route.prefix and default.execute and default.host and can.host is not False)
