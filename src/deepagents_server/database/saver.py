"""Open LangGraph's saver and store in a file, so that reads and writes wait little for each other."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager, nullcontext
from copy import copy
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, ParamSpec, TypeVar

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.sqlite import SqliteSaver

from deepagents.checkpoints import OrderedCheckpoints
from deepagents_server.database.leased import LeasedCheckpoints

P = ParamSpec("P")
T = TypeVar("T")


class ThreadedSqliteSaver(SqliteSaver):
    """Gives the saver for blocking callers the methods that are awaited.

    It reads with a connection and a thread of their own. Otherwise a checkpoint would wait behind a long
    history, with the lock held for which all other writes wait.
    """

    def __init__(
        self, writer: sqlite3.Connection, reader: sqlite3.Connection, threads: Sequence[ThreadPoolExecutor]
    ) -> None:
        super().__init__(writer)
        self._reader = reader
        self._writes, self._reads = threads
        self._loop = asyncio.get_running_loop()
        self.writing = asyncio.Lock()
        """Held by whoever writes to the file from the server's event loop."""

    @classmethod
    @contextmanager
    def open(cls, path: Path, prepare: Callable[[Any, Any], None]) -> Generator[ThreadedSqliteSaver]:
        """Open a file and make the tables."""
        with ExitStack() as stack:
            # Threads of its own: tools that block may fill the event loop's.
            threads = [stack.enter_context(ThreadPoolExecutor(1, f"checkpoints-{n}")) for n in range(2)]
            writer, reader = (stack.enter_context(closing(_connect(path))) for _ in range(2))
            prepare(writer, None)
            prepare(reader, None)
            writer.isolation_level = "DEFERRED"
            saver = cls(writer, reader, threads)
            saver.setup()
            yield saver

    async def _read(self, method: Callable[[SqliteSaver], T]) -> T:
        # A copy, since LangGraph makes copies too, with serializers of their own.
        saver = copy(self)
        saver.conn, saver.lock = self._reader, Lock()
        return await asyncio.get_running_loop().run_in_executor(self._reads, method, saver)

    async def _write(self, method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        # A graph may call from an event loop of its own, which cannot wait for a lock of this one.
        async with self.writing if loop is self._loop else nullcontext():
            return await loop.run_in_executor(self._writes, partial(method, *args, **kwargs))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint."""
        return await self._read(lambda saver: SqliteSaver.get_tuple(saver, config))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yield checkpoints, newest first."""

        def read(saver: SqliteSaver) -> list[CheckpointTuple]:
            return [*saver.list(config, filter=filter, before=before, limit=limit)]

        for found in await self._read(read):
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
        return await self._read(
            lambda saver: saver.get_delta_channel_history(config=config, channels=channels)
        )


class OrderedSqliteSaver(LeasedCheckpoints, OrderedCheckpoints, ThreadedSqliteSaver):
    """Keeps checkpoints in order also where the clock was ahead before a restart."""


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=30, check_same_thread=False)


class _Connection(sqlite3.Connection):
    """Begins a transaction with the first statement that writes, and as a writer.

    One that has read before cannot wait until others have written: it fails. And before it writes, the store
    may embed texts or search for long, for which no writer should wait.
    """

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        """Run a statement; the driver begins transactions, so `BEGIN` does nothing."""
        if sql == "BEGIN":
            return self.cursor()
        if sql == "COMMIT":
            self.commit()
            return self.cursor()
        return super().execute(sql, *parameters)


@asynccontextmanager
async def connect(path: Path) -> AsyncGenerator[aiosqlite.Connection]:
    """Open the connection of a store."""
    options: dict[str, Any] = {"timeout": 30, "isolation_level": "IMMEDIATE", "factory": _Connection}
    async with aiosqlite.connect(path, **options) as connection:
        await connection.execute("PRAGMA journal_mode=WAL")
        await connection.execute("PRAGMA synchronous=NORMAL")
        yield connection
