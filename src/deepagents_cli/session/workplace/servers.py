"""Hold the MCP servers of a conversation: all its agents share them, and they start while it is opened."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Any

from langchain_core.tools import BaseTool

from deepagents.errors import ConfigError, ToolFailure
from deepagents.mcp import MCPServers, ServerStatus
from deepagents_cli.project.servers import Server
from deepagents_cli.session.display.lines import count_of
from deepagents_cli.session.workplace.confined import confine
from deepagents_cli.text import one_line


def open_servers(
    found: Mapping[str, Server], confined: Sequence[str] = (), access: Mapping[str, Any] | None = None
) -> MCPServers:
    """Return the servers for these entries; nothing starts yet.

    Processes whose names fit a pattern in `confined` run in the sandbox, with this access.

    Raises:
        ConfigError: without the package that speaks the protocol.
    """
    with warnings.catch_warnings():
        # Keys that mean nothing were named when the entries were read.
        warnings.simplefilter("ignore")
        entries = {name: each.placed() for name, each in found.items()}
        for name, entry in entries.items():
            if "command" in entry and any(fnmatchcase(name, each) for each in confined):
                entries[name] = confine(entry, access or {})
        return MCPServers(entries)


def describe_state(server: ServerStatus) -> str:
    """Describe how it is with a server."""
    if server.status != "ready":
        words = {"idle": "is not started yet", "starting": "is starting", "stopped": "is switched off"}
        return words.get(server.status) or f"is not there: {server.error}"
    facts = [count_of(server.tools, "tool")]
    facts += [f"changed since its start: {', '.join(server.changed)}"] if server.changed else []
    facts += [f"left out: {', '.join(server.skipped)}"] if server.skipped else []
    return "; ".join(facts)


def tools_of(tools: Iterable[BaseTool], server: str) -> list[BaseTool]:
    """Return those tools that are of a server."""
    return [
        each for each in tools if (each.metadata or {}).get("mcp", {}).get("server", {}).get("name") == server
    ]


class Servers:
    """Servers by name; `opened` is what agents have of them, and `None` where there are none.

    Args:
        found: the entries.
        notify: hears of each server that does not start.
        confined: patterns of the names of those that run in the sandbox.
        access: what these find there.
    """

    def __init__(
        self,
        found: Mapping[str, Server],
        notify: Callable[[str], None],
        confined: Sequence[str] = (),
        access: Mapping[str, Any] | None = None,
    ) -> None:
        self._confined, self._access = confined, access
        self.found: Mapping[str, Server] = found
        self.opened: MCPServers | None = None
        self._notify = notify
        self._starting: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Begin to start all of them; the first request waits for those that it needs."""
        if not self.found:
            return
        try:
            self.opened = open_servers(self.found, self._confined, self._access)
        except ConfigError as error:
            self._notify(str(error))
            self.found = {}
            return
        self._starting = asyncio.create_task(self._start(self.opened))

    @property
    def has_confined(self) -> bool:
        """Whether any of them runs in the sandbox."""
        return any(
            "command" in each.entry and any(fnmatchcase(name, pattern) for pattern in self._confined)
            for name, each in self.found.items()
        )

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
