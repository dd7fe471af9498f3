"""Hold one server: open, list, call, close, all in the loop of its set."""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from contextvars import Context
from pathlib import Path
from time import monotonic
from typing import Any, Final, Literal, TypeVar

import anyio
import httpx2
from mcp import Client, types
from mcp.client.session import ClientRequestContext
from mcp.shared.exceptions import MCPError

from deepagents._version import __version__
from deepagents.errors import ToolFailure
from deepagents.mcp import calls, http, stdio, wire
from deepagents.mcp.calls import Call
from deepagents.mcp.entries import ServerEntry
from deepagents.mcp.listing import Listing, read_pages
from deepagents.mcp.results import check_output, read_block, read_resource, read_result
from deepagents.mcp.status import ServerLimits, State, describe_held, describe_missing
from deepagents.mcp.tools import CallResult

T = TypeVar("T")

_RETRY: Final = 30.0
"""Seconds after which a server that did not start is tried again."""
_RESTARTS: Final = 3
_PER: Final = 60.0
_SECONDS_TO_CLOSE: Final = 5.0
_SECONDS_TO_NOTICE: Final = 0.2
_LISTEN_AGAIN: Final = 5.0
_log = logging.getLogger(__name__)


class Connection:
    """One server; `state` is what others may read of it, from any thread."""

    def __init__(
        self, entry: ServerEntry, limits: ServerLimits, auth: Any, changed: Callable[[], None]
    ) -> None:
        self.entry = entry
        self.state = State(entry.transport, "stopped" if entry.disabled else "idle")
        self._limits, self._auth, self._changed = limits, auth, changed
        self._client: Client | None = None
        self._life: asyncio.Task[None] | None = None
        self._opened = asyncio.Event()
        self._ended = asyncio.Event()
        self._scope: anyio.CancelScope | None = None
        self._why = ""
        self._listing = Listing(entry, self.state)
        self._restarts: deque[float] = deque(maxlen=_RESTARTS)
        self._refreshing = asyncio.Lock()
        self._running: set[Call] = set()

    @property
    def needs_start(self) -> bool:
        """Whether it was never started, or may be tried again after it did not start."""
        state = self.state
        return state.status == "idle" or (state.status == "failed" and monotonic() >= state.retry_at)

    @property
    def is_awaited(self) -> bool:
        """Whether a request waits until it is there: it is on its way, and has never failed."""
        return self.state.status in ("idle", "starting") and not self.state.retry_at

    async def start(self) -> None:
        """Start the server, unless it is there; wait until it is, or is known not to be."""
        self.begin()
        if self._life is not None:
            await self._opened.wait()

    def begin(self) -> None:
        """Begin to start the server, unless it is there or on its way."""
        if self.state.status == "stopped" or (self._life is not None and not self._life.done()):
            return
        self._opened = asyncio.Event()
        self._set("starting")
        # An empty context: this task lives as long as the server, and would keep alive what made it.
        self._life = asyncio.get_running_loop().create_task(self._live(), context=Context())

    async def _live(self) -> None:
        deadline = anyio.current_time() + self._limits.startup_timeout
        problem: BaseException | None = None
        try:
            for mode in ("auto",) if self.entry.transport == "http" else ("legacy", "auto"):
                problem = await self._hold(mode, deadline)
                # A server of the newest revisions alone refuses the handshake so.
                if not (isinstance(problem, MCPError) and problem.code == types.UNSUPPORTED_PROTOCOL_VERSION):
                    break
        finally:
            was_ready, self._client = self._opened.is_set(), None
            if self.state.status != "stopped":
                text = self._why or self._describe(problem, was_ready)
                self.state.retry_at = math.inf if was_ready else monotonic() + _RETRY
                self._set("failed", error=calls.describe(self.entry, text, 1_000))
            self._opened.set()

    async def _hold(self, mode: str, deadline: float) -> BaseException | None:
        """Open a connection and hold it until it ends; return why it could not be opened, or broke."""
        self._why = ""
        self._ended = asyncio.Event()
        try:
            with anyio.CancelScope(deadline=deadline) as self._scope:
                async with self._make_client(mode) as client:
                    await self._listing.read(client)
                    self._scope.deadline = math.inf
                    self._client = client
                    self._set("ready", protocol=client.protocol_version)
                    self._opened.set()
                    await self._wait_for_end(client)
        # Whatever a transport raises is why the server cannot be used, and nothing else.
        except Exception as error:  # noqa: BLE001
            _log.debug("the connection to the MCP server %r broke", self.entry.name, exc_info=True)
            return calls.innermost(error)
        return None

    def _describe(self, problem: BaseException | None, was_ready: bool) -> str:
        if isinstance(problem, httpx2.HTTPStatusError):
            return http.describe_status(problem.response.status_code)
        if problem is not None:
            return str(problem) or type(problem).__name__
        if was_ready:
            return "its connection ended"
        return f"it did not start within {self._limits.startup_timeout:g} seconds"

    def _make_client(self, mode: str) -> Client:
        roots = [_root(each) for each in self._limits.roots]

        async def list_roots(context: ClientRequestContext) -> types.ListRootsResult:
            return types.ListRootsResult(roots=roots)

        return Client(
            self.entry.server if self.entry.server is not None else self._open_transport(),
            mode=mode,
            cache=None,
            client_info=types.Implementation(name="deepagents", version=__version__),
            elicitation_callback=self._ask,
            list_roots_callback=list_roots if roots else None,
            message_handler=self._hear,
        )

    def _open_transport(self) -> AbstractAsyncContextManager[Any]:
        most = self._limits.max_message_bytes
        if self.entry.transport == "stdio":
            return stdio.open_process(self.entry, most, self._listing.leave_out, self._end)
        return wire.watch(
            http.open_http(self.entry, self._auth, most, self._listing.leave_out, self._end), self._end
        )

    def _end(self, why: str) -> None:
        self._why = self._why or why
        self._ended.set()

    async def _wait_for_end(self, client: Client) -> None:
        capability = client.server_capabilities.tools
        if client.session.discover_result is None or capability is None or not capability.list_changed:
            await self._ended.wait()
            return
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._listen, client)
            await self._ended.wait()
            tasks.cancel_scope.cancel()

    async def _listen(self, client: Client) -> None:
        """Hear of changed lists from servers of the newest revisions, which tell only who listens."""
        while True:
            with suppress(MCPError, RuntimeError, TimeoutError):
                await self._note_changes(client)
            # What changed meanwhile was not heard.
            self.state.is_stale = True
            await asyncio.sleep(_LISTEN_AGAIN)

    async def _note_changes(self, client: Client) -> None:
        async with client.listen(tools_list_changed=True) as subscription:
            async for _ in subscription:
                self.state.is_stale = True

    async def _hear(self, message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            # Nothing more: a hundred notices cost one list, when the next request needs it.
            self.state.is_stale = True

    async def _ask(self, context: ClientRequestContext, params: Any) -> types.ElicitResult:
        call = calls.current.get() or self._only_call()
        if call is None:
            return types.ElicitResult(action="cancel")
        return await call.ask(str(context.request_id), params)

    def _only_call(self) -> Call | None:
        """Return the call that a question is about, which older servers do not say.

        With calls of several runs under way it might be anyone's, and goes to none.
        """
        running = list(self._running)
        return running[-1] if len({call.who for call in running}) == 1 else None

    async def refresh(self) -> None:
        """List the tools again; a server that does not answer in time keeps those that it had."""
        async with self._refreshing:
            await self._refresh()

    async def _catch_up(self) -> None:
        # A call at the same time may have begun to list, and does not know the new tools yet.
        async with self._refreshing:
            if self.state.is_stale:
                await self._refresh()

    async def _refresh(self) -> None:
        client, self.state.is_stale = self._client, False
        if client is None:
            return
        await self._listing.read_again(client)
        self._changed()

    async def ready(self) -> Client:
        """Return the open connection; a server that ended is started again, three times in a minute.

        Raises:
            ToolFailure: when it is not there.
        """
        if self.state.status == "stopped":
            raise ToolFailure("not_supported", f"the MCP server {self.entry.name!r} is closed")
        if self._ended.is_set():
            await self._is_over()
        if self._client is None:
            if self.state.was_listed and self.state.status == "failed":
                self._count_restart()
            await self.start()
        if self._client is None:
            raise ToolFailure("remote_failed", describe_missing(self.entry.name, self.state))
        return self._client

    def _count_restart(self) -> None:
        now = monotonic()
        if len(self._restarts) == _RESTARTS and now - self._restarts[0] < _PER:
            raise ToolFailure(
                "remote_failed",
                f"the MCP server {self.entry.name!r} ended {_RESTARTS} times within a minute, and is not "
                f"started again yet: {self.state.error}",
            )
        self._restarts.append(now)

    async def call(self, call: Call, tool: str, arguments: dict[str, Any]) -> CallResult:
        """Call a tool; a call in which the connection ends is never made again.

        Raises:
            ToolFailure: with the code of what went wrong.
        """
        self._running.add(call)
        try:
            client = await self.ready()
            if self.entry.pin:
                await self._catch_up()
            # Only now: a server that was started again, or says that its list changed, may have another tool.
            if tool in self.state.held:
                raise ToolFailure("not_supported", describe_held(self.entry.name, tool))
            mended = wire.mend_halves(arguments)
            answer = client.call_tool(tool, mended, progress_callback=call.progress)
            result = await self.guarded(answer)
            offered = next((each for each in self.state.tools if each.name == tool), None)
            if offered is not None and offered.output is not None:
                # In a thread: all servers share this loop.
                await asyncio.to_thread(check_output, self.entry, offered, result)
            return read_result(self.entry, tool, result)
        finally:
            self._running.discard(call)

    async def ask(self, work: Callable[[Client], Awaitable[T]]) -> T:
        """Do something else with the server, within the time of a call.

        Raises:
            ToolFailure: with the code of what went wrong.
        """
        client = await self.ready()
        seconds = self.entry.timeout or self._limits.call_timeout
        with anyio.move_on_after(seconds):
            return await self.guarded(work(client))
        raise ToolFailure(
            "timeout", f"the MCP server {self.entry.name!r} did not answer in {seconds:g} seconds"
        )

    async def list_rows(self, capability: str, *kinds: str) -> list[dict[str, Any]]:
        """Return all of these kinds that a server with this capability lists, as rows of the protocol."""

        async def work(client: Client) -> list[dict[str, Any]]:
            if getattr(client.server_capabilities, capability) is None:
                return []
            rows = [row for kind in kinds for row in await read_pages(getattr(client, f"list_{kind}"), kind)]
            return [each.model_dump(by_alias=True, mode="json", exclude_none=True) for each in rows]

        return await self.ask(work)

    async def read_resource(self, uri: str) -> list[dict[str, Any]]:
        """Return what is in a resource, as blocks."""
        found = await self.ask(lambda client: client.read_resource(uri))
        return [read_resource(each) for each in found.contents]

    async def get_prompt(self, name: str, arguments: dict[str, str]) -> list[tuple[str, Any]]:
        """Return the messages of a prompt: who says it, and the content."""
        found = await self.ask(lambda client: client.get_prompt(name, arguments))
        return [(each.role, [read_block(each.content)]) for each in found.messages]

    async def guarded(self, work: Awaitable[T]) -> T:
        """Await an answer, and turn what goes wrong into a failure with a code."""
        try:
            return await work
        # Servers, transports and the SDK raise what they like; all of it is the server's failure.
        except Exception as error:
            found = calls.innermost(error)
            is_closed = isinstance(found, MCPError) and found.code == types.CONNECTION_CLOSED
            if is_closed and await self._is_over():
                raise ToolFailure("remote_failed", self._describe_loss()) from error
            if calls.data_of(found).get(http.STATUS) == 404:
                # The server forgot the session: the next call opens another.
                self._end(str(found))
            raise calls.explain(self.entry, found) from error

    async def _is_over(self) -> bool:
        """Return whether the connection has ended, once it is known why: servers use the code as well."""
        if self._life is None:
            return True
        seconds = _SECONDS_TO_CLOSE if self._ended.is_set() else _SECONDS_TO_NOTICE
        await asyncio.wait({self._life}, timeout=seconds)
        return self._life.done()

    def _describe_loss(self) -> str:
        if self.state.status == "stopped":
            return f"the MCP server {self.entry.name!r} was closed during this call"
        return (
            f"the MCP server {self.entry.name!r} ended during this call, which may or may not have taken "
            f"effect: {self.state.error}"
        )

    async def close(self) -> None:
        """Close the connection and end the server, within ten seconds."""
        self._set("stopped")
        for call in list(self._running):
            call.cancel()
        self._ended.set()
        life = self._life
        if life is None or life.done():
            return
        if self._client is None and self._scope is not None:
            self._scope.cancel()
        for _ in range(2):
            await asyncio.wait({life}, timeout=_SECONDS_TO_CLOSE)
            if not life.done() and self._scope is not None:
                # Not the task: that would break through the shields under which transports end processes.
                self._scope.cancel()

    def _set(self, status: Literal["starting", "ready", "failed", "stopped"], **more: Any) -> None:
        state = self.state
        state.error = None
        for name, value in more.items():
            setattr(state, name, value)
        state.status = status
        self._changed()


def _root(given: str) -> types.Root:
    uri = given if "://" in given else Path(given).expanduser().absolute().as_uri()
    return types.Root(uri=uri, name=Path(given).name or None)  # pyright: ignore[reportArgumentType]
