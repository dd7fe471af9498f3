"""Places for archives, and how a flow runs there in either colour."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore

from deepagents._flow import Flow, arun, run, twins
from deepagents.backends import CompositeBackend, FilesystemBackend, StateBackend, StoreBackend
from deepagents.backends.calls import Files
from deepagents.backends.protocol import BackendProtocol
from deepagents.middleware.filesystem.state import FilesystemState
from tests.backends.sandboxes import rooted
from tests.conftest import Colour

PLACES = ("disk", "store", "sandbox", "route", "state")


class Doing:
    """Runs a flow in either colour."""

    def _flow(self, flow: Flow[Any]) -> Flow[Any]:
        return (yield from flow)

    do, ado = twins(_flow)


class Place:
    """A backend of some kind, and the surroundings that it works in."""

    def __init__(self, kind: str, root: Path, colour: Colour) -> None:
        self.colour = colour
        self.files = Files(_backend(kind, root))
        self._state: dict[str, Any] = {}
        self._in_graph = kind == "state"

    def do(self, flow: Callable[[], Flow[Any]]) -> Any:
        """Run a flow, in state as a node of a graph."""
        if not self._in_graph:
            return self.colour.call(Doing(), "do", flow())
        found: list[Any] = []
        graph: Any = StateGraph(FilesystemState)
        node = _node(flow, found) if self.colour.name == "sync" else _anode(flow, found)
        graph.add_node("work", node).add_edge(START, "work")
        done = self.colour.invoke(graph.compile(), {"messages": [], "files": self._state})
        self._state = done["files"]
        return found[0]

    def bytes(self, path: str) -> bytes:
        """Return what a file holds."""
        return self.do(lambda: self.files.download(path))

    def names(self, folder: str) -> list[str]:
        """Name what lies in a directory."""
        found = self.do(lambda: self.files.ls(folder))
        return sorted(each["path"].removeprefix(f"{folder}/") for each in found.entries)


def _backend(kind: str, root: Path) -> BackendProtocol:
    match kind:
        case "state":
            return StateBackend()
        case "store":
            return StoreBackend(store=InMemoryStore(), namespace=("archives",))
        case "sandbox":
            return rooted(root)
        case "route":
            return CompositeBackend(StateBackend(), {"/conversation_history/": FilesystemBackend(root)})
        case _:
            return FilesystemBackend(root)


def _node(flow: Callable[[], Flow[Any]], found: list[Any]) -> Any:
    def node(state: FilesystemState) -> dict[str, Any]:
        found.append(run(flow()))
        return {}

    return node


def _anode(flow: Callable[[], Flow[Any]], found: list[Any]) -> Any:
    async def node(state: FilesystemState) -> dict[str, Any]:
        found.append(await arun(flow()))
        return {}

    return node
