"""Know which tools the model was offered: no result may name another."""

from __future__ import annotations

from typing import Final

from deepagents._state.runtime import has_channel, in_graph, read_channel

OFFERED_CHANNEL: Final = "_offered_tools"
"""The state key of the names of the tools that the last request of the model offered."""


def offered_names() -> frozenset[str] | None:
    """Return the names of the tools that the model was offered; `None` where no middleware notes that."""
    if not in_graph() or not has_channel(OFFERED_CHANNEL):
        return None
    return read_channel(OFFERED_CHANNEL) or frozenset()


def if_offered(name: str, hint: str) -> str:
    """Return a hint that is about a tool; `""` where it is known that the model was not offered it."""
    names = offered_names()
    return "" if names and name not in names else hint
