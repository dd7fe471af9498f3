"""Keep files in an agent repository of LangSmith's Context Hub: each change is a commit."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from itertools import compress
from typing import Any, Final, Protocol, TypeVar, cast

from langgraph.errors import GraphBubbleUp
from langsmith import Client
from langsmith.schemas import FileEntry
from langsmith.utils import LangSmithConflictError, LangSmithNotFoundError

from deepagents._async import Coro, finish_first, in_thread, run
from deepagents._values import field, replace, valueclass
from deepagents.backends._locks import get_shared_locks
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.filedata import create_file_data, file_data_to_bytes, file_data_to_string, is_base64
from deepagents.backends.keyed_files import KeyedFiles
from deepagents.backends.operations import Operation, TransferBackend, Upload
from deepagents.backends.results import FileData, FileUploadResponse
from deepagents.errors import BackendError

T = TypeVar("T")
_RETRIES: Final = 3
_COMMIT: Final = re.compile(r"/([0-9a-f]{8,64})(?=[?/#]|\Z)")
_log = logging.getLogger(__name__)


class HubClient(Protocol):
    """The methods of a `langsmith.Client` that are used here."""

    def pull_agent(self, identifier: str, *, version: str | None = None) -> Any:
        """Return the newest commit with all its entries."""
        ...

    def push_agent(self, identifier: str, *, files: dict[str, Any], parent_commit: str | None = None) -> str:
        """Make a commit on top of another, and return its address."""
        ...


class ContextHubBackend(TransferBackend):
    """Text files in an agent repository, `"owner/name"`, or `"-/name"` for one of your own.

    The repository is read whole at first use and kept; each write, edit, deletion or upload is one commit.
    When another program has committed meanwhile, it is read again, and the change is made again on top.
    """

    def __init__(self, identifier: str, *, client: HubClient | None = None) -> None:
        self.identifier = identifier
        self._client = client

    def capabilities(self, path: str = "/") -> Capabilities:
        """Return what this backend can do."""
        return Capabilities(delete=True, versions=True, host=False)

    def has_prior_commits(self) -> bool:
        """Return whether anything was ever committed.

        Raises:
            BackendError: `io_error`, when the hub cannot be reached.
        """
        return run(self._hub.tree()).commit is not None

    def get_linked_entries(self) -> dict[str, str]:
        """Return what is linked from elsewhere, path to repository; none of it is a file here.

        Raises:
            BackendError: `io_error`, when the hub cannot be reached.
        """
        return dict(run(self._hub.tree()).links)

    async def _perform(self, op: Operation) -> Any:
        if not isinstance(op, Upload):
            return await self._hub.perform(op)
        # One commit holds all files of an upload, so one that the hub cannot keep would refuse the others.
        kept = [_may_be_text(content) for _, content in op.files]
        taken = iter(await self._hub.perform(replace(op, files=[*compress(op.files, kept)])))
        return [
            next(taken) if is_kept else FileUploadResponse(path, "invalid_encoding")
            for (path, _), is_kept in zip(op.files, kept, strict=True)
        ]

    @cached_property
    def _hub(self) -> _Hub:
        # Made at first use: the client looks for a key, which an agent that touches no file does not need.
        client = cast("HubClient", Client()) if self._client is None else self._client
        return _Hub(client, self.identifier)


@valueclass
class _Tree:
    commit: str | None = None
    files: Mapping[str, FileData] = field(default_factory=dict[str, FileData])
    links: Mapping[str, str] = field(default_factory=dict[str, str])


class _Conflict(BackendError):
    """Another program has committed meanwhile."""


class _Hub(KeyedFiles):
    """The files of one repository, as a tree that is pulled once and committed to."""

    def __init__(self, client: HubClient, identifier: str) -> None:
        self._client = client
        self._identifier = identifier
        self._tree: _Tree | None = None

    async def tree(self) -> _Tree:
        """Return what was pulled, or pull it; other callers wait for the same pull."""

        async def pull() -> _Tree:
            if self._tree is None:
                self._tree = await self._ask(self._pull)
            return self._tree

        return self._tree or await get_shared_locks().holding([(id(self), "pull")], pull)

    async def files(self) -> Mapping[str, FileData]:
        """Return all files."""
        return (await self.tree()).files

    async def put_all(self, files: Mapping[str, FileData | None]) -> None:
        """Commit some files, and remove those that are `None`."""
        tree = await self.tree()
        kept = {path: None if data is None else _text(path, data) for path, data in files.items()}
        entries = {
            path.removeprefix("/"): None if data is None else FileEntry(content=file_data_to_string(data))
            for path, data in kept.items()
        }
        try:
            address = await self._ask(
                lambda: self._client.push_agent(self._identifier, files=entries, parent_commit=tree.commit)
            )
        # The push may have arrived although its answer did not, so the repository is read again.
        except BaseException:
            self._tree = None
            raise
        now_there = {path: data for path, data in {**tree.files, **kept}.items() if data is not None}
        # The client answers with an address alone; the last hash in it is the new commit.
        found = _COMMIT.findall(address)
        self._tree = _Tree(found[-1], now_there, tree.links) if found else None

    async def alone(self, paths: Iterable[str], work: Callable[[], Coro[T]]) -> T:
        """Run code while nothing else in this process commits; again, when another program has committed."""

        async def attempts() -> T:
            for _ in range(_RETRIES):
                try:
                    return await work()
                except _Conflict:
                    _log.info("another commit came first, so the change is made again on top of it")
            return await work()

        return await get_shared_locks().holding([(id(self), "push")], attempts)

    def _pull(self) -> _Tree:
        try:
            agent = self._client.pull_agent(self._identifier)
        except LangSmithNotFoundError:
            return _Tree()
        entries: Mapping[str, Any] = agent.files
        files = {key: each for key, each in entries.items() if each.type == "file"}
        return _Tree(
            agent.commit_hash,
            {f"/{key}": create_file_data(each.content) for key, each in files.items()},
            {key: each.repo_handle for key, each in entries.items() if each.type != "file"},
        )

    async def _ask(self, work: Callable[[], T]) -> T:
        try:
            return await finish_first(in_thread(work))
        except LangSmithConflictError as error:
            raise _Conflict("parallel_mutation", "Somebody else has changed the files; try again.") from error
        except GraphBubbleUp:
            raise
        except Exception as error:
            _log.warning("the hub failed", exc_info=error)
            text = f"Hub unavailable: {type(error).__name__}. Try again; if that fails too, go on without it."
            raise BackendError("io_error", text) from error


def _text(path: str, data: FileData) -> FileData:
    """Return a file as the hub keeps it.

    Raises:
        BackendError: `invalid_encoding`, for what is not text.
    """
    if not is_base64(data):
        return data
    try:
        return {**data, "content": file_data_to_bytes(data).decode(), "encoding": "utf-8"}
    except UnicodeDecodeError as error:
        text = f"'{path}' is not text, and the hub keeps nothing else."
        raise BackendError("invalid_encoding", text) from error


def _may_be_text(content: bytes) -> bool:
    try:
        str(content, "utf-8")
    except UnicodeDecodeError:
        return False
    except TypeError:
        # No bytes at all: refused, like everywhere, where a file is made of it.
        pass
    return True
