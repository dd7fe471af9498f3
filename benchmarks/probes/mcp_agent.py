"""Make an agent with five MCP servers of ten tools each."""

from __future__ import annotations

from typing import Any

from mcp.server.mcpserver import MCPServer

from benchmarks.probes import deep_agent

SERVERS, TOOLS = 5, 10


def search(query: str, limit: int = 10, newest_first: bool = True) -> str:
    """Search the records of this service, and return those that fit best."""
    return f"Nothing about {query}."


def make_server(number: int) -> MCPServer:
    """Make a server of this process."""
    server = MCPServer(f"service{number}")
    for tool in range(TOOLS):
        server.add_tool(search, name=f"search_{tool}")
    return server


def build(model: Any, checkpointer: Any = None) -> Any:
    """Make the agent."""
    servers = {f"service{number}": make_server(number) for number in range(SERVERS)}
    return deep_agent.build(model, checkpointer=checkpointer, mcp=servers)
