"""See every request: give it an id, count it, and log its end."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Sequence
from typing import Final
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as Asgi

from deepagents._values import field, recordclass, valueclass
from deepagents_server.logs import log_about, with_fields
from deepagents_server.metrics import Metrics

_ID: Final = re.compile(r"[A-Za-z0-9._:/+=-]{1,128}")
_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD")
_NAME: Final = "x-request-id"
_WATCHED: Final = ("/ok", "/ready", "/metrics")
_GOOD: Final = 200
_ABSENT: Final = 499
"""The status of a request whose client went before there was an answer."""
_log: Final = logging.getLogger("deepagents.access")


@valueclass
class RequestLog:
    """Answers as an application does, and notes what it answered."""

    app: ASGIApp
    metrics: Metrics
    routes: Sequence[BaseRoute]
    prefix: str

    async def __call__(self, scope: Asgi, receive: Receive, send: Send) -> None:
        """Let the application answer."""
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        given = Headers(scope=scope).get(_NAME, "")
        seen = _Seen(given if _ID.fullmatch(given) else uuid4().hex, send)
        log_about(request_id=seen.request_id)
        with self.metrics.open_requests.track_inprogress():
            try:
                return await self.app(scope, receive, seen.send)
            finally:
                self._note(scope, seen)

    def _note(self, scope: Asgi, seen: _Seen) -> None:
        # A WebSocket is opened by a GET.
        method = scope.get("method", "GET")
        labels = method if method in _METHODS else "other", self._route(scope)
        whole = time.monotonic() - seen.began
        self.metrics.requests.labels(*labels, seen.status).inc()
        self.metrics.request_seconds.labels(*labels).observe(seen.first or whole)
        client = (scope.get("client") or [""])[0]
        fields = {"method": method, "path": scope["path"], "status": seen.status, "client": client}
        # Those who watch ask every few seconds.
        level = logging.DEBUG if labels[1] in _WATCHED and seen.status == _GOOD else logging.INFO
        _log.log(
            level, "%s %s %d in %.3f s", method, scope["path"], seen.status, whole,
            extra=with_fields(**fields, seconds=round(whole, 6)),
        )  # fmt: skip

    def _route(self, scope: Asgi) -> str:
        """Return the pattern of the path; whatever else callers think of would be a series each."""
        path = scope["path"].removeprefix(self.prefix)
        found = (each for each in self.routes if isinstance(each, Route) and each.path_regex.match(path))
        return next((each.path for each in found), "other")


@recordclass
class _Seen:
    """What is sent in answer to a request."""

    request_id: str
    pass_on: Send
    status: int = _ABSENT
    began: float = field(default_factory=time.monotonic)
    first: float | None = None
    """Seconds until the answer began."""

    async def send(self, message: Message) -> None:
        """Send, and note when the answer began, and how."""
        if self.first is None:
            self.first = time.monotonic() - self.began
            self.status = message.get("status") or (101 if message["type"] == "websocket.accept" else 403)
            if "headers" in message:
                MutableHeaders(scope=message)[_NAME] = self.request_id
        await self.pass_on(message)
