"""List what a server offers, page by page, and tell what of it is new, changed or unfit."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Final

import anyio
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.types import Tool

from deepagents.mcp import offered
from deepagents.mcp.calls import describe
from deepagents.mcp.entries import ServerEntry
from deepagents.mcp.offered import Offered
from deepagents.mcp.status import State

_SECONDS: Final = 10.0
"""How long a list may take that is not part of a start."""
_MOST: Final = 20
"""Tools that are named in one line of the log."""
_log = logging.getLogger(__name__)


class Listing:
    """What one server offers, from its first list on; `state` shows it to others."""

    def __init__(self, entry: ServerEntry, state: State) -> None:
        self._entry, self._state = entry, state
        self._first: dict[str, str] = {}
        self._unfit: dict[str, str] = {}

    def leave_out(self, name: str, reason: str) -> None:
        """Note a tool that cannot be offered; of any number, the first thousand."""
        if len(self._unfit) < offered.MOST_TOOLS:
            self._unfit[describe(self._entry, name, 256)] = reason

    async def read(self, client: Client) -> None:
        """List the tools, and whether there are resources, of a server that was just opened."""
        self._show(await self._list(client))
        self._state.resources = await self._has_resources(client)

    async def read_again(self, client: Client) -> None:
        """List the tools again; a server that does not answer in time keeps those that it had."""
        with suppress(MCPError, ValueError, RuntimeError), anyio.move_on_after(_SECONDS):
            self._show(await self._list(client))

    async def _list(self, client: Client) -> list[Tool]:
        self._unfit = {}
        if client.server_capabilities.tools is None:
            return []
        found = await read_pages(client.list_tools, "tools")
        for each in found[offered.MOST_TOOLS :]:
            self.leave_out(each.name, f"there are more than {offered.MOST_TOOLS}")
        return found[: offered.MOST_TOOLS]

    def _show(self, listed: Sequence[Tool]) -> None:
        tools: dict[str, Offered] = {}
        for each in listed:
            if not self._entry.offers(each.name):
                continue
            try:
                # Servers of this process have no wire on which they were looked at.
                tool = offered.read(offered.mend(each.model_dump(by_alias=True, exclude_none=True)))
            except offered.Unfit as reason:
                self.leave_out(each.name, str(reason))
                continue
            if tool.name in tools:
                self.leave_out(each.name, "another tool has its name")
            tools.setdefault(tool.name, tool)
        state = self._state
        if not state.was_listed:
            self._first = {name: tool.definition for name, tool in tools.items()}
        state.changed = tuple(
            name for name, tool in tools.items() if self._first.get(name) != tool.definition
        )
        state.held = state.changed if self._entry.pin else ()
        state.tools = tuple(tool for name, tool in tools.items() if name not in state.held)
        if new := [f"{name}: {why}" for name, why in self._unfit.items() if name not in state.skipped]:
            _log.warning(
                "tools of the MCP server %r are left out: %s", self._entry.name, "; ".join(new[:_MOST])
            )
        state.skipped, state.was_listed = dict(self._unfit), True

    async def _has_resources(self, client: Client) -> bool:
        if client.server_capabilities.resources is None:
            return False
        with suppress(MCPError, ValueError), anyio.move_on_after(_SECONDS):
            if (await client.list_resources()).resources:
                return True
            return bool((await client.list_resource_templates()).resource_templates)
        return False


async def read_pages(list_page: Callable[..., Awaitable[Any]], rows: str) -> list[Any]:
    """Go through the pages of a list, which need not end."""
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(offered.MOST_PAGES):
        page = await list_page(cursor=cursor)
        found += getattr(page, rows)
        cursor = page.next_cursor
        if cursor is None or len(found) >= offered.MOST_TOOLS:
            break
    return found
