"""Find out who asks, and give an endpoint the server as far as its caller may see it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as Asgi

from deepagents._values import replace, valueclass
from deepagents_server.api.common import SERVER, path_of, refuse
from deepagents_server.api.mcp import MCP
from deepagents_server.api.pages import show_refusal
from deepagents_server.auth import User
from deepagents_server.database.owners import Scope
from deepagents_server.errors import ApiError
from deepagents_server.logs import log_about
from deepagents_server.loopback import OWNER
from deepagents_server.server import Server

CALLER: Final = "deepagents.caller"
"""Where a WebSocket finds how to ask again who calls, for it may be open for long."""
_OPEN: Final = ("/ok", "/ready")
"""What answers without a key, for those who watch whether the server works."""
_DOCS: Final = ("/docs", "/openapi.json")
"""What answers without a key too, for a browser sends none: it says what every server of this kind can do."""
_NAMES: Final = ("localhost", "127.0.0.1", "[::1]")
_PORT: Final = re.compile(r":[0-9]*\Z")
_HOW: Final = "send an API key, as 'x-api-key: KEY' or 'Authorization: Bearer KEY'."


@valueclass
class Gate:
    """Lets a request through with the server of its caller."""

    app: ASGIApp
    server: Server
    may_use: Callable[[str], bool]
    """Tells whether pages of an origin may use the server."""
    choose_headers: Callable[[Headers], Mapping[str, str]]
    anyone: bool
    pages: bool = False
    """Whether pages are the server's own; behind a user's application they may be theirs."""

    async def __call__(self, scope: Asgi, receive: Receive, send: Send) -> None:
        """Answer 401, or let the application answer."""
        # Who was asked before the user's own application is not asked again behind it.
        if scope["type"] == "lifespan" or SERVER in scope:
            return await self.app(scope, receive, send)
        if OWNER in scope:
            # A run of this server asks, for whom it works; what that owner may do was asked when it was made.
            mine = replace(self.server.of(Scope(scope[OWNER])), handlers=None)
            return await self.app({**scope, SERVER: mine}, receive, send)
        # A WebSocket is opened by a GET.
        asked = Request({"method": "GET", **_with_key(scope), "type": "http"})
        try:
            if path_of(scope) == MCP.path or scope["type"] == "websocket":
                # That protocol asks for it, whoever calls; and of a WebSocket no browser asks who may.
                self._refuse_strange_pages(asked)
            user = await self._identify(asked)
            caller = Scope(user["identity"], user) if user else Scope()
        except ApiError as error:
            shown = self.pages and error.status == 401 and path_of(scope) == "/"
            refused = show_refusal(self.server, error) if shown else refuse(scope, error)
            return await refused(scope, receive, send)
        if caller.owner:
            log_about(owner=caller.owner)
        server = self.server.of(caller, self.choose_headers(Headers(scope=scope)))
        known = {
            SERVER: server,
            "user": user or User({"identity": ""}),
            CALLER: partial(self._identify, asked),
        }
        return await self.app({**scope, **known}, receive, send)

    async def _identify(self, request: Request) -> User | None:
        """Return who asks; `None` is anybody, where everybody may."""
        handlers, keys = self.server.handlers, self.server.keys
        if path_of(request.scope) in (*_OPEN, *(_DOCS if self.pages else ())):
            return None
        if handlers and handlers.authenticates:
            return await handlers.authenticate(request)
        if not await keys.are_used():
            self._refuse_strange_pages(request)
            self._refuse_strange_names(request)
            return None
        sent = _read_key(request.headers)
        if sent is None:
            raise ApiError(401, f"This server wants to know who asks: {_HOW}")
        row = await keys.find(sent)
        if row is None:
            raise ApiError(401, f"This key does not work here; it may be revoked, or past its time: {_HOW}")
        return User({"identity": row["owner"], "key_id": row["key_id"]})

    def _refuse_strange_pages(self, request: Request) -> None:
        """Keep pages that a person looks at from running agents, where no key is asked for."""
        origin = request.headers.get("origin")
        if origin and not self.may_use(origin):
            raise ApiError(
                403,
                f"Pages of {origin[:100]!r} may not use this server; name them in langgraph.json, as "
                '"http": {"cors": {"allow_origins": [...]}}, or ask for API keys.',
            )

    def _refuse_strange_names(self, request: Request) -> None:
        """Keep pages out whose own name was made to lead here: their browser calls them the same origin."""
        # As it was sent, for what Starlette cannot parse it replaces by the address of this machine. Every
        # browser sends one.
        name = _PORT.sub("", request.headers.get("host", _NAMES[0]).lower())
        if not self.anyone and name not in _NAMES:
            raise ApiError(
                403,
                f"{name[:100]!r} is not a name of this server, which asks for no key and so answers to "
                f"{', '.join(_NAMES)} only; run `deepagents keys create NAME`, or add --allow-anyone.",
            )


def _with_key(scope: Asgi) -> Asgi:
    """Show the key of a WebSocket from a page as a header, which browsers do not let pages send."""
    match scope.get("subprotocols"):
        case ["bearer", key]:
            return {**scope, "headers": [*scope["headers"], (b"authorization", f"Bearer {key}".encode())]}
        case _:
            return scope


def _read_key(headers: Headers) -> str | None:
    """Return the key of a request; a client that has none sends an empty header."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    sent = headers.get("x-api-key", "").strip() or (token.strip() if scheme.lower() == "bearer" else "")
    return sent or None
