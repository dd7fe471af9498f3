"""Hold the MCP servers of a conversation: all its agents share them, and they start while it is opened."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress

from deepagents.errors import ConfigError, ToolFailure
from deepagents.mcp import MCPServers
from deepagents_cli.project.servers import Server
from deepagents_cli.text import one_line


class Servers:
    """Servers by name; `opened` is what agents have of them, and `None` where there are none.

    Args:
        found: the entries.
        notify: hears of each server that does not start.
    """

    def __init__(self, found: Mapping[str, Server], notify: Callable[[str], None]) -> None:
        self.found: Mapping[str, Server] = found
        self.opened: MCPServers | None = None
        self._notify = notify
        self._starting: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Begin to start all of them; the first request waits for those that it needs."""
        if not self.found:
            return
        with warnings.catch_warnings():
            # Keys that mean nothing were named when the entries were read.
            warnings.simplefilter("ignore")
            try:
                self.opened = MCPServers({name: each.placed() for name, each in self.found.items()})
            except ConfigError as error:
                self._notify(str(error))
                self.found = {}
                return
        self._starting = asyncio.create_task(self._start(self.opened))

    async def _start(self, servers: MCPServers) -> None:
        with suppress(ToolFailure):
            await servers.astart()
        self._tell_failed(servers)

    def _tell_failed(self, servers: MCPServers) -> None:
        for each in servers.status().values():
            if each.status == "failed":
                self._notify(one_line(f"the MCP server {each.name!r} is not there: {each.error}"))

    async def close(self) -> None:
        """End all of them, and what they have started."""
        if self.opened is None:
            return
        if self._starting is not None and not self._starting.done():
            # A task may be over before all of them have started.
            self._starting.cancel()
            self._tell_failed(self.opened)
        await self.opened.aclose()
