"""Perform operations on a tree of backends: find the route, translate paths, join answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from functools import partial
from typing import Any, Final

from langgraph.errors import GraphBubbleUp

from deepagents._async import as_io_call, gather, gather_threads
from deepagents._globs import EVERY_FILE, GlobPattern, parse_glob
from deepagents._paths import is_within, normalise, without_slash
from deepagents._state.runtime import runtime_of_run
from deepagents._values import dataclass, replace, valueclass
from deepagents.backends import operations as ops
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.composite.merging import join_files, join_lines, join_listing, move_paths
from deepagents.backends.foreign.forms import is_factory, resolve_backend
from deepagents.backends.handle import check_answer, open_layers
from deepagents.backends.operations import Operation, Perform, as_result
from deepagents.backends.protocol import ASYNC_GREP_TIMEOUT, BACKEND_TYPES, Allowed, BackendProtocol
from deepagents.backends.results import (
    GlobResult,
    GrepResult,
    LsResult,
    transfer_error,
)
from deepagents.backends.timeout import Overdue
from deepagents.errors import BackendError, ConfigError, HarnessError

_SECONDS: Final = {"ls": 30.0, "glob": 8.0, "grep": ASYNC_GREP_TIMEOUT + 5}
"""How long to wait for one route among several: less than tools wait for all of them."""
_UNKNOWN: Final = Capabilities(delete=True, state_files=True, host=False)
"""What to expect of a factory while there is no run to make its backend for."""


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """A backend and the directory in the tree that is its root; the default's prefix is empty."""

    prefix: str
    backend: BACKEND_TYPES

    @property
    def root(self) -> str:
        """The directory of the tree that this route serves."""
        return self.prefix or "/"

    def key(self, path: str) -> str:
        """Translate a path of the tree into the backend's own paths."""
        return path[len(self.prefix) :] or "/"

    def path(self, key: str) -> str:
        """Translate a path of the backend into those of the tree."""
        below = key.lstrip("/")
        return f"{self.prefix}/{below}" if below and self.prefix else self.prefix or key

    def reword(self, text: str, path: str) -> str:
        """Let a text about a path of the backend name that path as it is in the tree."""
        return text.replace(f"'{self.key(path)}'", f"'{path}'") if self.prefix else text


@valueclass
class AllowedOnRoute:
    """An `Allowed` on the whole tree, as the backend of a route asks it."""

    allowed: Allowed
    route: Route

    def __call__(self, path: str) -> bool:
        """Return the answer for one path of the backend."""
        return self.allowed(self.route.path(path).rstrip("/") or "/")

    def all_below(self, directory: str) -> bool:
        """Return the answer for all paths below a directory of the backend."""
        return self.allowed.all_below(self.route.path(directory).rstrip("/") or "/")


class Routes:
    """All routes, the longest first, and what serves the rest; a factory makes its backend in each run."""

    def __init__(self, default: BACKEND_TYPES, routes: Mapping[str, BACKEND_TYPES]) -> None:
        """Take routes by their keys, with or without a slash at the end.

        Raises:
            ConfigError: for a key that is not a directory below the root, or two keys for one directory.
        """
        named: dict[str, str] = {}
        for key in routes:
            prefix = _prefix(key)
            if prefix in named:
                raise ConfigError(f"routes {named[prefix]!r} and {key!r} are the same directory; keep one")
            named[prefix] = key
        found = [Route(prefix, routes[key]) for prefix, key in named.items()]
        self.default = Route("", default)
        self.routes = tuple(sorted(found, key=lambda each: len(each.prefix), reverse=True))
        self.given = {
            route.prefix: resolve_backend(route.backend, None)
            for route in (self.default, *self.routes)
            if not is_factory(route.backend)
        }
        self._made: dict[str, tuple[Any, BackendProtocol]] = {}

    def serving(self, path: str) -> Route:
        """Return the route of a normalised path."""
        for route in self.routes:
            if path.startswith(route.prefix) and path[len(route.prefix) :][:1] in ("", "/"):
                return route
        return self.default

    def below(self, path: str) -> list[Route]:
        """Return the routes that stand below a normalised path, by path."""
        found = [each for each in self.routes if each.prefix != path and is_within(each.prefix, path)]
        return sorted(found, key=lambda each: each.prefix)

    def is_held(self, path: str) -> bool:
        """Return whether a route stands at or below a normalised path, or the path is the root."""
        return path == "/" or any(is_within(each.prefix, path) for each in self.routes)

    def backend_of(self, route: Route) -> BackendProtocol:
        """Return the backend of a route.

        Raises:
            BackendError: when its factory fails.
        """
        given = self.given.get(route.prefix)
        if given is not None:
            return given
        runtime = runtime_of_run()
        last = self._made.get(route.prefix)
        # A factory may make another backend for each run, and within one task it must stay the same.
        if runtime is None or last is None or last[0] is not runtime:
            last = self._made[route.prefix] = (runtime, _make(route, runtime))
        return last[1]

    def can(self, route: Route, key: str) -> Capabilities:
        """Return what can be done at a path of a route."""
        if route.prefix not in self.given and runtime_of_run() is None:
            return _UNKNOWN
        try:
            return self.backend_of(route).capabilities(key)
        except Exception as error:
            if isinstance(error, GraphBubbleUp):
                raise
            # It cannot tell, so its files may be on this machine.
            return Capabilities(host=True)


