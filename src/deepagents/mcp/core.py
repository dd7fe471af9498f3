"""Hold the servers of one set in this process: a loop, connections, and calls that wait."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from deepagents._async import Coro, IOCall
from deepagents.errors import ToolFailure
from deepagents.mcp.entries import ServerEntry
from deepagents.mcp.loop import LoopThread, T
from deepagents.mcp.status import ServerLimits, State

if TYPE_CHECKING:
    from deepagents.mcp.calls import Batch, Call
    from deepagents.mcp.connection import Connection

Key: TypeAlias = tuple[str | None, str, str]
"""Which call it is: its thread, the agent in it, and its id."""

_MOST_WAITING: Final = 100
_SECONDS_AT_END: Final = 12.0


class Core:
    """The servers of one set. It knows nothing of who uses them, so that it ends with the last who does."""

    def __init__(self, entries: Sequence[ServerEntry], limits: ServerLimits, auth: Mapping[str, Any]) -> None:
        self.pid = os.getpid()
        self.version = 0
        self.entries, self._limits, self._auth = entries, limits, auth
        self._connections: dict[str, Connection] = {}
        self._waiting: dict[Key, Call] = {}
        self._loop = LoopThread()
        # Taken again where garbage is collected meanwhile, which may end these servers.
        self._lock = threading.RLock()
        self._closed = False

    @property
    def states(self) -> Mapping[str, State]:
        """What is known of each server; of those that are not connected yet, nothing."""
        known = dict(self._connections)
        return {
            each.name: known[each.name].state
            if each.name in known
            else State(each.transport, "stopped" if self._closed or each.disabled else "idle")
            for each in self.entries
        }

    @property
    def is_closed(self) -> bool:
        """Whether the servers were closed."""
        return self._closed

    @property
    def is_settled(self) -> bool:
        """Whether there is nothing to do before a request: all started, no list changed."""
        known = list(self._connections.values())
        return self._closed or (
            len(known) == len(self.entries)
            and not any(each.is_awaited or each.needs_start or each.state.is_stale for each in known)
        )

    def call(self, work: Callable[[], Coro[T]]) -> IOCall[T]:
        """Make a call of work in the loop of the servers.

        Raises:
            ToolFailure: `not_supported`, when they are closed.
        """
        if self._closed:
            raise ToolFailure("not_supported", "the MCP servers are closed")
        return self._loop.call(lambda: self._connected(work))

    async def _connected(self, work: Callable[[], Coro[T]]) -> T:
        if not self._connections:
            # It imports the SDK, which takes half a second: here, where no one else waits in the same loop.
            module = import_module("deepagents.mcp.connection")
            made = {
                each.name: module.Connection(each, self._limits, self._auth.get(each.name), self._note_change)
                for each in self.entries
            }
            with self._lock:
                if not self._closed:
                    self._connections = made
                    atexit.register(self.end)
        return await work()

    def _note_change(self) -> None:
        self.version += 1

    async def start(self) -> None:
        """Start all servers that are not there, at the same time, and wait until each is, or is not."""
        await asyncio.gather(*(each.start() for each in self._connections.values()))

    async def settle(self) -> None:
        """Start what was never started, and list again what changed; what failed is tried without waiting."""
        work: list[Coro[None]] = []
        for each in self._connections.values():
            if each.is_awaited:
                work.append(each.start())
            elif each.needs_start:
                each.begin()
            elif each.state.is_stale:
                work.append(each.refresh())
        await asyncio.gather(*work)

    def connection(self, name: str) -> Connection:
        """Return the connection of a server.

        Raises:
            ToolFailure: `invalid_argument`, when there is no server of this name.
        """
        if name not in self._connections:
            known = ", ".join(repr(each) for each in self._connections) or "none"
            raise ToolFailure("invalid_argument", f"there is no MCP server {name!r}; there is {known}")
        return self._connections[name]

    async def begin(
        self,
        key: Key | None,
        server: str,
        tool: str,
        arguments: dict[str, Any],
        who: str | None,
        report: Callable[[float, float | None, str | None], None],
    ) -> Call:
        """Begin a call, or go on with the one of this key that waits for a person's answer.

        Without a key no person can be asked.
        """
        if key is not None and (waiting := self._waiting.pop(key, None)) is not None:
            waiting.report = report
            return waiting
        connection = self.connection(server)
        seconds = connection.entry.timeout or self._limits.call_timeout
        calls = import_module("deepagents.mcp.calls")
        call: Call = calls.Call(connection.entry, tool, seconds, who, key is not None, report)
        call.start(lambda call: connection.call(call, tool, arguments))
        return call

    async def keep(self, key: Key, call: Call) -> None:
        """Keep a call that waits for a person, until it is made again; too many, and the oldest ends."""
        # What reports hold is the run that stops here.
        call.report = _report_nothing
        self._waiting[key] = call
        while len(self._waiting) > _MOST_WAITING:
            self._waiting.pop(next(iter(self._waiting))).cancel()

    @property
    def has_waiting(self) -> bool:
        """Whether any call waits for a person."""
        return bool(self._waiting)

    async def abandon(self, thread: str | None, place: str) -> None:
        """End the calls that wait for a person in an agent, and below it, that has gone on without them."""
        below = f"{place}|" if place else ""
        for key in [*self._waiting]:
            if key[0] == thread and (key[1] == place or key[1].startswith(below)):
                self._waiting.pop(key).cancel()

    async def answer(self, batch: Batch, given: Any) -> None:
        """Answer questions of a server."""
        batch.answer(given)

    async def ask(self, server: str, work: str, *arguments: Any) -> Any:
        """Let a server do something else than call a tool: a method of its connection, by name."""
        return await getattr(self.connection(server), work)(*arguments)

    def forget(self, call: Call) -> None:
        """End a call that no one waits for any longer."""
        self._loop.tell(call.cancel)

    async def close(self) -> None:
        """Close all servers, at the same time."""
        await asyncio.gather(*(each.close() for each in self._connections.values()))

    def begin_end(self) -> threading.Thread | None:
        """Begin to close everything, and return the thread that does it; in a fork, do nothing."""
        with self._lock:
            if self._closed or self.pid != os.getpid():
                return None
            self._closed = True
        atexit.unregister(self.end)
        self.version += 1
        return self._loop.stop(self.close)

    def end(self) -> None:
        """Close everything and wait for that."""
        thread = self.begin_end()
        if thread is not None and thread is not threading.current_thread():
            thread.join(_SECONDS_AT_END)


def _report_nothing(_: float, __: float | None, ___: str | None) -> None:
    """Pass no progress on: no one hears it."""
