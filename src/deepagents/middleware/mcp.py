"""Offer the tools of MCP servers, which are known only once the servers run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from langchain.agents.middleware.types import ToolCallRequest

from deepagents.errors import ToolFailure
from deepagents.middleware._base import BaseMiddleware, inner
from deepagents.middleware._requests import Request, Response, ToolResult, with_changes
from deepagents.tools._tool import failure_message, names_of_tools

if TYPE_CHECKING:
    from deepagents.mcp import MCPServers


class MCPMiddleware(BaseMiddleware):
    """Add the tools of servers to each request, and find the tool of a call that names one of them.

    A tool of the agent that has the name of one of these stays, and theirs is left out.
    """

    def __init__(self, servers: MCPServers) -> None:
        super().__init__()
        self.servers = servers

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        offered = await self.servers.offer()
        await self.servers.end_abandoned()
        if offered:
            taken = names_of_tools(request.tools)
            added = [each for each in offered if each.name not in taken]
            request = with_changes(request, tools=[*request.tools, *added])
        return await inner(handler, request)

    async def _around_tool(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolResult]
    ) -> ToolResult:
        if request.tool is None:
            call = request.tool_call
            try:
                tool = await self.servers.find_tool(call["name"])
            except ToolFailure as failure:
                return failure_message(call["name"], call["id"] or "", failure.code, failure.text)
            if tool is not None:
                request = request.override(tool=tool)
        return await inner(handler, request)
