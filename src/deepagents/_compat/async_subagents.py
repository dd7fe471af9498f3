"""Older names of this feature, as other packages call them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.tools import BaseTool

from deepagents.middleware.async_subagents.middleware import AsyncSubAgentMiddleware
from deepagents.middleware.async_subagents.spec import resolve_headers as headers_of


def build_async_subagent_tools(agents: Sequence[Any]) -> list[BaseTool]:
    """Make the tools over specs."""
    return list(AsyncSubAgentMiddleware(async_subagents=agents).tools)


def resolve_headers(spec: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers that a spec's requests carry."""
    return headers_of(str(spec.get("name")), spec.get("headers"))
