"""Events that the library itself writes to the stream of mode `custom`."""

from __future__ import annotations

from typing import Any

from langgraph.config import get_stream_writer

from deepagents._state.runtime import in_graph


class LibraryEvent(dict[str, Any]):
    """An event of the library in its plain form; a dict that a tool writes is never taken for one."""


def emit(kind: str, /, **about: object) -> None:
    """Write an event to the stream of the running graph; outside of a run this does nothing."""
    if in_graph():
        get_stream_writer()(LibraryEvent({"type": kind, **about}))
