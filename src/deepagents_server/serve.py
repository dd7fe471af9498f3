"""Listen: the server behind uvicorn."""

from __future__ import annotations

import asyncio
import ipaddress
import signal
import socket
from collections.abc import Callable

import uvicorn

from deepagents_server.api import create_app
from deepagents_server.config import ServerConfig
from deepagents_server.crons import scheduling
from deepagents_server.database.runs import move_runs
from deepagents_server.errors import ServeError
from deepagents_server.keeping import keeping
from deepagents_server.server import Server, Settings, open_server


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


async def asks_who_calls(server: Server) -> bool:
    """Tell whether a server lets in only whom it knows."""
    handlers = server.handlers
    return bool(handlers and handlers.authenticates) or await server.keys.are_used()


async def serve(
    config: ServerConfig, settings: Settings, host: str, port: int, ready: Callable[[str], None]
) -> None:
    """Answer requests until the process is asked to end; `ready` gets the address.

    Raises:
        ServeError: if there is nothing to serve, or nowhere to listen.
    """
    async with open_server(config, settings) as server, scheduling(server), keeping(server):
        check_host(host, trusted=settings.allow_anyone or await asks_who_calls(server))
        with listen(host, port) as listening:
            shown = f"[{host}]" if ":" in host else host
            ready(f"http://{shown}:{listening.getsockname()[1]}")
            await listener(server, settings).serve([listening])


async def work(
    config: ServerConfig, settings: Settings, ready: Callable[[str], None], move_from: str | None = None
) -> None:
    """Run agents for the servers of a database until the process is asked to end.

    With `move_from`, runs that were left to another version of the code go on with this one.

    Raises:
        ServeError: if the database cannot be shared.
    """
    if settings.database.split(":")[0] not in ("postgresql", "postgres"):
        raise ServeError(
            f"Workers share a PostgreSQL, as postgresql://USER@HOST/NAME, not {settings.database!r}."
        )
    over = asyncio.Event()
    async with open_server(config, settings) as server:
        # For the runs that work here: nobody else reaches it.
        create_app(server, settings)
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, over.set)
        if move_from is not None:
            await move_runs(server.database, settings.version, move_from)
            await server.engine.wake()
        ready(server.engine.worker)
        await over.wait()


def listener(server: Server, settings: Settings) -> uvicorn.Server:
    """Make what takes connections."""
    return uvicorn.Server(
        uvicorn.Config(
            create_app(server, settings),
            lifespan="off",
            log_level="warning",
            timeout_keep_alive=30,
            # Open streams do not keep a server from ending; their clients come back with the last event.
            timeout_graceful_shutdown=3,
            server_header=False,
            h11_max_incomplete_event_size=65536,
        )
    )


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
