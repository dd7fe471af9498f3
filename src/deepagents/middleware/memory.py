"""AGENTS.md files in the system prompt."""

from __future__ import annotations

from collections.abc import Sequence

from deepagents.backends.protocol import BACKEND_TYPES
from deepagents.middleware._base import FlowMiddleware


class MemoryMiddleware(FlowMiddleware):
    """Show memory files to the model."""

    def __init__(
        self, *, backend: BACKEND_TYPES, sources: Sequence[str], add_cache_control: bool = False
    ) -> None:
        raise NotImplementedError("create_deep_agent(memory=...) is not available in this version")
