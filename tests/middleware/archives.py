"""Places for archives, and how a flow runs there in either call_mode."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore

from deepagents._async import Coro, arun, run, sync_and_async
from deepagents.backends import CompositeBackend, FilesystemBackend, StateBackend, StoreBackend
from deepagents.backends.calls import Files
from deepagents.backends.protocol import BackendProtocol
from deepagents.middleware.filesystem.state import FilesystemState
from tests.backends.sandboxes import rooted
from tests.conftest import CallMode

PLACES = ("disk", "store", "sandbox", "route", "state")


class Doing:
    """Runs a flow in either call_mode."""

    async def _flow(self, flow: Coro[Any]) -> Any:
        return await flow

    do, ado = sync_and_async(_flow)


class Place:
    """A backend of some kind, and the surroundings that it works in."""

    def __init__(self, kind: str, root: Path, call_mode: CallMode) -> None:
        self.call_mode = call_mode
        self.files = Files(_backend(kind, root))
        self._state: dict[str, Any] = {}
        self._in_graph = kind == "state"

    def do(self, flow: Callable[[], Coro[Any]]) -> Any:
        """Run a flow, in state as a node of a graph."""
        if not self._in_graph:
            return self.call_mode.call(Doing(), "do", flow())
        found: list[Any] = []
        graph: Any = StateGraph(FilesystemState)
        node = _node(flow, found) if self.call_mode.name == "sync" else _anode(flow, found)
        graph.add_node("work", node).add_edge(START, "work")
        done = self.call_mode.invoke(graph.compile(), {"messages": [], "files": self._state})
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


def _node(flow: Callable[[], Coro[Any]], found: list[Any]) -> Any:
    def node(state: FilesystemState) -> dict[str, Any]:
        found.append(run(flow()))
        return {}

    return node


def _anode(flow: Callable[[], Coro[Any]], found: list[Any]) -> Any:
    async def node(state: FilesystemState) -> dict[str, Any]:
        found.append(await arun(flow()))
        return {}

    return node
