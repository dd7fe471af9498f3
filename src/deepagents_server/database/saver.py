"""LangGraph's saver for SQLite, with one visit to a thread for each call, not for each statement."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.sqlite import SqliteSaver

P = ParamSpec("P")
T = TypeVar("T")


class ThreadedSqliteSaver(SqliteSaver):
    """Gives the saver for blocking callers the methods that are awaited."""

    def __init__(self, connection: sqlite3.Connection, thread: ThreadPoolExecutor) -> None:
        super().__init__(connection)
        self._thread = thread
        self._loop = asyncio.get_running_loop()
        self.writing = asyncio.Lock()
        """Held by whoever writes to the file from the server's event loop."""

    @classmethod
    @contextmanager
    def open(cls, path: Path, prepare: Callable[[Any, Any], None]) -> Generator[ThreadedSqliteSaver]:
        """Open a file and make the tables."""
        # A thread of its own: tools that block may fill the event loop's.
        with ThreadPoolExecutor(1, "checkpoints") as thread, closing(_connect(path)) as connection:
            prepare(connection, None)
            connection.isolation_level = "DEFERRED"
            saver = cls(connection, thread)
            saver.setup()
            yield saver

    async def _do(self, method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: method(*args, **kwargs))

    async def _write(self, method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        # A graph may call from an event loop of its own, which cannot wait for a lock of this one.
        is_server = asyncio.get_running_loop() is self._loop
        async with self.writing if is_server else nullcontext():
            return await self._do(method, *args, **kwargs)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint."""
        return await self._do(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yield checkpoints, newest first."""
        for found in await self._do(lambda: [*self.list(config, filter=filter, before=before, limit=limit)]):
            yield found

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Write a checkpoint."""
        return await self._write(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Write what a task has done."""
        await self._write(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """Remove what a thread holds."""
        await self._write(self.delete_thread, thread_id)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, Any]:
        """Return what made the channels that are kept as changes."""
        return await self._do(lambda: self.get_delta_channel_history(config=config, channels=channels))


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=30, check_same_thread=False)
