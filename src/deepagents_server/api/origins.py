"""Decide which web pages may use the server: `http.cors` of langgraph.json, or those of this machine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

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
    """The pages that may use the server."""

    named: tuple[str, ...]
    pattern: str | None
    options: Mapping[str, Any]

    @classmethod
    def of(cls, http: Mapping[str, Any]) -> Origins:
        """Read the configuration."""
        given: Mapping[str, Any] = http.get("cors") or {}
        named = given.get("allow_origins")
        pattern = given.get("allow_origin_regex")
        if named is None and pattern is None:
            pattern = _HERE
        return cls(tuple(named or ()), pattern, given)

    def allow(self, origin: str) -> bool:
        """Tell whether pages of an origin may use the server."""
        if "*" in self.named or origin in self.named:
            return True
        return self.pattern is not None and re.fullmatch(self.pattern, origin) is not None

    def middleware(self) -> Middleware:
        """Make what tells browsers so."""
        exposed = [*dict.fromkeys([*_EXPOSED, *self.options.get("expose_headers", ())])]
        return Middleware(
            CORSMiddleware,
            allow_origins=list(self.named),
            allow_origin_regex=self.pattern,
            allow_methods=list(self.options.get("allow_methods", _METHODS)),
            allow_headers=list(self.options.get("allow_headers", ["*"])),
            allow_credentials=bool(self.options.get("allow_credentials", False)),
            expose_headers=exposed,
            max_age=int(self.options.get("max_age", 600)),
        )