def _make(route: Route, runtime: Any) -> BackendProtocol:
    try:
        return resolve_backend(route.backend, runtime)
    except (GraphBubbleUp, HarnessError):
        raise
    except Exception as error:
        text = f"The backend of '{route.root}' could not be made: {type(error).__name__}: {error}"
        raise BackendError("io_error", text) from error


def _prefix(key: object) -> str:
    if not isinstance(key, str):
        raise ConfigError(f"route {key!r} is not text; write the path of a directory, such as '/memories/'")
    try:
        prefix = normalise(key)
    except BackendError as error:
        raise ConfigError(f"route {key!r} is not a path: {error.text}") from error
    if prefix == "/":
        raise ConfigError(f"route {key!r} is the root, which the default serves; name a directory below it")
    return prefix


class Router:
    """Performs operations on the routes that they reach, for one agent or for direct calls.

    A call may take `seconds`, and on one route among several `route_seconds`.
    """

    def __init__(
        self,
        routes: Routes,
        seconds: float | None = None,
        route_seconds: float | None = None,
        overdue: Overdue | None = None,
    ) -> None:
        self.routes = routes
        self.seconds = seconds
        self.route_seconds = route_seconds
        self._overdue = overdue or Overdue()
        self._opened = {
            prefix: (backend, open_layers(backend, seconds, self._overdue.on_route(prefix)))
            for prefix, backend in routes.given.items()
        }

    def _open(self, route: Route) -> Perform:
        """Return what performs operations on a route; a factory's is opened for each task of a run."""
        backend = self.routes.backend_of(route)
        last = self._opened.get(route.prefix)
        if last is None or last[0] is not backend:
            # A factory's backends share their overdue calls, or each task would start with none.
            layers = open_layers(backend, self.seconds, self._overdue.on_route(route.prefix))
            last = self._opened[route.prefix] = (backend, layers)
        return last[1]

    async def perform(self, op: Operation) -> Any:
        """Perform an operation on the tree.

        Raises:
            BackendError: when no route, or the only one, can do it.
        """
        match op:
            case ops.Ls():
                return check_answer(op, await self._list(op))
            case ops.Glob() | ops.Grep():
                return check_answer(op, await self._search(op))
            case ops.Upload() | ops.Download():
                return await self._transfer(op)
            case ops.CommandOperation():
                return await self._open(self.routes.default)(op)
            case ops.Delete() if self.routes.is_held(normalise(op.path)):
                text = f"{op.path!r} is the root, a route, or leads to a route; delete what is in it instead."
                raise BackendError("invalid_path", text)
            case _:
                return await self._one(op)

    async def _one(self, op: Any) -> Any:
        """Perform an operation on the route that serves its path."""
        path = normalise(op.path)
        route = self.routes.serving(path)
        inner = _on_route(op, route, path=route.key(path))
        if isinstance(op, ops.Write) and op.mode_of is not None:
            # A mode of another backend would say nothing to this one.
            is_here = self.routes.serving(op.mode_of) is route
            inner = replace(inner, mode_of=route.key(op.mode_of) if is_here else None)
        try:
            found = await self._open(route)(inner)
        except BackendError as error:
            error.text = route.reword(error.text, path)
            error.args = (error.text,)
            raise
        if isinstance(op, ops.Resolve):
            return route.path(found)
        # The backend may keep the result that it returned, so its path is changed in a copy.
        found = copy(found)
        if hasattr(found, "path"):
            found.path = path
        return found

    async def _list(self, op: ops.Ls) -> LsResult:
        path = normalise(op.path)
        route, below = self.routes.serving(path), self.routes.below(path)
        inner = _on_route(op, route, path=route.key(path))
        if below:
            inner = self._among_several(inner)
        found: LsResult = await as_result(lambda each: self._open(route)(each), inner)
        entries = None if found.entries is None else move_paths(route.path, found.entries)
        error = found.error and route.reword(found.error, path)
        joined = join_listing(
            path, replace(found, entries=entries, error=error), [each.prefix for each in below]
        )
        if op.allowed and joined.entries:
            joined.entries = [each for each in joined.entries if op.allowed(without_slash(each["path"]))]
        return joined

    def _among_several(self, op: Operation) -> Operation:
        """Give one route among several less time, so that one that never answers does not hide the others."""
        given = (op.seconds, self.seconds, self.route_seconds or _SECONDS[op.method])
        return replace(op, seconds=min(each for each in given if each is not None))

    def _parts(self, start: str | None, pattern: str | None) -> Iterator[_Part]:
        """Divide a search from a path, or from wherever the default starts, among the routes it reaches."""
        path = normalise(start or "/")
        glob = None if pattern is None else parse_glob(pattern)
        table = self.routes
        served, below = table.serving(path), table.below(path)
        base = path.rstrip("/") + "/"
        yield _Part(served, served.key(path) if start else None, pattern, base, below)
        for route in below:
            hiding = [each for each in below if each is not route and is_within(each.prefix, route.prefix)]
            if glob is None:
                yield _Part(route, "/", None, base, hiding)
            elif deeper := glob.below(route.prefix[len(base) :]):
                # Several patterns may hold for a route, and a backend takes one: it finds all files, filtered
                # here.
                exact = deeper[0] if len(deeper) == 1 else None
                yield _Part(route, "/", exact or EVERY_FILE, base, hiding, None if exact else glob)

    async def _search(self, op: ops.Glob | ops.Grep) -> GlobResult | GrepResult:
        """Search all routes at the same time; what one of them raises is its error."""
        parts = list(self._parts(op.path, op.pattern if isinstance(op, ops.Glob) else op.glob))

        async def answer(part: _Part) -> Any:
            inner = _on_route(op, part.route, path=part.start)
            if len(parts) > 1:
                inner = self._among_several(inner)
            found = await as_result(lambda each: part.search(each, self._open(part.route)), inner)
            start = part.route.path(part.start or "/")
            matches = None if found.matches is None else part.select(found.matches)
            error = found.error and part.route.reword(found.error, start)
            return replace(found, matches=matches, error=error)

        if len(parts) == 1:
            found = [await answer(parts[0])]
        else:
            # Threads also for blocking callers: one slow route would otherwise add its time to the others.
            found = await gather_threads([as_io_call(partial(answer, part)) for part in parts])
        answers = {part.route.root: each for part, each in zip(parts, found, strict=True)}
        return join_files(answers) if isinstance(op, ops.Glob) else join_lines(answers, op.max_count)

    async def _transfer(self, op: ops.Upload | ops.Download) -> list[Any]:
        """Move all files, those of each route with one call; the answers keep the order."""
        answers: dict[int, Any] = {}
        groups: dict[str, tuple[Route, dict[int, str]]] = {}
        for number, path in enumerate(op.paths):
            try:
                normal = normalise(path)
            except BackendError as error:
                answers[number] = op.result(path, error=transfer_error(error))
                continue
            route = self.routes.serving(normal)
            groups.setdefault(route.prefix, (route, {}))[1][number] = normal
        calls = [as_io_call(partial(self._move, op, route, paths)) for route, paths in groups.values()]
        for moved in await gather(calls):
            answers |= moved
        return [replace(answers[number], path=path) for number, path in enumerate(op.paths)]

    async def _move(self, op: Any, route: Route, paths: dict[int, str]) -> dict[int, Any]:
        keys: list[Any] = [route.key(path) for path in paths.values()]
        if isinstance(op, ops.Upload):
            keys = [(key, op.files[number][1]) for number, key in zip(paths, keys, strict=True)]
        try:
            found = await self._open(route)(_on_route(op, route, files=keys))
        except BackendError as error:
            return {
                number: op.result(path, error=route.reword(transfer_error(error), path))
                for number, path in paths.items()
            }
        return {
            number: replace(answer, error=answer.error and route.reword(answer.error, path))
            for (number, path), answer in zip(paths.items(), found, strict=True)
        }


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """The part of a search that one route gets: a start, a pattern, and a filter for its answer."""

    route: Route
    start: str | None
    pattern: str | None
    below: str
    hiding: list[Route]
    filter: GlobPattern | None = None

    async def search(self, op: Any, perform: Perform) -> Any:
        """Search this route."""
        if isinstance(op, ops.Glob):
            return await perform(replace(op, pattern=self.pattern))
        # One line more than is wanted, or there is no way to know whether what was dropped counts.
        most = None if op.max_count is None else op.max_count + 1
        inner = replace(op, glob=self.pattern, max_count=most)
        found: GrepResult = await perform(inner)
        # Dropped matches used up the count, so all of them are asked for.
        if most is not None and found.truncated and len(self.select(found.matches or [])) < most:
            found = await perform(replace(inner, max_count=None))
        if op.context_lines and found.matches:
            lines: Any = [{"context_before": [], "context_after": [], **each} for each in found.matches]
            return replace(found, matches=lines)
        return found

    def select(self, found: list[Any]) -> list[Any]:
        """Return what counts of the matches of a route, by the paths of the tree."""
        if not self.route.prefix and not self.hiding:
            return found
        return [each for each in move_paths(self.route.path, found) if self._counts(each["path"])]

    def _counts(self, path: str) -> bool:
        if self.filter and not self.filter(path[len(self.below) :]):
            return False
        return not any(is_within(path, route.prefix) for route in self.hiding)


def _on_route(op: Any, route: Route, **changes: Any) -> Any:
    """Return an operation as the backend of a route gets it."""
    allowed = AllowedOnRoute(op.allowed, route) if op.allowed and route.prefix else op.allowed
    return replace(op, allowed=allowed, **changes)
