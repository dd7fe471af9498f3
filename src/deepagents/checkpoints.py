"""Keep the checkpoints of a thread in order, whatever the clocks of the machines that write them say."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple, get_checkpoint_id

from deepagents._state.runtime import continue_ids_after

__all__ = ["OrderedCheckpoints"]


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
        _note(super().get_tuple(_newest(config)) if get_checkpoint_id(config) else found)
        return found

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint."""
        found = await super().aget_tuple(config)
        _note(await super().aget_tuple(_newest(config)) if get_checkpoint_id(config) else found)
        return found


def _newest(config: RunnableConfig) -> RunnableConfig:
    """Name the newest checkpoint of the place that a configuration names."""
    configurable = config.get("configurable", {})
    return {"configurable": {name: configurable.get(name, "") for name in ("thread_id", "checkpoint_ns")}}


def _note(newest: CheckpointTuple | None) -> None:
    if newest and (checkpoint_id := get_checkpoint_id(newest.config)):
        continue_ids_after(checkpoint_id)
