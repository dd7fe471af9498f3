"""One namespace of one store, as flows. Whatever a store raises becomes a `BackendError`."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

from langgraph.errors import GraphBubbleUp
from langgraph.store.base import BaseStore, GetOp, Item, PutOp

from deepagents._async import Coro, IOCall, finish_first
from deepagents.backends._locks import shared_locks
from deepagents.backends.results import FileData
from deepagents.errors import BackendError

T = TypeVar("T")
FIRST_PAGE: Final = 100_000
"""How many items to ask a store for at first: nearly always all of them, in one round trip."""
_LARGEST_CUT: Final = 10_000
"""No store is known that cuts its pages to more items than this."""
_USUAL_MOST: Final = frozenset((10, 20, 25, 64, 128, 256, 512, 1024, 2048, 4096, 8192))
_ATTEMPTS: Final = 50
_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|\Z))[^/\\\x00-\x1f\x7f-\x9f]+)+")

_UNUSUAL: Final = ("//", "/\n", "/./", "/.\n", "/../", "/..\n", "\\")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Shelf:
    """Files in one namespace of a store, each under its path."""

    store: BaseStore
    namespace: tuple[str, ...]

    async def get(self, path: str) -> FileData | None:
        """Return one file."""
        item = await self._safely(
            IOCall(
                lambda: self.store.get(self.namespace, path), lambda: self.store.aget(self.namespace, path)
            )
        )
        return None if item is None else _file(item)

    async def put(self, path: str, data: FileData) -> None:
        """Keep one file."""
        value = dict(data)
        call: IOCall[None] = IOCall(
            lambda: self.store.put(self.namespace, path, value),
            lambda: self.store.aput(self.namespace, path, value),
        )
        await self._safely(finish_first(call))

    async def get_all(self, paths: Iterable[str]) -> dict[str, FileData]:
        """Return those of some files that are there, in one round trip."""
        wanted = list(dict.fromkeys(paths))
        if not wanted:
            return {}
        items = await self._safely(self._batch([GetOp(self.namespace, path) for path in wanted]))
        return {path: _file(item) for path, item in zip(wanted, items, strict=True) if item is not None}

    async def put_all(self, files: Mapping[str, FileData | None]) -> None:
        """Keep some files, and remove those that are `None`, in one round trip."""
        lifetime = (self.store.ttl_config or {}).get("default_ttl")
        if files:
            ops = [
                PutOp(self.namespace, path, None if data is None else dict(data), ttl=lifetime)
                for path, data in files.items()
            ]
            await self._safely(finish_first(self._batch(ops)))

    async def files(self) -> dict[str, FileData]:
        """Return all files: those of this namespace, and of none below it."""
        items = await self.items(self.namespace)
        own = self.namespace
        found = {item.key: _file(item) for item in items if item.namespace == own}
        if _are_paths(found):
            return found
        return {key: data for key, data in found.items() if _PATH.fullmatch(key)}

    async def items(
        self,
        prefix: tuple[str, ...],
        query: str | None = None,
        filter: dict[str, Any] | None = None,
        page_size: int | None = None,
    ) -> list[Item]:
        """Return all items below a prefix: pages of one size, or of a large one that doubles.

        A page shorter than asked for is the last one, unless a store may have cut it to a size of its own.
        """
        found: list[Item] = []
        limit = page_size or FIRST_PAGE
        while True:
            options = {"query": query, "filter": filter, "limit": limit, "offset": len(found)}
            page = await self._safely(self._page(prefix, options))
            if found and page and (page[0].namespace, page[0].key) == (found[0].namespace, found[0].key):
                _log.warning(
                    "the store gives its first items again, so those after %d are not seen", len(found)
                )
                return found
            found += page
            if len(page) < limit and not _may_be_cut(len(page)):
                return found
            limit = limit if page_size else 2 * limit

    async def alone(self, paths: Iterable[str], work: Callable[[], Coro[T]]) -> T:
        """Run a flow while nobody else in this process changes some files."""
        keys = [(id(self.store), self.namespace, path) for path in paths]
        return await shared_locks().holding(keys, work)

    async def _page(self, prefix: tuple[str, ...], options: dict[str, Any]) -> list[Item]:
        """Return one page; a store in memory fails with `RuntimeError` when it changes meanwhile."""
        call: IOCall[Any] = IOCall(
            lambda: self.store.search(prefix, **options), lambda: self.store.asearch(prefix, **options)
        )
        for _ in range(_ATTEMPTS - 1):
            with suppress(RuntimeError):
                return await call
        return await call

    def _batch(self, ops: list[Any]) -> IOCall[list[Any]]:
        return IOCall(lambda: self.store.batch(ops), lambda: self.store.abatch(ops))

    async def _safely(self, work: IOCall[T] | Coro[T]) -> T:
        try:
            return await work
        except GraphBubbleUp:
            raise
        except Exception as error:
            raise _failed(error) from error


def _may_be_cut(items: int) -> bool:
    """Tell whether a page has so many items as a store may take for the most that it gives at once."""
    return 0 < items <= _LARGEST_CUT and (items % 50 == 0 or items in _USUAL_MOST)


def _are_paths(keys: Collection[str]) -> bool:
    """Tell, fast, that all keys are paths that a file can have; what is unusual is left to be looked at."""
    text = "\n" + "\n".join(keys)
    plain = text.count("\n/") == text.count("\n") == len(keys) and text.replace("\n", "").isprintable()
    return plain and not any(unusual in f"{text}\n" for unusual in _UNUSUAL)


def _file(item: Item) -> FileData:
    value = cast("object", item.value)
    return cast("FileData", value if isinstance(value, dict) else {})


def _failed(error: Exception) -> BackendError:
    """Name the kind of failure alone: its text may tell of machines and passwords, and goes to the log."""
    _log.warning("the store failed", exc_info=error)
    return BackendError(
        "io_error",
        f"The store failed ({type(error).__name__}). Try again; if that fails too, go on without it.",
    )
