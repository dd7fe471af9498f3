"""SkillsMiddleware: lists skills in the system prompt."""

from __future__ import annotations

from collections.abc import Sequence

from deepagents.backends.protocol import BACKEND_TYPES
from deepagents.middleware._base import FlowMiddleware


class SkillsMiddleware(FlowMiddleware):
    """List skills to the model."""

    def __init__(self, *, backend: BACKEND_TYPES, sources: Sequence[str | tuple[str, str]]) -> None:
        raise NotImplementedError("create_deep_agent(skills=...) is not available in this version")
