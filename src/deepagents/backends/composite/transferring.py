"""Many files at once, divided among the routes, with one answer for each in the order asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from deepagents._async import Coro, as_io_call, gather
from deepagents._paths import normalise
from deepagents.backends._door import ask
from deepagents.backends._enforcing import asks
from deepagents.backends.composite.guarding import OnRoute, check, options
from deepagents.backends.composite.routes import Route, Table
from deepagents.backends.protocol import Allowed, BackendProtocol
from deepagents.backends.results import FileDownloadResponse, FileUploadResponse
from deepagents.errors import BackendError

Response = TypeVar("Response", FileUploadResponse, FileDownloadResponse)
_STANDARD = frozenset(("file_not_found", "permission_denied", "is_directory", "invalid_path"))


@dataclass(frozen=True, slots=True)
class Item:
    """One file of a transfer: its place in the order, its path in the tree, and what is sent there."""

    number: int
    path: str
    content: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Transfer(Generic[Response]):
    """A kind of transfer: the method to call and the response that tells of a failure."""

    method: str
    failed: type[Response]
    open_route: Callable[[Route], BackendProtocol]
    allowed: Allowed | None

    async def of(self, files: Sequence[tuple[str, *tuple[bytes, ...]]], table: Table) -> list[Response]:
        """Move all files, those of each route with one call."""
        answers: dict[int, Response] = {}
        groups: dict[str, tuple[Route, list[Item]]] = {}
        for number, (path, *content) in enumerate(files):
            try:
                item = Item(number, normalise(path), tuple(content))
            except BackendError as error:
                answers[number] = self._failure(path, error)
                continue
            route = table.serving(item.path)
            groups.setdefault(route.prefix, (route, []))[1].append(item)
        moved = await gather([as_io_call(self._start(*group)) for group in groups.values()])
        for each in moved:
            answers |= each
        return [replace(answers[number], path=files[number][0]) for number in range(len(files))]

    def _start(self, route: Route, items: list[Item]) -> Callable[[], Coro[dict[int, Response]]]:
        return lambda: self._move(route, items)

    async def _move(self, route: Route, items: list[Item]) -> dict[int, Response]:
        answers: dict[int, Response] = {}
        try:
            backend = self.open_route(route)
            rule = OnRoute.of(self.allowed, route)
            if rule and not asks(backend, self.method):
                items = await self._permitted(backend, route, items, rule, answers)
            if not items:
                return answers
            keys = [route.key(item.path) for item in items]
            sent: list[Any] = [
                (key, *item.content) if item.content else key for key, item in zip(keys, items, strict=True)
            ]
            found: list[Response] = await ask(
                backend, self.method, sent, **options(backend, self.method, rule)
            )
        except BackendError as error:
            return answers | {item.number: self._failure(item.path, error, route) for item in items}
        for item, answer in zip(items, found, strict=True):
            answers[item.number] = self._told(answer, item, route)
        return answers

    async def _permitted(
        self,
        backend: BackendProtocol,
        route: Route,
        items: list[Item],
        rule: OnRoute,
        answers: dict[int, Response],
    ) -> list[Item]:
        permitted: list[Item] = []
        for item in items:
            try:
                await check(backend, self.method, route.key(item.path), rule)
                permitted.append(item)
            except BackendError as error:
                answers[item.number] = self._failure(item.path, error, route)
        return permitted

    def _told(self, answer: Response, item: Item, route: Route) -> Response:
        return replace(answer, error=answer.error and route.reworded(answer.error, item.path))

    def _failure(self, path: str, error: BackendError, route: Route | None = None) -> Response:
        if error.code in _STANDARD:
            return self.failed(path, error=error.code)
        return self.failed(path, error=route.reworded(error.text, path) if route else error.text)
