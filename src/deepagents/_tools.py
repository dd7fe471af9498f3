"""The caller's tools, with the descriptions that a profile gives them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from langchain_core.tools import BaseTool

from deepagents._deprecation import legacy
from deepagents.middleware._base import tool_name

ToolLike = BaseTool | Callable[..., Any] | dict[str, Any]


def described(tools: Sequence[ToolLike], overrides: Mapping[str, str]) -> list[ToolLike]:
    """Return the tools, copies of those whose description is overridden; plain functions stay as they are."""
    return [_described(tool, overrides.get(tool_name(tool) or "")) for tool in tools]


def _described(tool: ToolLike, text: str | None) -> ToolLike:
    if text is None:
        return tool
    if isinstance(tool, BaseTool):
        return tool.model_copy(update={"description": text})
    if not isinstance(tool, dict):
        return tool
    inside: object = cast("dict[str, object]", tool).get("function")
    if not isinstance(inside, dict):
        return {**tool, "description": text}
    return {**tool, "function": {**cast("dict[str, Any]", inside), "description": text}}


__getattr__ = legacy(__name__)
