"""Hide the tools that a harness profile excludes, and refuse calls that name one all the same."""

from __future__ import annotations

from collections.abc import Callable

from langchain.agents.middleware.types import ToolCallRequest

from deepagents.middleware._base import BaseMiddleware, inner
from deepagents.middleware._requests import Request, Response, ToolResult, with_changes
from deepagents.tools._tool import failure_message, tool_name


class ToolExclusionMiddleware(BaseMiddleware):
    """Take tools out of each request. This shapes what a model sees; it is not a security boundary."""

    def __init__(self, *, excluded: frozenset[str]) -> None:
        super().__init__()
        self.excluded = excluded

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        kept = [tool for tool in request.tools if tool_name(tool) not in self.excluded]
        return await inner(handler, with_changes(request, tools=kept))

    async def _around_tool(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolResult]
    ) -> ToolResult:
        call = request.tool_call
        if call["name"] in self.excluded:
            return failure_message(
                call["name"], call["id"] or "", "not_supported", f"{call['name']} is not available"
            )
        return await inner(handler, request)
