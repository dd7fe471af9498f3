"""Listen: the server behind uvicorn."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import nullcontext
from functools import lru_cache, partial
from typing import Any, Final

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from deepagents_server.api import create_app
from deepagents_server.api.common import SECURE
from deepagents_server.config import ServerConfig
from deepagents_server.crons import scheduling
from deepagents_server.database.place import show_address
from deepagents_server.database.runs import move_runs
from deepagents_server.errors import ServeError
from deepagents_server.retention import removing_old
from deepagents_server.server import Server, Settings, open_server

_REFUSED: Final = "ASGI callable returned without completing handshake."
_HEAD_ENDS: Final = re.compile(rb"\r?\n\r?\n")
_FOR_HEAD: Final = 10.0
"""Seconds in which the first line and the headers of a request must have arrived."""
_LOOPBACK: Final = (bytes((127, 0, 0, 1)), bytes(8))
_MAX_HEAD: Final = 65536
"""Bytes of the first line and the headers of a request."""


class BoundedProtocol(H11Protocol):
    """HTTP of a connection; a request that does not arrive in time closes it.

    Of h11, also where a faster parser is installed: uvicorn bounds headers only there.
    """

    patience = 60.0
    of_address = 500
    of_loopback = sys.maxsize
    _overdue: asyncio.TimerHandle | None = None
    _expected: Any = None

    def connection_made(self, transport: Any) -> None:
        """Expect a request, if there is room for those of this address."""
        super().connection_made(transport)
        mine = _origin(self)
        bound = self.of_loopback if mine in _LOOPBACK else self.of_address
        if sum(_origin(each) == mine for each in self.connections) > bound:
            self._close(503, "There are too many connections from your address; close some, or wait.")
        self._expect()

    def data_received(self, data: bytes) -> None:
        """Read, and go on expecting until the request is whole."""
        # h11 bounds what it waits for; a head that comes at once would pass, however large it is.
        if self.conn.their_state is h11.IDLE and _has_large_head(self.conn.trailing_data[0] + data):
            self._close(431, f"The first line and the headers may have {_MAX_HEAD:,} bytes.")
            return
        super().data_received(data)
        self._expect()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Let a WebSocket begin, if there is room for it: uvicorn counts those of requests only."""
        if self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency:
            self._close(503, "There are too many connections; try again soon.")
        else:
            super().handle_websocket_upgrade(event)

    def connection_lost(self, exc: Exception | None) -> None:
        """Expect nothing any more."""
        super().connection_lost(exc)
        self._forget()

    def _expect(self) -> None:
        arrives = self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
        if not arrives or self.transport.is_closing():
            self._forget()
        elif self._overdue is None or self._expected is not self.conn.their_state:
            self._forget()
            self._expected = self.conn.their_state
            seconds = min(self.patience, _FOR_HEAD) if self._expected is h11.IDLE else self.patience
            self._overdue = self.loop.call_later(seconds, self._give_up, seconds)

    def _forget(self) -> None:
        if self._overdue:
            self._overdue.cancel()
            self._overdue = None

    def _give_up(self, seconds: float) -> None:
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._close(408, f"The request did not arrive within {seconds:.0f} seconds.")
        if self.cycle:
            # What still answers is to write nothing behind this.
            self.cycle.disconnected = True
        self.transport.close()

    def _close(self, status: int, text: str) -> None:
        headers = [("content-type", "text/plain"), ("connection", "close"), *SECURE.items()]
        body = h11.Data(data=text.encode())
        parts = (h11.Response(status_code=status, headers=headers), body, h11.EndOfMessage())
        self.transport.write(b"".join(self.conn.send(part) or b"" for part in parts))
        self.transport.close()


def _origin(connection: Any) -> bytes:
    """Return where a connection comes from: its address, or the network of one customer of IPv6."""
    host, *_ = connection.client or ("",)
    return _network(host)


@lru_cache(4096)
def _network(host: str) -> bytes:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host.encode()
    if isinstance(address, ipaddress.IPv6Address):
        return address.ipv4_mapped.packed if address.ipv4_mapped else address.packed[:8]
    return address.packed


def _has_large_head(data: bytes) -> bool:
    return len(data) > _MAX_HEAD and _HEAD_ENDS.search(data, 0, _MAX_HEAD + 4) is None


