"""What middleware tells those who follow a run, through the stream of mode `custom`."""

from __future__ import annotations

from langgraph.config import get_stream_writer

from deepagents._state.custom_events import LibraryEvent
from deepagents._state.runtime import in_graph


def emit(kind: str, /, **about: object) -> None:
    """Write an event of this kind to the stream of the running graph; outside of one, nobody listens."""
    if in_graph():
        get_stream_writer()(LibraryEvent({"type": kind, **about}))
