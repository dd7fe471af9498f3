"""Offer a set of servers to agents and programs: their tools, resources, prompts and state."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any, Final, Self

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.tools import BaseTool
from langgraph.errors import GraphInterrupt
from langgraph.types import interrupt

from deepagents._async import in_thread, sync_and_async
from deepagents._state.programs import can_ask
from deepagents._state.runtime import emit_anywhere, in_graph, is_saved, place_of_agent
from deepagents.errors import ConfigError, ToolFailure
from deepagents.mcp.core import Core
from deepagents.mcp.entries import ServerEntry, Servers, read_entries
from deepagents.mcp.names import PREFIX, may_name_tool, tool_name
from deepagents.mcp.offered import Offered
from deepagents.mcp.status import ServerLimits, ServerStatus, State, describe_held, describe_missing, show
from deepagents.mcp.tools import CallResult, MCPTool, make_resource_tools

_SDK: Final = "mcp"


class MCPServers:
    """Servers of the Model Context Protocol, which start when they are first used.

    Agents that share an `MCPServers` share its servers, whatever threads and event loops they run in. They
    end with `close`, with a `with` block, with the program, and when the last who uses them is gone.

    Args:
        servers: the path of a file such as `.mcp.json`, or a mapping as it stands in one; a value may also be
            a server object of this process.
        startup_timeout: seconds that a server may take until it has listed its tools.
        call_timeout: seconds that a call may take, anew with each progress report, up to ten times that. An
            entry's `timeout`, in milliseconds, goes before.
        roots: directories, or `file:` addresses, that servers may ask for.
        auth: how to sign in to a server over HTTP, by its name: an `httpx2.Auth`, such as the SDK's
            `OAuthClientProvider`.
        max_message_bytes: the largest message that is read.

    Raises:
        ConfigError: for an entry that cannot be, naming it; and without the package `mcp`.
    """

    def __init__(
        self,
        servers: Servers,
        *,
        startup_timeout: float = 30.0,
        call_timeout: float = 300.0,
        roots: Sequence[str | os.PathLike[str]] = (),
        auth: Mapping[str, Any] | None = None,
        max_message_bytes: int = 16 * 2**20,
    ) -> None:
        if find_spec(_SDK) is None:
            raise ConfigError(
                "MCP servers need the package 'mcp': pip install '.[mcp]' in a checkout of deepagents, or "
                "leave out mcp="
            )
        bounds = {"startup_timeout": startup_timeout, "call_timeout": call_timeout}
        for name, value in {**bounds, "max_message_bytes": max_message_bytes}.items():
            if value <= 0:
                raise ConfigError(f"{name} must be more than 0, got {value!r}")
        self._entries = read_entries(servers)
        self._auth = dict(auth or {})
        if unknown := sorted(self._auth.keys() - {each.name for each in self._entries}):
            raise ConfigError(f"auth names {unknown[0]!r}, and there is no MCP server of that name")
        given = [roots] if isinstance(roots, str | os.PathLike) else roots
        self._limits = ServerLimits(
            startup_timeout, call_timeout, max_message_bytes, [os.fspath(each) for each in given]
        )
        self._tools: list[BaseTool] = []
        self._made: dict[str, tuple[Offered, MCPTool]] = {}
        self._resource_tools: list[BaseTool] = []
        self._version = -1
        self._core = self._make_core()

    def _make_core(self) -> Core:
        core = Core(self._entries, self._limits, self._auth)
        # No waiting where garbage is collected: that may be any thread, at any moment.
        weakref.finalize(self, core.begin_end).atexit = False
        return core

    def _own_core(self) -> Core:
        if self._core.pid != os.getpid():
            # A fork has no thread of its parent's, and must leave its parent's servers alone.
            self._core, self._version = self._make_core(), -1
        return self._core

    def __repr__(self) -> str:
        return f"MCPServers({', '.join(repr(each.name) for each in self._entries)})"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        await self.astart()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def status(self) -> dict[str, ServerStatus]:
        """Return how it is with each server, by its name; this starts nothing and waits for nothing."""
        return {name: show(name, state) for name, state in self._own_core().states.items()}

    def may_name_tool(self, name: str) -> bool:
        """Return whether a name, or a pattern with `*`, can be that of a tool of these servers."""
        return any(may_name_tool(name, each.name) for each in self._entries)

    async def _start(self) -> None:
        """Start all servers that are not there, and wait until each is, or is known not to be."""
        core = self._own_core()
        await core.call(core.start)

    start, astart = sync_and_async(_start)

    async def _close(self) -> None:
        """Close all servers and end what they started, within ten seconds. They cannot be started again."""
        core = self._own_core()
        await in_thread(core.end)

    close, aclose = sync_and_async(_close)

    async def _list_tools(self) -> list[BaseTool]:
        """Return the tools of all servers that are there, in the order of the entries.

        The first call starts the servers. The list is the same object for as long as nothing changed.

        Raises:
            ToolFailure: `not_supported`, once they are closed.
        """
        if self._own_core().is_closed:
            raise ToolFailure("not_supported", "the MCP servers are closed")
        return await self.offer()

    tools, atools = sync_and_async(_list_tools)

    async def offer(self) -> list[BaseTool]:
        """Return the same tools to an agent, whose run goes on when the servers are closed: none, then."""
        core = self._own_core()
        if core.is_closed:
            return []
        if not core.is_settled:
            await core.call(core.settle)
        version = core.version
        if version != self._version:
            made = self._make_tools(core.states)
            # The same object while it holds the same: layers keep what they worked out for it.
            if [id(each) for each in made] != [id(each) for each in self._tools]:
                self._tools = made
            self._version = version
        return self._tools

    def _make_tools(self, states: Mapping[str, State]) -> list[BaseTool]:
        made: dict[str, BaseTool] = {}
        for entry in self._entries:
            for offered in states[entry.name].tools:
                tool = self._make_tool(entry, offered)
                made.setdefault(tool.name, tool)
        if any(state.resources for state in states.values()):
            if not self._resource_tools:
                self._resource_tools = make_resource_tools(self)
            made.update({each.name: each for each in self._resource_tools})
        return [*made.values()]

    def _make_tool(self, entry: ServerEntry, offered: Offered) -> MCPTool:
        name = tool_name(entry.name, offered.name)
        known, tool = self._made.get(name, (None, None))
        if tool is not None and known == offered:
            return tool
        about = {"name": offered.name, "annotations": offered.annotations, "_meta": offered.meta}
        tool = MCPTool(
            name=name,
            description=offered.description,
            args_schema=dict(offered.schema),
            metadata={"mcp": {"server": {"name": entry.name}, "tool": about}},
            extras=None if entry.defer is None else {"defer_loading": entry.defer},
            call=partial(self._call, name, entry.name, offered.name),
        )
        self._made[name] = offered, tool
        return tool

    async def end_abandoned(self) -> None:
        """End calls whose question got no answer: the running agent, which has asked its model, went on."""
        core = self._own_core()
        if core.has_waiting and not core.is_closed:
            await core.call(partial(core.abandon, *place_of_agent()))

    async def find_tool(self, name: str) -> BaseTool | None:
        """Return the tool of this name, once all servers are there that will be.

        Raises:
            ToolFailure: when a server that may have it is not there, saying why.
        """
        found = next((each for each in await self.offer() if each.name == name), None)
        if found is not None or not name.startswith(PREFIX):
            return found
        core = self._own_core()
        for entry in self._entries:
            state = core.states[entry.name]
            if not may_name_tool(name, entry.name):
                continue
            if held := [each for each in state.held if tool_name(entry.name, each) == name]:
                raise ToolFailure("not_supported", describe_held(entry.name, held[0]))
            if state.status == "stopped":
                raise ToolFailure("not_supported", describe_missing(entry.name, state))
            if state.status != "ready" and not state.was_listed:
                raise ToolFailure("remote_failed", describe_missing(entry.name, state))
        return None

    async def _call(
        self, name: str, server: str, tool: str, arguments: dict[str, Any], call_id: str | None
    ) -> tuple[Any, Any]:
        """Call a tool, and put what its server asks meanwhile to a person, where a thread is kept."""
        core = self._own_core()
        thread, place = place_of_agent()
        can_wait = call_id is not None and in_graph() and is_saved() and can_ask()
        key = (thread, place, call_id or "") if can_wait else None
        emit = emit_anywhere()

        def report(progress: float, total: float | None, message: str | None) -> None:
            emit(
                "tool_progress",
                call_id=call_id or "",
                name=name,
                progress=progress,
                total=total,
                message=message,
            )

        begin = partial(core.begin, key, server, tool, arguments, thread, report)
        call = await core.call(begin)
        try:
            number = 0
            while True:
                found = await core.call(partial(call.reach, number))
                if isinstance(found, CallResult):
                    return found.content, found.artifact
                # The first time this stops the run; it goes on here, with the answer, when it is made again.
                given = interrupt(found.question(server, tool))
                await core.call(partial(core.answer, found, given))
                number += 1
        except GraphInterrupt:
            assert key is not None
            await core.call(partial(core.keep, key, call))
            raise
        except BaseException:
            core.forget(call)
            raise

    async def _list_resources(self, server: str | None = None) -> list[dict[str, Any]]:
        """Return the resources of one server, or of all that are there, each with its `server`.

        Templates, whose `uriTemplate` has to be filled in, come after the resources of a server.

        Raises:
            ToolFailure: `invalid_argument` for a server that is not there; other codes when it fails.
        """
        return await self._gather(server, "resources", "resources", "resource_templates")

    resources, aresources = sync_and_async(_list_resources)

    async def _list_prompts(self, server: str | None = None) -> list[dict[str, Any]]:
        """Return the prompts of one server, or of all that are there, each with its `server`.

        Raises:
            ToolFailure: `invalid_argument` for a server that is not there; other codes when it fails.
        """
        return await self._gather(server, "prompts", "prompts")

    prompts, aprompts = sync_and_async(_list_prompts)

    async def _gather(self, server: str | None, *listed: str) -> list[dict[str, Any]]:
        core = self._own_core()
        await self.offer()
        ready = [name for name, state in core.states.items() if state.status == "ready"]
        found: list[dict[str, Any]] = []
        for name in ready if server is None else [server]:
            rows = await core.call(partial(core.ask, name, "list_rows", *listed))
            found += [{**row, "server": name} for row in rows]
        return found

    async def _read_resource(self, server: str, uri: str) -> list[dict[str, Any]]:
        """Return what is in a resource, as content blocks.

        Raises:
            ToolFailure: `invalid_argument` for a server that is not there; other codes when it fails.
        """
        core = self._own_core()
        return await core.call(partial(core.ask, server, "read_resource", uri))

    read_resource, aread_resource = sync_and_async(_read_resource)

    async def _get_prompt(
        self, server: str, name: str, arguments: Mapping[str, str] | None = None
    ) -> list[AnyMessage]:
        """Return the messages of a prompt.

        Raises:
            ToolFailure: `invalid_argument` for a server that is not there; other codes when it fails.
        """
        core = self._own_core()
        rows = await core.call(partial(core.ask, server, "get_prompt", name, dict(arguments or {})))
        kinds = {"user": HumanMessage, "assistant": AIMessage}
        return [kinds[role](content=content) for role, content in rows]

    get_prompt, aget_prompt = sync_and_async(_get_prompt)


def open_servers(given: MCPServers | Servers | None) -> MCPServers | None:
    """Return what `mcp=` means: servers, or none."""
    if given is None or isinstance(given, MCPServers):
        return given
    return MCPServers(given) if given else None
