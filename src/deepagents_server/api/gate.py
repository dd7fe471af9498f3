"""Who asks: each request passes here, and an endpoint gets the server as far as its caller may see it."""

from __future__ import annotations

from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as Asgi

from deepagents_server.api.common import SERVER, answer
from deepagents_server.database.owners import Scope
from deepagents_server.errors import ApiError
from deepagents_server.loopback import OWNER
from deepagents_server.server import Server

_OPEN: Final = ("/ok",)
"""What answers without a key, for those who watch whether the server works."""
_HOW: Final = "send an API key, as 'x-api-key: KEY' or 'Authorization: Bearer KEY'."


class Gate:
    """Lets a request through with the server of its caller."""

    def __init__(self, app: ASGIApp, server: Server) -> None:
        self._app = app
        self._server = server

    async def __call__(self, scope: Asgi, receive: Receive, send: Send) -> None:
        """Answer 401, or let the application answer."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        if OWNER in scope:
            # A run of this server asks, for whom it works.
            return await self._app({**scope, SERVER: self._server.of(Scope(scope[OWNER]))}, receive, send)
        try:
            caller = await self._identify(Headers(scope=scope), scope["path"])
        except ApiError as error:
            refused = answer({"detail": error.detail}, error.status, {"www-authenticate": "Bearer"})
            return await refused(scope, receive, send)
        return await self._app({**scope, SERVER: self._server.of(caller)}, receive, send)

    async def _identify(self, headers: Headers, path: str) -> Scope:
        keys = self._server.keys
        if path in _OPEN or not await keys.are_used():
            return Scope()
        sent = _sent_key(headers)
        if sent is None:
            raise ApiError(401, f"This server wants to know who asks: {_HOW}")
        row = await keys.find(sent)
        if row is None:
            raise ApiError(401, f"This key does not work here; it may be revoked, or past its time: {_HOW}")
        return Scope(row["owner"])


def _sent_key(headers: Headers) -> str | None:
    """Return the key of a request; a client that has none sends an empty header."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    sent = headers.get("x-api-key", "").strip() or (token.strip() if scheme.lower() == "bearer" else "")
    return sent or None