def check_host(host: str, *, trusted: bool) -> None:
    """Refuse to listen where others could reach agents without a key.

    Raises:
        ServeError: for another address than loopback.
    """
    try:
        is_loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback and not trusted:
        raise ServeError(
            f"{host!r} can be reached by others, and this server asks nobody for a key; make one with "
            "`deepagents keys create NAME`, leave --host out, or, if everybody who reaches it may run your "
            "agents, add --allow-anyone."
        )


async def serve(
    config: ServerConfig, settings: Settings, host: str, port: int, ready: Callable[[str], None]
) -> None:
    """Answer requests until the process is asked to end; `ready` gets the address.

    Raises:
        ServeError: if there is nothing to serve, or nowhere to listen.
    """
    async with open_server(config, settings) as server, scheduling(server), removing_old(server):
        check_host(host, trusted=settings.allow_anyone or server.engine.has_owners)
        with listen(host, port) as listening:
            shown = f"[{host}]" if ":" in host else host
            answering = listener(server, settings)
            # uvicorn raises a signal once more when it has ended, and that must not cut off what follows.
            _on_signals(partial(setattr, answering, "should_exit", True))
            ready(f"http://{shown}:{listening.getsockname()[1]}")
            await answering.serve([listening])


async def work(
    config: ServerConfig,
    settings: Settings,
    ready: Callable[[str], None],
    move_from: str | None = None,
    metrics: tuple[str, int] | None = None,
) -> None:
    """Run agents for the servers of a database until the process is asked to end.

    With `move_from`, runs that were left to another version of the code go on with this one. `metrics` is
    the address at which they are shown.

    Raises:
        ServeError: if the database cannot be shared.
    """
    if settings.database.split(":")[0] not in ("postgresql", "postgres"):
        raise ServeError(
            "Workers share a PostgreSQL, as postgresql://USER@HOST/NAME, not "
            f"{show_address(settings.database)}."
        )
    over = asyncio.Event()
    async with open_server(config, settings) as server:
        # For the runs that work here: nobody else reaches it.
        create_app(server, settings)
        _on_signals(over.set)
        if move_from is not None:
            await move_runs(server.database, settings.version, move_from)
        with server.metrics.shown_at(metrics) if metrics else nullcontext():
            ready(server.engine.worker)
            await over.wait()


def _on_signals(end: Callable[[], None]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, end)


def listener(server: Server, settings: Settings) -> uvicorn.Server:
    """Make what takes connections."""
    given = settings.connections_per_address
    bounds = {
        "patience": settings.patience,
        "of_address": given or max(1, settings.connections // 2),
        # A proxy of this machine, or its own programs: what is open in all bounds them.
        "of_loopback": given or sys.maxsize,
    }
    http = type("Bounded", (BoundedProtocol,), bounds)
    logging.getLogger("uvicorn.error").addFilter(_is_a_failure)
    answering = uvicorn.Server(
        uvicorn.Config(
            create_app(server, settings),
            # Ours has none; `http.app` of a user may.
            lifespan="on" if server.config.http.get("app") else "off",
            # It logs where all others do.
            log_config=None,
            access_log=False,
            timeout_keep_alive=30,
            # Open streams do not keep a server from ending; their clients come back with the last event.
            timeout_graceful_shutdown=3,
            server_header=False,
            http=http,
            ws="websockets-sansio",
            ws_max_size=settings.max_body,
            ws_per_message_deflate=False,
            h11_max_incomplete_event_size=_MAX_HEAD,
            # Each open stream is a connection, and so is a client that keeps one for its next request.
            limit_concurrency=settings.connections,
        )
    )
    server.metrics.connections.set_function(lambda: len(answering.server_state.connections))
    return answering


def _is_a_failure(record: logging.LogRecord) -> bool:
    """Tell a failure from a stream that was cut because the server ends, and from a refused WebSocket."""
    error = record.exc_info[1] if record.exc_info else None
    # That is what uvicorn says of each one that is refused with an answer.
    return not isinstance(error, asyncio.CancelledError) and record.msg != _REFUSED


def listen(host: str, port: int) -> socket.socket:
    """Take an address; port 0 is any that is free.

    Raises:
        ServeError: if it is taken, or not of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, for asyncio sends small answers at once only then; otherwise each waits for 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(2048)
        return listening
    except (OSError, OverflowError) as error:
        listening.close()
        raise ServeError(
            f"{host}:{port} cannot be listened on: {error}; name another with --port."
        ) from error
