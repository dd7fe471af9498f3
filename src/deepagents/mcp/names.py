"""Make names for the tools of servers: no two share one, and none is one of the library's."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Final

PREFIX: Final = "mcp__"
_LONGEST: Final = 64
"""Characters that every provider takes in the name of a tool."""
_KEPT: Final = 55
_REPLACED: Final = re.compile(r"[^A-Za-z0-9_-]")


def tool_name(server: str, tool: str) -> str:
    """Return the name under which a model calls a tool of a server: `mcp__SERVER__TOOL`.

    It depends on the two names alone. Where that form would be ambiguous, too long, or hold characters that
    providers refuse, it is cut, and ends in 8 hexadecimal digits of a SHA-256 of both.
    """
    given = f"{PREFIX}{server}__{tool}"
    name = _REPLACED.sub("_", given)
    ambiguous = "__" in server or server.endswith("_") or not tool
    if name == given and not ambiguous and len(name) <= _LONGEST:
        return name
    digest = hashlib.sha256(json.dumps([server, tool]).encode()).hexdigest()
    return f"{name[:_KEPT]}_{digest[:8]}"


def may_name_tool(name: str, server: str) -> bool:
    """Return whether a name, or a pattern with `*`, can be that of a tool of this server."""
    start = _REPLACED.sub("_", f"{PREFIX}{server}__")[:_KEPT]
    literal, star, _ = name.partition("*")
    return literal.startswith(start) or bool(star) and start.startswith(literal)
