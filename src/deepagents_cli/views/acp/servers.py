"""Read the MCP servers that a client hands over."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from acp import schema

from deepagents_cli.project.servers import Server

ServerOfClient: TypeAlias = (
    schema.McpServerStdio | schema.HttpMcpServer | schema.SseMcpServer | schema.AcpMcpServer
)


def read_servers(given: Sequence[ServerOfClient], directory: Path) -> list[Server]:
    """Return the entries of servers; those that only the client could reach were not asked for."""
    return [
        Server(each.name, _entry(each), directory / "the editor", "option")
        for each in given
        if not isinstance(each, schema.AcpMcpServer)
    ]


def _entry(server: schema.McpServerStdio | schema.HttpMcpServer | schema.SseMcpServer) -> dict[str, Any]:
    if isinstance(server, schema.McpServerStdio):
        variables = {each.name: each.value for each in server.env}
        return {"command": server.command, "args": [*server.args], "env": variables}
    kind = "sse" if isinstance(server, schema.SseMcpServer) else "http"
    headers = {each.name: each.value for each in server.headers}
    return {"type": kind, "url": server.url, "headers": headers}
