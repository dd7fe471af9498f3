"""What a server said, without what it must not repeat to a model: headers, keys, addresses."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from deepagents.middleware.async_subagents.spec import RemoteAgent

_KEYS: Final = ("LANGGRAPH_API_KEY", "LANGSMITH_API_KEY", "LANGCHAIN_API_KEY")
_SHORTEST: Final = 4
_LONG: Final = 12
"""From here on nothing is taken for a word: it is hidden inside of others, too."""
_PUBLIC: Final = ("langsmith", "bearer", "basic")


def without_secrets(agent: RemoteAgent, said: str) -> str:
    """Return what a server said, without any header's value, key or address that it may have repeated."""
    for piece in sorted(_pieces(agent), key=len, reverse=True):
        if len(piece) >= _SHORTEST and piece.lower() not in _PUBLIC:
            alone = re.escape(piece) if len(piece) >= _LONG else rf"(?<!\w){re.escape(piece)}(?!\w)"
            said = re.sub(alone, "***", said, flags=re.IGNORECASE)
    return said


def _pieces(agent: RemoteAgent) -> set[str]:
    values = [*agent.headers.values(), *(os.environ.get(key, "") for key in _KEYS)]
    worded = {piece for value in values for piece in (value, *value.split())}
    addressed = {piece for each in (agent.url, agent.webhook) if each for piece in _of_address(each)}
    return worded | addressed


def _of_address(address: str) -> Iterator[str]:
    """Take an address apart: a server may repeat the host alone, or what signs in behind it."""
    yield from (address, address.rstrip("/"))
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
    except ValueError:
        return
    yield from (parts.netloc, parts.netloc.rpartition("@")[2], parts.path, parts.query)
    yield from filter(None, (parts.username, parts.password, host if "." in host or ":" in host else None))
    yield from (value for _, value in parse_qsl(parts.query))
