"""Keep the checkpoints of a thread in order and each change whole, whatever clocks and cancellations do."""

from __future__ import annotations

from asyncio import Task, ensure_future, shield, wait
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
)
from langgraph.checkpoint.base import id as ids

__all__ = ["OrderedCheckpoints", "WholeChanges", "count_on_from"]

T = TypeVar("T")

# LangGraph's own (checkpoint 4.3): when the last id of this process was made. It counts on from there where
# the clock stands still, and cannot be told of the ids of others. The tests fail if an upgrade changes that.
LAST_ID = "_last_v6_timestamp"


class OrderedCheckpoints(BaseCheckpointSaver[Any]):
    """Let each new checkpoint of a thread have an id above all that the thread has; stands before a saver.

    LangGraph takes the checkpoint with the highest id for the newest, and makes ids of the machine's clock.
    Without this, what a machine writes whose clock is behind is never read. A run reads its thread before
    it writes; from then on, ids of this process are above the highest that is there.

    Example:
        ```python
        class Saver(OrderedCheckpoints, AsyncPostgresSaver): ...
        ```
    """

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint."""
        found = super().get_tuple(config)
        count_on_from(super().get_tuple(_newest(config)) if get_checkpoint_id(config) else found)
        return found

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint."""
        found = await super().aget_tuple(config)
        count_on_from(await super().aget_tuple(_newest(config)) if get_checkpoint_id(config) else found)
        return found


class WholeChanges(BaseCheckpointSaver[Any]):
    """Let changes reach their commit though the run is cancelled; stands before an `AsyncSqliteSaver`.

    Half a change keeps the file locked for other connections until the saver changes something else. One
    that fails is rolled back: else each later one could fail too.

    Example:
        ```python
        class Saver(WholeChanges, AsyncSqliteSaver): ...
        ```
    """

    conn: Any
    lock: Any

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._under_way: set[Task[Any]] = set()

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint."""
        return await self._finish(super().aput(config, checkpoint, metadata, new_versions))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Save what a task has written."""
        await self._finish(super().aput_writes(config, writes, task_id, task_path))

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete all that is kept of a thread."""
        await self._finish(super().adelete_thread(thread_id))

    async def wait_for_changes(self) -> None:
        """Wait for the end of changes that were cancelled; do so before you close the connection."""
        while self._under_way:
            await wait(self._under_way)

    async def _finish(self, change: Coroutine[Any, Any, T]) -> T:
        task = ensure_future(self._make(change))
        self._under_way.add(task)
        task.add_done_callback(self._forget)
        return await shield(task)

    async def _make(self, change: Coroutine[Any, Any, T]) -> T:
        try:
            return await change
        except Exception:
            async with self.lock:
                await self.conn.rollback()
            raise

    def _forget(self, task: Task[Any]) -> None:
        self._under_way.discard(task)
        # Who was cancelled does not ask any more how it ended, and Python would report that nobody did.
        _ = task.cancelled() or task.exception()


def _newest(config: RunnableConfig) -> RunnableConfig:
    """Name the newest checkpoint of the place that a configuration names."""
    configurable = config.get("configurable", {})
    return {"configurable": {name: configurable.get(name, "") for name in ("thread_id", "checkpoint_ns")}}


def count_on_from(newest: CheckpointTuple | None) -> None:
    """Let ids that this process makes from now on be above that of a checkpoint."""
    made: dict[str, Any] = ids.__dict__
    # What is not a UUID is not an id of LangGraph's.
    with suppress(ValueError):
        if newest and (last := ids.UUID(get_checkpoint_id(newest.config) or "").time) > (made[LAST_ID] or 0):
            made[LAST_ID] = last
