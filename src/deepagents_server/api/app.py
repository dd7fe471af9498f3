"""Put the endpoints together, and turn whatever a request fails with into an answer."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, cast

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp

from deepagents_server.api import (
    assistants,
    crons,
    mcp,
    openai,
    pages,
    runs,
    store,
    system,
    thread_sockets,
    thread_streams,
    threads,
)
from deepagents_server.api.access import guard
from deepagents_server.api.common import answer, refuse
from deepagents_server.api.custom import OPTIONS, headers_for_runs, surround
from deepagents_server.api.gate import Gate
from deepagents_server.api.observed import Observed
from deepagents_server.api.origins import Origins
from deepagents_server.errors import ApiError, ServeError, cannot_be_kept, make_failure
from deepagents_server.server import Server, Settings

_log: Final = logging.getLogger("deepagents.server")
_PARTS: Final[Mapping[str, Sequence[Route | WebSocketRoute]]] = {
    "meta": [*pages.ROUTES, *system.ROUTES],
    "assistants": assistants.ROUTES,
    "crons": crons.ROUTES,
    "threads": [*threads.ROUTES, *thread_streams.ROUTES, *thread_sockets.ROUTES],
    "runs": runs.ROUTES,
    "store": store.ROUTES,
    "openai": openai.ROUTES,
    "mcp": mcp.ROUTES,
}
"""The endpoints, by the name with which `http` of langgraph.json leaves them out: `disable_store`."""
_FURTHER: Final = ("a2a", "ui", "webhooks")
"""What else LangGraph's file can leave out: two parts that only its own server has, and calls to others."""
ROUTES: Final = [route for routes in _PARTS.values() for route in routes]


def create_app(server: Server, settings: Settings) -> ASGIApp:
    """Make the application that answers for an open server."""
    http = server.config.http
    origins = Origins.of(http)
    ask = partial(
        Gate,
        server=server,
        origins=origins,
        anyone=settings.allow_anyone,
        choose_headers=headers_for_runs(http),
    )
    app = Starlette(
        routes=[guard(route) if isinstance(route, Route) else route for route in routes_of(http)],
        middleware=[origins.middleware(), Middleware(ask, pages=True)],
        exception_handlers={
            ApiError: _refuse,
            HTTPException: _refuse_http,
            **dict.fromkeys(server.database.value_errors, _refuse_value),
            Exception: _fail,
        },
    )
    server.loopback.app = app
    answering = surround(app, server.config, ask)
    return Observed(answering, server.metrics, app.routes, http.get("mount_prefix") or "")


def routes_of(http: Mapping[str, Any]) -> list[Route | WebSocketRoute]:
    """Return the endpoints that `http` of langgraph.json leaves.

    Raises:
        ServeError: for what this server does not do; what stays open must not go unseen.
    """
    known = ["cors", *OPTIONS, *(f"disable_{name}" for name in (*_PARTS, *_FURTHER))]
    if unknown := sorted(http.keys() - known):
        raise ServeError(
            f"http.{unknown[0]} of langgraph.json is nothing that this server does; leave it out, or name "
            f"another file with `deepagents serve FILE.json`. It knows {', '.join(known)}."
        )
    for name, value in http.items():
        if name.startswith(("disable_", "enable_")) and not isinstance(value, bool):
            raise ServeError(f"http.{name} must be true or false, not {value!r}.")
    left = (routes for name, routes in _PARTS.items() if http.get(f"disable_{name}") is not True)
    return [route for routes in left for route in routes]


async def _refuse(request: Request, error: Exception) -> Response:
    return refuse(request.scope, cast(ApiError, error))


async def _refuse_http(_: Request, error: Exception) -> Response:
    refused = cast(HTTPException, error)
    return answer({"detail": refused.detail}, refused.status_code)


async def _refuse_value(request: Request, error: Exception) -> Response:
    _log.info("%s %s has a value that cannot be kept", request.method, request.url.path, exc_info=error)
    return refuse(request.scope, cannot_be_kept())


async def _fail(request: Request, error: Exception) -> Response:
    # The log has the trace; the client gets nothing that it could learn about the machine from.
    _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return refuse(request.scope, make_failure())
