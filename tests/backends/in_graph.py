"""Do work inside a run of a graph, where there are files in state."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from langgraph.graph import START, StateGraph

from deepagents.middleware.filesystem.state import FilesystemState

NO_FILES = {"messages": []}


def in_graph(work: Callable[[], Any]) -> Any:
    """Return what some work returns in a run of its own."""
    returned: list[Any] = []

    def node(state: FilesystemState) -> dict[str, Any]:
        returned.append(work())
        return {}

    _graph(node).invoke(NO_FILES)
    return returned[0]


async def ain_graph(work: Callable[[], Awaitable[None]]) -> None:
    """Await some work in a run of its own."""

    async def node(state: FilesystemState) -> dict[str, Any]:
        await work()
        return {}

    await _graph(node).ainvoke(NO_FILES)


def _graph(node: Callable[..., Any]) -> Any:
    graph: Any = StateGraph(FilesystemState)
    return graph.add_node("work", node).add_edge(START, "work").compile()
