"""Keep files in a LangGraph store: they outlive the thread."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, TypeAlias, TypeVar, cast

from langgraph.config import get_config, get_store
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, GetOp, Item, PutOp

from deepagents._async import Coro, IOCall, finish_first
from deepagents._deprecation import warn_legacy
from deepagents._state.runtime import in_graph, read_state, runtime_of_run
from deepagents._text import describe_exception
from deepagents._values import valueclass
from deepagents.backends._locks import get_shared_locks
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.keyed_files import KeyedFiles
from deepagents.backends.operations import Operation, TransferBackend
from deepagents.backends.results import FileData
from deepagents.errors import BackendError, ConfigError, RunConfigError, StoreMissing

__all__ = ["BackendContext", "NamespaceFactory", "StoreBackend"]

T = TypeVar("T")
Namespace: TypeAlias = tuple[str, ...]
NamespaceFactory: TypeAlias = Callable[[Runtime[Any]], Namespace]
"""Called for each operation with the runtime of the run."""

FIRST_PAGE: Final = 100_000
"""How many items to ask a store for at first: nearly always all of them, in one round trip."""
_PAGE_FOR_HINT: Final = 1_000
_LARGEST_CUT: Final = 10_000
"""No store is known that cuts its pages to more items than this."""
# Multiples of 50 are seen as well; these are the other sizes at which servers cut pages.
_USUAL_MOST: Final = frozenset((10, 20, 25, 64, 128, 256, 512, 1024, 2048, 4096, 8192))
# Each try takes as long as one look through a dictionary; so many in a row do not fail by chance.
_ATTEMPTS: Final = 50
_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|\Z))[^/\\\x00-\x1f\x7f-\x9f]+)+")
_NO_STORE = (
    "StoreBackend has no store. Give it one, StoreBackend(store=InMemoryStore()), or run it in an agent that "
    "has one: create_deep_agent(..., store=InMemoryStore())."
)
_LABEL: Final = re.compile(r"[A-Za-z0-9\-_.@+:~]+")
_RESERVED: Final = "langgraph"
_OUTSIDE: Final = (
    "The namespace of this StoreBackend comes from the run, and this is outside a LangGraph graph execution. "
    'Call it from a run, or give a namespace that needs none: namespace=("user", "filesystem").'
)
_log = logging.getLogger(__name__)


class StoreBackend(TransferBackend):
    """Files in one namespace of a store; what lies in namespaces below it is never seen.

    Raises:
        TypeError, ConfigError: for a namespace that no store can keep apart.
        RunConfigError: by every operation, when there is no store, or the run makes no namespace.
    """

    def __init__(
        self,
        runtime: Any = None,
        *,
        namespace: NamespaceFactory | Namespace | None = None,
        store: BaseStore | None = None,
        file_format: str | None = None,
    ) -> None:
        """Take files from `store`, or from that of the run.

        Args:
            runtime: deprecated; the run is found without it.
            namespace: a tuple, or what makes one from the runtime of each operation; without it files belong
                to the assistant of the run, or to all that have no name.
            store: any LangGraph store.
            file_format: deprecated; both formats are read.
        """
        if runtime is not None:
            warn_legacy(
                "StoreBackend(runtime) is deprecated: leave the runtime out, the run is found without it."
            )
        elif file_format is not None:
            warn_legacy("StoreBackend(file_format=...) is deprecated and ignored: both forms are read.")
        self._runtime = runtime
        self._store = check_store(store)
        self._namespace = (
            namespace if namespace is None or callable(namespace) else _validate_namespace(namespace)
        )

    def capabilities(self, path: str = "/") -> Capabilities:
        """Return what this backend can do at `path`."""
        return Capabilities(delete=True, versions=True, host=False)

    async def _perform(self, op: Operation) -> Any:
        # Stores take no dots, and e-mail addresses have them.
        namespace = tuple(each.replace(".", "%2E") for each in self._get_namespace())
        return await StoreItems(self._get_store(), namespace).perform(op)

    def _get_store(self) -> BaseStore:
        for store in (self._store, getattr(self._runtime, "store", None), _store_of_run()):
            if store is not None:
                return store
        raise StoreMissing(_NO_STORE)

    def _get_namespace(self) -> Namespace:
        try:
            return self._find_namespace()
        except GraphBubbleUp:
            raise
        except Exception as error:
            if not in_graph():
                raise
            raise RunConfigError(
                f"The namespace of this StoreBackend cannot be made: {describe_exception(error)}. Check what "
                "the run is given, such as agent.invoke(..., context=...)."
            ) from error

    def _find_namespace(self) -> Namespace:
        if self._namespace is None:
            return _validate_namespace(_assistant_namespace(self._runtime))
        if callable(self._namespace):
            return _validate_namespace(_call_factory(self._namespace, self._runtime))
        return self._namespace


def check_store(given: BaseStore | None) -> BaseStore | None:
    """Return a store.

    Raises:
        ConfigError: for a class, and for what is not a store.
    """
    if given is not None and (isinstance(given, type) or not hasattr(given, "put")):
        raise ConfigError(f"store must be a LangGraph store, got {given!r}; write store=InMemoryStore()")
    return given


def _store_of_run() -> BaseStore | None:
    try:
        return get_store()
    except (RuntimeError, KeyError):
        return None


@valueclass
class StoreItems(KeyedFiles):
    """Files in one namespace of a store, each under its path."""

    store: BaseStore
    namespace: tuple[str, ...]

    async def get_all(self, paths: Iterable[str]) -> dict[str, FileData]:
        """Return those of some files that are there, in one round trip."""
        wanted = list(dict.fromkeys(paths))
        if not wanted:
            return {}
        # `batch` takes operations as they are, and adds no defaults of the store as `get` and `put` do.
        refresh = bool((self.store.ttl_config or {}).get("refresh_on_read", True))
        gets = [GetOp(self.namespace, path, refresh) for path in wanted]
        items = await self._reporting(self._batch(gets))
        return {path: _file(item) for path, item in zip(wanted, items, strict=True) if item is not None}

    async def put_all(self, files: Mapping[str, FileData | None]) -> None:
        """Keep some files, and remove those that are `None`, in one round trip."""
        lifetime = (self.store.ttl_config or {}).get("default_ttl")
        puts = [
            PutOp(self.namespace, path, None if data is None else dict(data), ttl=lifetime)
            for path, data in files.items()
        ]
        await self._reporting(finish_first(self._batch(puts)))

    async def files(self) -> dict[str, FileData]:
        """Return all files: those of this namespace, and of none below it."""
        return self._files_of(await self._items())

    async def some_files(self) -> dict[str, FileData]:
        """Return the files of one page: an item comes with all that is in it."""
        return self._files_of(await self._reporting(self._page(_PAGE_FOR_HINT, 0)))

    def _files_of(self, items: Iterable[Item]) -> dict[str, FileData]:
        own = self.namespace
        # A search by prefix also finds what lies in namespaces below, which is not ours.
        found = {item.key: _file(item) for item in items if item.namespace == own}
        return {key: data for key, data in found.items() if _PATH.fullmatch(key)}

    async def _items(self) -> list[Item]:
        """Return all items in the namespace and below it, in pages of a large size that doubles.

        A page shorter than asked for is the last one, unless a store may have cut it to a size of its own.
        """
        found: list[Item] = []
        limit = FIRST_PAGE
        while True:
            page = await self._reporting(self._page(limit, len(found)))
            # Some stores ignore `offset`; without this the loop would never end.
            if found and page and (page[0].namespace, page[0].key) == (found[0].namespace, found[0].key):
                _log.warning(
                    "the store gives its first items again, so those after %d are not seen", len(found)
                )
                return found
            found += page
            if len(page) < limit and not _may_be_cut(len(page)):
                return found
            limit *= 2

    async def alone(self, paths: Iterable[str], work: Callable[[], Coro[T]]) -> T:
        """Run code while nothing else in this process changes some files."""
        # By the store, not by this object: several backends of one store share its items.
        keys = [(id(self.store), self.namespace, path) for path in paths]
        return await get_shared_locks().holding(keys, work)

    async def _page(self, limit: int, offset: int) -> list[Item]:
        """Return one page; a store in memory fails with `RuntimeError` when it changes meanwhile."""
        call: IOCall[Any] = IOCall(
            lambda: self.store.search(self.namespace, limit=limit, offset=offset),
            lambda: self.store.asearch(self.namespace, limit=limit, offset=offset),
        )
        for _ in range(_ATTEMPTS - 1):
            with suppress(RuntimeError):
                return await call
        return await call

    def _batch(self, ops: list[Any]) -> IOCall[list[Any]]:
        return IOCall(lambda: self.store.batch(ops), lambda: self.store.abatch(ops))

    async def _reporting(self, work: IOCall[T] | Coro[T]) -> T:
        try:
            return await work
        # How LangGraph interrupts a run; it must not end as a failed call.
        except GraphBubbleUp:
            raise
        except Exception as error:
            raise _report_failure(error) from error


def _may_be_cut(items: int) -> bool:
    """Return whether a page may have been cut: its size is a likely page size of a store."""
    return 0 < items <= _LARGEST_CUT and (items % 50 == 0 or items in _USUAL_MOST)


def _file(item: Item) -> FileData:
    value = cast("object", item.value)
    return cast("FileData", value if isinstance(value, dict) else {})


def _report_failure(error: Exception) -> BackendError:
    """Make an error with the kind of failure alone: its text may hold hosts or passwords, and is logged."""
    _log.warning("the store failed", exc_info=error)
    return BackendError(
        "io_error",
        f"The store failed ({type(error).__name__}). Try again; if that fails too, go on without it.",
    )


class BackendContext:
    """The `Runtime` with which a namespace factory is called, and what older factories expect as well."""

    def __init__(self, runtime: Any, state: Callable[[], Any]) -> None:
        self._runtime = runtime
        self._state = state

    def __getattr__(self, name: str) -> Any:
        """Look anything else up in the runtime."""
        return getattr(self._runtime, name)

    def __repr__(self) -> str:
        return f"BackendContext({self._runtime!r})"

    @property
    def runtime(self) -> Any:
        """The runtime itself; older factories reached it so."""
        warn_legacy(
            "ctx.runtime in a namespace factory is deprecated: what it is called with is the runtime."
        )
        return self._runtime

    @property
    def state(self) -> Any:
        """The state of the run; older factories used it."""
        warn_legacy(
            "ctx.state in a namespace factory is deprecated: take what tells namespaces apart from the "
            "context of the run, runtime.context."
        )
        return self._state()


def _validate_namespace(namespace: Any) -> Namespace:
    """Return a namespace that any store can keep apart from all others.

    Raises:
        TypeError: for anything but a tuple of strings.
        ConfigError: when it is empty, or a label has disallowed characters.
    """
    if not isinstance(namespace, tuple):
        raise TypeError(
            f'A namespace must be a tuple of strings, such as ("user", "files"), got {namespace!r}'
        )
    labels = cast("tuple[object, ...]", namespace)
    if not labels:
        raise ConfigError('A namespace must not be empty: name at least one part, such as ("filesystem",)')
    valid = tuple(_label(each, labels) for each in labels)
    if valid[0] == _RESERVED:
        raise ConfigError(f"A namespace must not start with {_RESERVED!r}, which stores keep for themselves")
    return valid


def _label(label: object, namespace: tuple[object, ...]) -> str:
    if not isinstance(label, str):
        raise TypeError(f"Each part of a namespace must be a string, got {label!r} in {namespace!r}")
    if not label:
        raise ConfigError(f"No part of a namespace must be empty, got {namespace!r}")
    if not _LABEL.fullmatch(label):
        raise ConfigError(
            f"A part of a namespace has disallowed characters: {label!r}. Use letters, digits and "
            "- _ . @ + : ~"
        )
    return label


def _call_factory(factory: NamespaceFactory, given: Any) -> Namespace:
    """Call a factory with the runtime of this run, or the one that was given, or `None`.

    Raises:
        RunConfigError: outside a run, when the factory needs one.
    """
    runtime = runtime_of_run() or given
    if runtime is None:
        try:
            return factory(cast("Runtime[Any]", None))
        except AttributeError as error:
            raise RunConfigError(_OUTSIDE) from error
    context = BackendContext(runtime, lambda: getattr(given, "state", None) or read_state())
    return factory(cast("Runtime[Any]", context))


def _assistant_namespace(given: Any) -> Namespace:
    """Return the namespace of the assistant that runs, or the one that all without a name share."""
    for config in (getattr(given, "config", None), _current_config()):
        metadata: Mapping[str, Any] = (config or {}).get("metadata") or {}
        if assistant := metadata.get("assistant_id"):
            return (str(assistant), "filesystem")
    return ("filesystem",)


def _current_config() -> Mapping[str, Any]:
    try:
        return cast("Mapping[str, Any]", get_config())
    except RuntimeError:
        return {}
