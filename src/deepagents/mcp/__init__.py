"""Use the tools of servers that speak the Model Context Protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepagents._lazy import lazy

if TYPE_CHECKING:
    from deepagents.mcp.names import tool_name
    from deepagents.mcp.servers import MCPServers
    from deepagents.mcp.status import ServerStatus

__all__ = ["MCPServers", "ServerStatus", "tool_name"]

__getattr__ = lazy(
    __name__,
    {
        ".names": "tool_name",
        ".servers": "MCPServers",
        ".status": "ServerStatus",
    },
)
