"""Write checkpoints with the number of a lease, so that a run that begins meanwhile keeps them out."""

from __future__ import annotations

from copy import copy
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, ChannelVersions, Checkpoint, CheckpointMetadata


class LeasedCheckpoints(BaseCheckpointSaver[Any]):
    """Gives a saver a lease. Runs have theirs in their configuration, which a copied state does not get."""

    lease: int | None = None

    def under(self, lease: int) -> Self:
        """Return the same saver, whose checkpoints are refused once the lease has a later number."""
        saver = copy(self)
        saver.lease = lease
        return saver

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Write a checkpoint."""
        held: Any = metadata if self.lease is None else {**metadata, "lease": self.lease}
        return await super().aput(config, checkpoint, held, new_versions)
