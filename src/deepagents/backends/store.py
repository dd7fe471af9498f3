"""Files in a LangGraph store: they outlive the thread."""

from __future__ import annotations

from typing import Any

from langgraph.config import get_store
from langgraph.store.base import BaseStore, Item

from deepagents._deprecation import warn_legacy
from deepagents._flow import arun, run
from deepagents.backends import _stored
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
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.protocol import Allowed, BackendProtocol
from deepagents.backends.results import (
    DeleteResult,
    EditResult,
    FileDownloadResponse,
    FileUploadResponse,
    GlobResult,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
)

__all__ = ["BackendContext", "NamespaceFactory", "StoreBackend"]

_NO_STORE = (
    "StoreBackend has no store. Give it one, StoreBackend(store=InMemoryStore()), or run it in an agent that "
    "has one: create_deep_agent(..., store=InMemoryStore())."
)
_validate_namespace = validate_namespace


class StoreBackend(BackendProtocol):
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
        return Capabilities(delete=True, versions=True)

    def ls(self, path: str, *, allowed: Allowed | None = None) -> LsResult:
        """List one directory."""
        return run(_stored.ls(self._shelf(), path, allowed))

    async def als(self, path: str, **options: Any) -> LsResult:
        """List one directory."""
        return await arun(_stored.ls(self._shelf(), path, **options))

    def read(
        self, file_path: str, offset: int = 0, limit: int = 2000, *, allowed: Allowed | None = None
    ) -> ReadResult:
        """Read `limit` lines from line `offset` (counted from 0); media come whole, as base64."""
        return run(_stored.read(self._shelf(), file_path, offset, limit, allowed))

    async def aread(self, file_path: str, offset: int = 0, limit: int = 2000, **options: Any) -> ReadResult:
        """Read `limit` lines from line `offset` (counted from 0); media come whole, as base64."""
        return await arun(_stored.read(self._shelf(), file_path, offset, limit, **options))

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
        """Find the lines that hold `pattern`, by path and line; `max_count` caps all matches together."""
        shelf = self._shelf()
        return run(_stored.grep(shelf, pattern, path, glob, max_count, regex, context_lines, allowed))

    async def agrep(
        self,
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        *,
        max_count: int | None = None,
        **options: Any,
    ) -> GrepResult:
        """Find the lines that hold `pattern`, by path and line; `max_count` caps all matches together."""
        return await arun(_stored.grep(self._shelf(), pattern, path, glob, max_count, **options))

    def glob(self, pattern: str, path: str | None = None, *, allowed: Allowed | None = None) -> GlobResult:
        """Find the files whose path matches `pattern`, the newest first."""
        return run(_stored.glob(self._shelf(), pattern, path, allowed))

    async def aglob(self, pattern: str, path: str | None = None, **options: Any) -> GlobResult:
        """Find the files whose path matches `pattern`, the newest first."""
        return await arun(_stored.glob(self._shelf(), pattern, path, **options))

    def write(
        self,
        file_path: str,
        content: str,
        *,
        expected_version: str | None = None,
        allowed: Allowed | None = None,
    ) -> WriteResult:
        """Create a file or replace it whole, unless it changed since `expected_version`."""
        return run(_stored.write(self._shelf(), file_path, content, expected_version, allowed))

    async def awrite(self, file_path: str, content: str, **options: Any) -> WriteResult:
        """Create a file or replace it whole, unless it changed since `expected_version`."""
        return await arun(_stored.write(self._shelf(), file_path, content, **options))

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
        change = (old_string, new_string, replace_all)
        return run(_stored.edit(self._shelf(), file_path, *change, expected_version, allowed))

    async def aedit(
        self, file_path: str, old_string: str, new_string: str, replace_all: bool = False, **options: Any
    ) -> EditResult:
        """Replace exact text, unless the file changed since `expected_version`."""
        change = (old_string, new_string, replace_all)
        return await arun(_stored.edit(self._shelf(), file_path, *change, **options))

    def delete(self, file_path: str, *, allowed: Allowed | None = None) -> DeleteResult:
        """Remove a file, or all files below a directory."""
        return run(_stored.delete(self._shelf(), file_path, allowed))

    async def adelete(self, file_path: str, **options: Any) -> DeleteResult:
        """Remove a file, or all files below a directory."""
        return await arun(_stored.delete(self._shelf(), file_path, **options))

    def upload_files(
        self, files: list[tuple[str, bytes]], *, allowed: Allowed | None = None
    ) -> list[FileUploadResponse]:
        """Write many files as bytes; the answers keep the order."""
        return run(_stored.upload(self._shelf(), files, allowed))

    async def aupload_files(self, files: list[tuple[str, bytes]], **options: Any) -> list[FileUploadResponse]:
        """Write many files as bytes; the answers keep the order."""
        return await arun(_stored.upload(self._shelf(), files, **options))

    def download_files(
        self, paths: list[str], *, allowed: Allowed | None = None
    ) -> list[FileDownloadResponse]:
        """Read many files as bytes; the answers keep the order."""
        return run(_stored.download(self._shelf(), paths, allowed))

    async def adownload_files(self, paths: list[str], **options: Any) -> list[FileDownloadResponse]:
        """Read many files as bytes; the answers keep the order."""
        return await arun(_stored.download(self._shelf(), paths, **options))

    def _shelf(self) -> Shelf:
        return Shelf(self._get_store(), as_stored(self._get_namespace()))

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
