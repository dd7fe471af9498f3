"""Apply `http` of langgraph.json around the server: an application, a prefix, headers, web pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, cast

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Mount
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as Asgi

from deepagents._values import valueclass
from deepagents_server.api.common import answer
from deepagents_server.config import ServerConfig
from deepagents_server.errors import ServeError
from deepagents_server.graphs import load_object

OPTIONS: Final = (
    "app", "mount_prefix", "enable_custom_route_auth", "middleware_order", "configurable_headers",
    "logging_headers",
)  # fmt: skip
"""The keys of `http` that are known here."""
_SECRET: Final = ("authorization", "cookie", "x-api-key", "x-service-key", "x-tenant-id")
_PREFIX: Final = re.compile(r"(/[A-Za-z0-9._~-]+)+")


def surround(app: Starlette, config: ServerConfig, ask: Callable[[ASGIApp], ASGIApp]) -> ASGIApp:
    """Put the user's own application before the server's, and all below a prefix, where the file says so.

    The user's routes come first, and their middleware sees every request. As on LangGraph's server, they are
    not asked who calls, unless `enable_custom_route_auth` says so; `ask` makes an application do that.

    Raises:
        ServeError: for a value that says nothing.
    """
    http = config.http
    asks = http.get("enable_custom_route_auth") is True
    if (order := http.get("middleware_order", "middleware_first")) != "middleware_first" and not asks:
        raise ServeError(
            f"http.middleware_order: {order!r} asks who calls before http.app sees a request; here that "
            'needs "enable_custom_route_auth": true.'
        )
    outer: ASGIApp = app
    if place := http.get("app"):
        custom = load_object(str(place), config.directory)
        if not isinstance(custom, Starlette):
            raise ServeError(f"http.app: {place!r} is not an application of Starlette or FastAPI.")
        custom.router.routes.append(Mount("/", app=app))
        outer = ask(custom) if asks else custom
    if prefix := http.get("mount_prefix"):
        if not _PREFIX.fullmatch(str(prefix)):
            raise ServeError(f"http.mount_prefix: {prefix!r} is not a path such as '/agents'.")
        outer = _Below(outer, str(prefix))
    return outer


@valueclass
class _Below:
    """Answers below a prefix only, which the application behind knows as its root."""

    app: ASGIApp
    prefix: str

    async def __call__(self, scope: Asgi, receive: Receive, send: Send) -> None:
        """Cut the prefix off, or answer 404."""
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        path: str = scope["path"]
        if path != self.prefix and not path.startswith(f"{self.prefix}/"):
            refused = answer({"detail": f"This server answers below {self.prefix}/ only."}, 404)
            return await refused(scope, receive, send)
        whole = f"{path}/" if path == self.prefix else path
        return await self.app({**scope, "path": whole, "root_path": self.prefix}, receive, send)


def headers_for_runs(http: Mapping[str, Any]) -> Callable[[Headers], Mapping[str, str]]:
    """Return what chooses the headers that runs find in their configuration: `configurable_headers`.

    Names may have `*` for any text. What is secret passes by its whole name only: it is kept with the run.

    Raises:
        ServeError: for what is not a list of names.
    """
    given: Mapping[str, Any] = http.get("configurable_headers") or {}
    # LangGraph's documents write both.
    included = [*_names(given, "include"), *_names(given, "includes")]
    excluded = [*_names(given, "exclude"), *_names(given, "excludes")]
    wanted, unwanted = _pattern(included), _pattern(excluded)

    def choose(headers: Headers) -> Mapping[str, str]:
        return {
            name: value
            for name, value in headers.items()
            if wanted.fullmatch(name)
            and not unwanted.fullmatch(name)
            and (name not in _SECRET or name in included)
        }

    return choose


def _names(given: Mapping[str, Any], key: str) -> Sequence[str]:
    names: Any = given.get(key) or []
    if not isinstance(names, list):
        raise ServeError(f"http.configurable_headers.{key} must be a list of names, not {names!r}.")
    return [str(name).lower() for name in cast(list[Any], names)]


def _pattern(names: Sequence[str]) -> re.Pattern[str]:
    """Match any of some names; none matches nothing."""
    return re.compile("|".join(re.escape(name).replace(r"\*", ".*") for name in names) or "(?!)")


_HERE: Final = r"https?://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]+)?"
_EXPOSED: Final = (
    "content-location",
    "location",
    "retry-after",
    "x-pagination-total",
    "x-pagination-next",
    "x-request-id",
)
_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def make_cors(http: Mapping[str, Any]) -> Callable[[ASGIApp], CORSMiddleware]:
    """Return what tells browsers which pages may use an application."""
    cors: Mapping[str, Any] = http.get("cors") or {}
    given = {name: value for name, value in cors.items() if value is not None}
    if not given.keys() & {"allow_origins", "allow_origin_regex"}:
        given["allow_origin_regex"] = _HERE
    exposed = [*dict.fromkeys([*_EXPOSED, *given.get("expose_headers", ())])]
    options = {"allow_methods": _METHODS, "allow_headers": ["*"], **given, "expose_headers": exposed}
    return partial(CORSMiddleware, **options)
