"""Tell whose failure it is, where a tool asks another database with the same driver."""

from __future__ import annotations

import traceback
from typing import Final

_USERS: Final = (
    "deepagents_server.database.",
    "deepagents_server.events",
    "deepagents_server.runs.commands",
    "langgraph.checkpoint.",
    "langgraph.store.",
)
"""The modules that use the database while a graph runs."""


def is_of_server(error: BaseException) -> bool:
    """Tell an error of this database from that of another, which a tool has asked."""
    frames = traceback.walk_tb(error.__traceback__)
    modules = (str(frame.f_globals.get("__name__")) for frame, _ in frames)
    return any(name.startswith(_USERS) for name in modules)
