"""One search as a search of each route that it reaches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

from deepagents._async import Coro, as_io_call, gather_threads
from deepagents._globs import EVERY_FILE, Glob, checked_glob
from deepagents._paths import is_within, normalise
from deepagents.backends._answering import ResultType
from deepagents.backends._door import ask
from deepagents.backends._enforcing import RealPaths, told
from deepagents.backends.composite.guarding import OnRoute, options
from deepagents.backends.composite.merging import Answer, Found, is_hidden, placed, with_context
from deepagents.backends.composite.routes import Route, Table
from deepagents.backends.composite.waiting import in_time
from deepagents.backends.protocol import Allowed, BackendProtocol, accepts
from deepagents.backends.results import GlobResult, GrepResult
from deepagents.errors import BackendError

Result = TypeVar("Result", GlobResult, GrepResult)
Open = Callable[[Route], BackendProtocol]


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """What one route is asked: from where, by which pattern, and what of its answer counts."""

    route: Route
    start: str | None
    pattern: str | None
    below: str
    hiding: list[Route]
    filter: Glob | None = None

    def counts(self, path: str) -> bool:
        """Tell whether a place of the tree that this route found is part of the answer."""
        if self.filter and not self.filter(path[len(self.below) :]):
            return False
        return not is_hidden(path, self.hiding)


@dataclass(frozen=True, slots=True)
class Lines:
    """Which lines to look for, and how many are wanted."""

    pattern: str
    max_count: int | None
    regex: bool
    context_lines: int


def parts(table: Table, start: str | None, pattern: str | None) -> Iterator[Part]:
    """Divide a search from a path, or from wherever the default starts, among the routes that it reaches.

    Raises:
        BackendError: `invalid_path` or `invalid_pattern`.
    """
    path = normalise(start or "/")
    glob = None if pattern is None else checked_glob(pattern)
    served, below = table.serving(path), table.below(path)
    base = path.rstrip("/") + "/"
    yield Part(served, served.key(path) if start else None, pattern, base, below)
    for route in below:
        hiding = [each for each in below if each is not route and is_within(each.prefix, route.prefix)]
        if glob is None:
            yield Part(route, "/", None, base, hiding)
        elif deeper := glob.below(route.prefix[len(base) :]):
            exact = deeper[0] if len(deeper) == 1 else None
            yield Part(route, "/", exact or EVERY_FILE, base, hiding, None if exact else glob)


async def search_all(
    reached: Sequence[Part],
    open_route: Open,
    method: Literal["glob", "grep"],
    failed: ResultType[Result],
    search: Callable[[Part, BackendProtocol], Coro[Result]],
) -> list[Answer[Result]]:
    """Search all routes at the same time; what one of them raises is its error."""

    async def answer(part: Part) -> Answer[Result]:
        try:
            backend = open_route(part.route)
            if len(reached) == 1:
                found = await search(part, backend)
            else:
                found = await in_time(part.route, backend, method, lambda: search(part, backend))
        except BackendError as error:
            found = failed(error=_worded(part, error.text), code=error.code)
        return Answer(part.route, found)

    return await gather_threads([as_io_call(partial(answer, part)) for part in reached])


def globbing(allowed: Allowed | None) -> Callable[[Part, BackendProtocol], Coro[GlobResult]]:
    """Say how to find the files of one route."""
    return lambda part, backend: _glob(part, backend, OnRoute.of(allowed, part.route))


def grepping(wanted: Lines, allowed: Allowed | None) -> Callable[[Part, BackendProtocol], Coro[GrepResult]]:
    """Say how to find lines in the files of one route."""
    # One line more, or there is no telling whether what was dropped counts.
    cap = None if wanted.max_count is None else wanted.max_count + 1
    return lambda part, backend: _grep(part, backend, wanted, cap, OnRoute.of(allowed, part.route))


async def _glob(part: Part, backend: BackendProtocol, rule: OnRoute | None) -> GlobResult:
    extra = options(backend, "glob", rule)
    found: GlobResult = await ask(backend, "glob", part.pattern, part.start, **extra)
    matches = await _kept(part, backend, "glob", found.matches, rule)
    error = _told(part, backend, "glob", found.error, rule)
    return GlobResult(error, matches, found.truncated, found.truncation_reason, code=found.code)


async def _grep(
    part: Part, backend: BackendProtocol, wanted: Lines, cap: int | None, rule: OnRoute | None
) -> GrepResult:
    if wanted.regex and not accepts(type(backend), "grep", "regex"):
        raise BackendError("not_supported", "This backend finds literal text only; leave regex out.")
    extra: dict[str, Any] = {
        "max_count": cap,
        "regex": wanted.regex or None,
        "context_lines": wanted.context_lines or None,
        **options(backend, "grep", rule),
    }
    found: GrepResult = await ask(backend, "grep", wanted.pattern, part.start, part.pattern, **extra)
    matches = await _kept(part, backend, "grep", found.matches, rule)
    if cap is not None and found.truncated and len(matches or ()) < len(found.matches or ()):
        return await _grep(part, backend, wanted, None, rule)
    if wanted.context_lines and matches:
        matches = [with_context(each) for each in matches]
    error = _told(part, backend, "grep", found.error, rule)
    return GrepResult(error, matches, found.truncated, code=found.code)


async def _kept(
    part: Part, backend: BackendProtocol, method: str, found: list[Found] | None, rule: OnRoute | None
) -> list[Found] | None:
    """Keep what counts and may be known, under its path in the tree."""
    if found is None:
        return None
    found = await RealPaths(backend).kept(method, found, rule)
    if not part.route.prefix and not part.hiding:
        return found
    return [each for each in placed(part.route, found) if part.counts(each["path"])]


def _told(
    part: Part, backend: BackendProtocol, method: str, error: str | None, rule: OnRoute | None
) -> str | None:
    said = told(backend, method, part.start or "/", error, rule)
    return said and _worded(part, said)


def _worded(part: Part, text: str) -> str:
    return part.route.reworded(text, part.route.path(part.start or "/"))
