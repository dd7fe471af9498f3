"""Open and close a server's parts together."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final, cast

from starlette.requests import HTTPConnection

from deepagents._values import field, replace, valueclass
from deepagents_server.auth import Handlers
from deepagents_server.config import ServerConfig, apply_environment
from deepagents_server.database import Database, open_database
from deepagents_server.database.assistants import add_system_assistants
from deepagents_server.database.keys import Keys
from deepagents_server.database.notices import Notices
from deepagents_server.database.owners import Scope
from deepagents_server.database.readiness import Readiness, watching
from deepagents_server.database.store import graphs_of
from deepagents_server.deliveries import Deliveries
from deepagents_server.events import EventLog
from deepagents_server.graphs import Graphs, load_graphs, load_servers, load_store
from deepagents_server.loopback import Loopback, reachable
from deepagents_server.metrics import Metrics
from deepagents_server.runs import RunEngine
from deepagents_server.watchdog import watching_loop
from deepagents_server.webhooks import Webhooks

SERVER: Final = "deepagents.server"
"""Where `Gate` puts the server of a request's caller; without it there is no server to be had."""
MAX_BODY: Final = 32_000_000
"""Bytes of the body of a request, unless something else is said."""


@valueclass
class Server:
    """Everything that answers requests and runs graphs."""

    config: ServerConfig
    database: Database
    graphs: Graphs
    events: EventLog
    engine: RunEngine
    webhooks: Webhooks
    keys: Keys
    loopback: Loopback
    readiness: Readiness
    handlers: Handlers | None = None
    scope: Scope = field(default_factory=Scope)
    operator: str | None = None
    max_body: int = MAX_BODY
    metrics: Metrics = field(default_factory=Metrics)
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Those of the request that its runs are to find in their configuration."""

    def of(self, scope: Scope, headers: Mapping[str, str] | None = None) -> Server:
        """Return the same server, as far as an owner may see and change what it holds."""
        database, graphs = self.database.of(scope), graphs_of(self.graphs, scope.owner)
        return replace(self, database=database, graphs=graphs, scope=scope, headers=headers or {})


@valueclass
class Settings:
    """What the command line says about a server."""

    database: str
    slots: int = 10
    """How many runs work in this process at once; 0 leaves them to workers."""
    allow_anyone: bool = False
    """Whether others may reach a server that asks for no key."""
    connections: int = 1000
    """How many may be open at once; the next one is told that the server is busy."""
    connections_per_address: int | None = None
    """How many of them one address may have; without a number half, and loopback all."""
    patience: float = 60.0
    """Seconds in which the body of a request must have arrived; its head has 10 at most."""
    version: str = "1"
    """Of the code that is served; runs stay with the version that they began with."""
    operator: str | None = None
    """The owner whose `/metrics` count what belongs to anybody."""
    owner_limit: int | None = None
    """How many runs of one owner may work at once, on all servers and workers."""
    max_body: int = MAX_BODY


@asynccontextmanager
async def open_server(config: ServerConfig, settings: Settings) -> AsyncGenerator[Server]:
    """Load the graphs, open the database and work until the block ends.

    Raises:
        ServeError: if a graph cannot be loaded or the database cannot be opened.
    """
    apply_environment(config)
    async with AsyncExitStack() as stack:
        stack.enter_context(watching_loop())
        loopback = stack.enter_context(reachable())
        servers = load_servers(config)
        for each in servers.values():
            stack.push_async_callback(each.aclose)
        made, handlers = load_graphs(config, servers), Handlers.of(config)
        database = await stack.enter_async_context(open_database(settings.database, load_store(config)))
        graphs = Graphs(made, database.saver, database.store)
        await add_system_assistants(database, graphs, config.descriptions)
        events = EventLog(database)
        webhooks, keys = Webhooks.of(config.webhooks), Keys(database)
        deliveries, metrics = Deliveries(database, webhooks), Metrics()
        engine = RunEngine(
            database,
            graphs,
            events,
            Notices(database),
            settings.slots,
            settings.version,
            owner_limit=settings.owner_limit,
            on_webhook=deliveries.wake,
            metrics=metrics,
            has_owners=bool(handlers and handlers.authenticates) or await keys.are_used(),
        )
        await stack.enter_async_context(deliveries.running())
        await stack.enter_async_context(engine.running())
        readiness = await stack.enter_async_context(watching(settings.database))
        server = Server(
            config, database, graphs, events, engine, webhooks, keys, loopback, readiness, handlers
        )
        yield replace(server, operator=settings.operator, max_body=settings.max_body, metrics=metrics)


def serving(request: HTTPConnection) -> Server:
    """Return the server that a request has reached, as far as its caller may see and change it."""
    return cast(Server, request.scope[SERVER])
