"""Hide the tools that a harness profile excludes, and refuse calls that name one all the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain.agents.middleware.types import ToolCallRequest

from deepagents.middleware._base import BaseMiddleware, inner
from deepagents.middleware._requests import Request, Response, ToolResult, with_changes
from deepagents.tools._tool import SpecTool, failure_message, tool_name


class ToolExclusionMiddleware(BaseMiddleware):
    """Take tools out of each request. This shapes what a model sees; it is not a security boundary."""

    def __init__(self, *, excluded: frozenset[str]) -> None:
        super().__init__()
        self.excluded = excluded

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        kept = [tool for tool in request.tools if not self._is_excluded(tool)]
        return await inner(handler, with_changes(request, tools=kept))

    async def _around_tool(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolResult]
    ) -> ToolResult:
        call = request.tool_call
        if call["name"] in self.excluded or self._is_excluded(request.tool):
            return failure_message(
                call["name"], call["id"] or "", "not_supported", f"{call['name']} is not available"
            )
        return await inner(handler, request)

    def _is_excluded(self, tool: Any) -> bool:
        stands_for = tool.spec.instead_of if isinstance(tool, SpecTool) else ()
        return tool_name(tool) in self.excluded or not self.excluded.isdisjoint(stands_for)
