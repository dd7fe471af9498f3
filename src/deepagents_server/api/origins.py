"""Decide which web pages may use the server: `http.cors` of langgraph.json, or those of this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

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
