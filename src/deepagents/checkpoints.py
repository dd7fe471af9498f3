"""Keep the checkpoints of a thread in order, whatever the clocks of the machines that write them say."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple, get_checkpoint_id
from langgraph.checkpoint.base import id as ids

__all__ = ["OrderedCheckpoints", "count_on_from"]

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
