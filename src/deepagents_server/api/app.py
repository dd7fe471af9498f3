"""Put the endpoints together, and turn whatever a request fails with into an answer."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from functools import partial
from itertools import chain
from typing import Any, Final, cast

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deepagents._values import recordclass
from deepagents_server.api import (
    assistants,
    crons,
    mcp,
    openai,
    pages,
    rewinds,
    runs,
    store,
    system,
    thread_sockets,
    thread_streams,
    threads,
)
from deepagents_server.api.common import answer, refuse
from deepagents_server.api.custom import OPTIONS, headers_for_runs, make_cors, surround
from deepagents_server.api.endpoint import routes_of
from deepagents_server.api.gate import Gate
from deepagents_server.api.openapi import Parts
from deepagents_server.api.request_log import RequestLog
from deepagents_server.database import Database
from deepagents_server.errors import ApiError, ServeError, cannot_be_kept, cannot_be_used, make_failure
from deepagents_server.server import Server, Settings

_log: Final = logging.getLogger("deepagents.server")
PARTS: Final[Parts] = {
    "meta": [*pages.ENDPOINTS, *system.ENDPOINTS],
    "assistants": assistants.ENDPOINTS,
    "crons": crons.ENDPOINTS,
    "threads": [
        *threads.ENDPOINTS,
        *rewinds.ENDPOINTS,
        *thread_streams.ENDPOINTS,
        *thread_sockets.ENDPOINTS,
    ],
    "runs": runs.ENDPOINTS,
    "store": store.ENDPOINTS,
    "openai": openai.ENDPOINTS,
    "mcp": mcp.ENDPOINTS,
}
"""The endpoints, by the name with which `http` of langgraph.json leaves them out: `disable_store`."""
_FURTHER: Final = ("a2a", "ui", "webhooks")
"""What else LangGraph's file can leave out: two parts that only its own server has, and calls to others."""
_QUIET: Final = 10.0
"""Seconds after a line about the database in which requests that fail of it add none."""


def create_app(server: Server, settings: Settings) -> ASGIApp:
    """Make the application that answers for an open server."""
    http = server.config.http
    cors = make_cors(http)
    gate = partial(
        Gate,
        server=server,
        may_use=cors(Router()).is_allowed_origin,
        anyone=settings.allow_anyone,
        choose_headers=headers_for_runs(http),
    )

    def ask(inner: ASGIApp, *, pages: bool = False) -> ASGIApp:
        # Outside of the gate, which asks the database about keys.
        return _Failures(gate(inner, pages=pages), server.database)

    parts = parts_of(http)
    app = Starlette(
        routes=routes_of(chain(*parts.values())),
        middleware=[Middleware(cors), Middleware(ask, pages=True)],
        exception_handlers={
            ApiError: _refuse,
            HTTPException: _refuse_http,
            **dict.fromkeys(server.database.value_errors, _refuse_value),
        },
    )
    app.state.parts = parts
    server.loopback.app = app
    answering = surround(app, server.config, ask)
    return RequestLog(answering, server.metrics, app.routes, http.get("mount_prefix") or "")


def parts_of(http: Mapping[str, Any]) -> Parts:
    """Return the endpoints that `http` of langgraph.json leaves.

    Raises:
        ServeError: for what this server does not do; what stays open must not go unseen.
    """
    known = ["cors", *OPTIONS, *(f"disable_{name}" for name in (*PARTS, *_FURTHER))]
    if unknown := sorted(http.keys() - known):
        raise ServeError(
            f"http.{unknown[0]} of langgraph.json is nothing that this server does; leave it out, or name "
            f"another file with `deepagents serve FILE.json`. It knows {', '.join(known)}."
        )
    for name, value in http.items():
        if name.startswith(("disable_", "enable_")) and not isinstance(value, bool):
            raise ServeError(f"http.{name} must be true or false, not {value!r}.")
    return {name: found for name, found in PARTS.items() if http.get(f"disable_{name}") is not True}


async def _refuse(request: Request, error: Exception) -> Response:
    return refuse(request.scope, cast(ApiError, error))


async def _refuse_http(_: Request, error: Exception) -> Response:
    refused = cast(HTTPException, error)
    return answer({"detail": refused.detail}, refused.status_code)


async def _refuse_value(request: Request, error: Exception) -> Response:
    _log.info("%s %s has a value that cannot be kept", request.method, request.url.path, exc_info=error)
    return refuse(request.scope, cannot_be_kept())


@recordclass
class _Failures:
    """Answers for an application that fails; the log says why, for the client is to learn nothing of that."""

    app: ASGIApp
    database: Database
    quiet_until: float = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the application answer; what breaks off is cut, so that no client takes it for whole."""
        begun = False

        async def send_on(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self.app(scope, receive, send_on)
        except Exception as error:
            if scope["type"] == "lifespan" or (begun and scope["type"] == "websocket"):
                raise
            away = self.database.is_unusable(error)
            self._log(f"{scope.get('method', 'GET')} {scope['path']} failed", error, away=away)
            if not begun:
                refused = refuse(scope, cannot_be_used() if away else make_failure())
                await refused(scope, receive, send)

    def _log(self, what: str, error: Exception, *, away: bool) -> None:
        # While a database is away, every request fails, and says the same.
        now = time.monotonic()
        if away and now < self.quiet_until:
            return
        self.database.log_failure(what, error)
        if away:
            self.quiet_until = now + _QUIET
