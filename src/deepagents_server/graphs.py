"""Load the graphs that are served, and bind them to the server's saver and store."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import logging
import sys
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
)
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import UUID, uuid5

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import StateGraph
from langgraph.pregel import Pregel
from langgraph.store.base import BaseStore

from deepagents._values import field, valueclass
from deepagents.errors import ConfigError
from deepagents_server.config import ServerConfig
from deepagents_server.errors import ServeError, not_found

if TYPE_CHECKING:
    from deepagents.mcp import MCPServers
    from deepagents.undo import FileHistory

Graph = Any
"""A compiled graph; LangGraph types its methods by half."""
_log: Final = logging.getLogger("deepagents.server")
_GRAPHS: Final = (Pregel, StateGraph, AbstractAsyncContextManager, AbstractContextManager)
# The namespace with which the protocol names the assistant of each graph.
_NAMESPACE: Final = UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8")


def system_assistant_id(graph_id: str) -> str:
    """Return the id of the assistant that every graph has."""
    return str(uuid5(_NAMESPACE, graph_id))


@valueclass
class Graphs:
    """The graphs of a server, by name: a graph, or a function that makes one for each run."""

    made: Mapping[str, Any]
    saver: BaseCheckpointSaver[Any]
    store: BaseStore
    histories: dict[str, FileHistory | None] = field(default_factory=dict[str, "FileHistory | None"])
    """What keeps the files of agents, by the name of the graph, as far as they were opened here."""

    def __iter__(self) -> Iterator[str]:
        return iter(self.made)

    def __contains__(self, graph_id: str) -> bool:
        return graph_id in self.made

    @asynccontextmanager
    async def open(self, graph_id: str, config: Mapping[str, Any] | None = None) -> AsyncGenerator[Graph]:
        """Give a graph for one run, or for one look at a thread.

        Raises:
            ApiError: if there is no such graph.
        """
        if graph_id not in self.made:
            raise not_found("graph", graph_id)
        made: Any = self.made[graph_id]
        if not isinstance(made, Pregel) and callable(made):
            made = await _call(made, dict(config or {}))
        async with AsyncExitStack() as stack:
            if isinstance(made, AbstractAsyncContextManager):
                made = await stack.enter_async_context(cast(Any, made))
            elif isinstance(made, AbstractContextManager):
                made = stack.enter_context(cast(Any, made))
            yield self._bind(graph_id, made)

    def _bind(self, graph_id: str, graph: Any) -> Graph:
        compiled = cast(Any, graph).compile() if isinstance(graph, StateGraph) else graph
        if not isinstance(compiled, Pregel):
            raise ServeError(f"The graph {graph_id!r} is {type(compiled).__name__}, not a compiled graph.")
        # Eager, or the step of a lone task is told after its checkpoint: never, if the process ends between.
        update = {"checkpointer": self.saver, "store": self.store, "name": graph_id, "stream_eager": True}
        self.histories[graph_id] = history_of(compiled)
        return cast(Any, compiled).copy(update)

    async def find_histories(self) -> list[FileHistory]:
        """Return all that keeps the files of agents here; a function that was never called is called once."""
        for graph_id in self.made.keys() - self.histories.keys():
            try:
                async with self.open(graph_id):
                    pass
            except Exception as error:  # noqa: BLE001
                # Code of the user: a graph that cannot be made has not changed a file.
                _log.warning("Graph %r cannot be asked for its history of files: %r", graph_id, error)
                self.histories[graph_id] = None
        return [*{each.directory: each for each in self.histories.values() if each}.values()]


def history_of(graph: Graph) -> FileHistory | None:
    """Return what keeps the files that an agent changes, so that they can be taken back."""
    return getattr(graph, "file_history", None)


async def _call(factory: Callable[..., Any], config: dict[str, Any]) -> Any:
    """Call a function that makes a graph: with the run's configuration, if it takes one."""
    made = factory(config) if inspect.signature(factory).parameters else factory()
    return await made if inspect.isawaitable(made) else made


def load_servers(config: ServerConfig) -> dict[str, MCPServers]:
    """Read which MCP servers the graphs have; all runs of a graph in this process share its servers.

    Raises:
        ServeError: for an entry that cannot be.
    """
    if not config.mcp:
        return {}
    module = importlib.import_module("deepagents.mcp")
    try:
        return {name: module.MCPServers(given) for name, given in config.mcp.items()}
    except ConfigError as error:
        raise ServeError(f"{error}.") from error


def load_graphs(config: ServerConfig, servers: Mapping[str, MCPServers] | None = None) -> dict[str, Any]:
    """Import what the configuration names.

    Raises:
        ServeError: for what is not there, fails while it is imported, or is not a graph.
    """
    for path in reversed(config.import_paths):
        if str(path) not in sys.path:
            sys.path.insert(0, str(path))
    made = {name: load_object(place, config.directory) for name, place in config.graphs.items()}
    for name, graph in made.items():
        if not (callable(graph) or isinstance(graph, _GRAPHS)):
            raise ServeError(
                f"{config.graphs[name]!r} is {type(graph).__name__}; name a compiled graph, as "
                "create_deep_agent returns it, or a function that makes one."
            )
    return made | {name: _with_servers(name, made[name], each) for name, each in (servers or {}).items()}


def _with_servers(name: str, graph: Any, servers: MCPServers) -> Callable[..., Any]:
    """Return a function that makes a graph with its servers."""
    takes = () if isinstance(graph, _GRAPHS) else inspect.signature(graph).parameters
    if "mcp" not in takes:
        raise ServeError(
            f"The graph {name!r} has MCP servers, so it must be a function with the parameter 'mcp', such as "
            "def make(mcp): return create_deep_agent(..., mcp=mcp)."
        )
    make = cast("Callable[..., Any]", graph)

    def make_for_run(config: dict[str, Any]) -> Any:
        return make(mcp=servers) if len(takes) == 1 else make(config, mcp=servers)

    return make_for_run


def load_store(config: ServerConfig) -> Mapping[str, Any]:
    """Return what the configuration says of the store; a function of a file that embeds texts is imported.

    Raises:
        ServeError: if it is not there, or fails while it is imported.
    """
    index: Mapping[str, Any] = config.store.get("index") or {}
    named = str(index.get("embed", ""))
    if not _is_file(named.rpartition(":")[0]):
        return config.store
    return {**config.store, "index": {**index, "embed": load_object(named, config.directory)}}


def load_object(place: str, directory: Path) -> Any:
    """Import `path.py:name` or `package.module:name`.

    Raises:
        ServeError: for what is not there, or fails while it is imported.
    """
    source, _, name = place.rpartition(":")
    try:
        module = _import_file(directory / source) if _is_file(source) else importlib.import_module(source)
    except Exception as error:
        # Code of the user ran; whatever it raised keeps the server from starting.
        raise ServeError(f"{source!r} cannot be imported: {type(error).__name__}: {error}") from error
    if not hasattr(module, name):
        names = ", ".join(sorted(each for each in vars(module) if not each.startswith("_"))[:20])
        raise ServeError(f"{source!r} has no {name!r}; it has: {names}.")
    return getattr(module, name)


def _is_file(source: str) -> bool:
    return source.endswith(".py") or "/" in source


def _import_file(path: Path) -> ModuleType:
    path = path.resolve()
    # Under its own name, so that what a checkpoint holds of the module is found again.
    name = path.stem
    if (known := sys.modules.get(name)) and getattr(known, "__file__", None) == str(path):
        return known
    if known or name in sys.stdlib_module_names:
        name = f"served_{name}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ImportError(f"there is no file {path.name}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
