"""Files in a LangGraph store: they outlive the thread."""

from __future__ import annotations

from typing import Any

from langgraph.config import get_store
from langgraph.store.base import BaseStore, Item

from deepagents._async import arun, run
from deepagents._deprecation import warn_legacy
from deepagents.backends._flowing import TransferBackend
from deepagents.backends._namespaces import (
    BackendContext,
    Namespace,
    NamespaceFactory,
    as_stored,
    made_by,
    of_assistant,
    validate_namespace,
)
from deepagents.backends._shelf import Shelf
from deepagents.backends._stored import Stored
from deepagents.backends.capabilities import Capabilities

__all__ = ["BackendContext", "NamespaceFactory", "StoreBackend"]

_NO_STORE = (
    "StoreBackend has no store. Give it one, StoreBackend(store=InMemoryStore()), or run it in an agent that "
    "has one: create_deep_agent(..., store=InMemoryStore())."
)
_validate_namespace = validate_namespace


class StoreBackend(TransferBackend):
    """Files in one namespace of a store; what lies in namespaces below it is never seen.

    Raises:
        TypeError, ConfigError: for a namespace that no store can keep apart.
        RuntimeError: by every operation, when there is no store, or no run to make the namespace from.
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
        self._store = store
        self._namespace = (
            namespace if namespace is None or callable(namespace) else validate_namespace(namespace)
        )

    def capabilities(self, path: str = "/") -> Capabilities:
        """Say what this backend can do at `path`."""
        return Capabilities(delete=True, versions=True, host=False)

    @property
    def _flows(self) -> Stored:
        return Stored(Shelf(self._get_store(), as_stored(self._get_namespace())))

    def _get_store(self) -> BaseStore:
        for store in (self._store, getattr(self._runtime, "store", None), _store_of_run()):
            if store is not None:
                return store
        raise RuntimeError(_NO_STORE)

    def _get_namespace(self) -> Namespace:
        if self._namespace is None:
            return validate_namespace(of_assistant(self._runtime))
        if callable(self._namespace):
            return validate_namespace(made_by(self._namespace, self._runtime))
        return self._namespace

    @staticmethod
    def _validate_namespace(namespace: Namespace) -> Namespace:
        return validate_namespace(namespace)

    def _search_store_paginated(
        self,
        store: BaseStore,
        namespace: Namespace,
        *,
        query: str | None = None,
        filter: dict[str, Any] | None = None,
        page_size: int | None = None,
    ) -> list[Item]:
        return run(Shelf(store, namespace).items(namespace, query, filter, page_size))

    async def _asearch_store_paginated(
        self, store: BaseStore, namespace: Namespace, **options: Any
    ) -> list[Item]:
        return await arun(Shelf(store, namespace).items(namespace, **options))


def _store_of_run() -> BaseStore | None:
    try:
        return get_store()
    except (RuntimeError, KeyError):
        return None
