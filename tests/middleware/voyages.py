"""Runs that find out about whales until their context has to be compacted."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage

from deepagents.testing import call

THREAD: Any = {"configurable": {"thread_id": "voyage"}}
ARCHIVE = "/conversation_history/voyage.md"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="


def research(topic: str, much: int = 1) -> str:
    """Find out about a topic."""
    return f"About {topic}: " + "one more fact. " * 130 * much


def steps(many: int, first: int = 0, **more: int) -> list[AIMessage]:
    """Find out about so many whales, one after the other."""
    return [call("research", topic=f"whale {n}", **more) for n in range(first, first + many)]
