"""Decide which web pages may use the server: `http.cors` of langgraph.json, or those of this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Router

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


@dataclass(frozen=True)
class Origins:
    """The pages that may use the server: what `CORSMiddleware` takes."""

    options: Mapping[str, Any]

    @classmethod
    def of(cls, http: Mapping[str, Any]) -> Origins:
        """Read the configuration."""
        cors: Mapping[str, Any] = http.get("cors") or {}
        given = {name: value for name, value in cors.items() if value is not None}
        if not given.keys() & {"allow_origins", "allow_origin_regex"}:
            given["allow_origin_regex"] = _HERE
        exposed = [*dict.fromkeys([*_EXPOSED, *given.get("expose_headers", ())])]
        return cls({"allow_methods": _METHODS, "allow_headers": ["*"], **given, "expose_headers": exposed})

    def allow(self, origin: str) -> bool:
        """Tell whether pages of an origin may use the server."""
        return CORSMiddleware(Router(), **self.options).is_allowed_origin(origin)

    def middleware(self) -> Middleware:
        """Make what tells browsers so."""
        return Middleware(CORSMiddleware, **self.options)
