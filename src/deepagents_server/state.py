"""Read and change what threads hold, outside of runs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

from langgraph.errors import InvalidUpdateError
from langgraph.types import StateSnapshot

from deepagents._values import valueclass
from deepagents_server.database.engine import Row
from deepagents_server.database.runs import CHECKPOINT
from deepagents_server.database.tables import server_time, threads
from deepagents_server.errors import ApiError
from deepagents_server.graphs import Graph
from deepagents_server.runs.execute import visible_values
from deepagents_server.serialize import dump_text, show_checkpoint, show_interrupts
from deepagents_server.server import Server


@valueclass
class ThreadGraph:
    """The graph that has worked on a thread."""

    graph: Graph
    thread_id: str

    def config(self, checkpoint: Mapping[str, Any]) -> dict[str, Any]:
        """Name the thread, or one of its checkpoints."""
        named = {name: checkpoint[name] for name in CHECKPOINT if checkpoint.get(name) is not None}
        return {"configurable": {"checkpoint_ns": "", **named, "thread_id": self.thread_id}}


@asynccontextmanager
async def open_graph(server: Server, thread: Row) -> AsyncGenerator[ThreadGraph | None]:
    """Open the graph of a thread; `None` if no run has named it."""
    graph_id: Any = thread["metadata"].get("graph_id")
    if not isinstance(graph_id, str) or graph_id not in server.graphs:
        yield None
        return
    async with server.graphs.open(graph_id) as graph:
        yield ThreadGraph(graph, thread["thread_id"])


async def read_state(opened: ThreadGraph, config: Mapping[str, Any], *, subgraphs: bool) -> StateSnapshot:
    """Return a state of a thread.

    Raises:
        ApiError: if the graph cannot make it of what a run has left, such as an input that was none.
    """
    try:
        return await opened.graph.aget_state(cast(Any, config), subgraphs=subgraphs)
    except (ValueError, TypeError, LookupError, AttributeError, NotImplementedError) as error:
        # Functions of the graph put it together.
        raise ApiError(
            409, f"The graph cannot read this state, after a run that failed: {str(error)[:200]}"
        ) from error


def read_shown(graph: Graph, state: StateSnapshot) -> dict[str, Any]:
    """Return the columns by which a thread shows the state that it has."""
    return {
        "values": dump_text(visible_values(graph, state.values)),
        "interrupts": dump_text(show_interrupts(state)),
        "status": "interrupted" if state.tasks else "idle",
        "state_updated_at": server_time(),
        "updated_at": server_time(),
        "error": None,
    }


async def update_state(
    server: Server, thread: Row, values: Any, as_node: str | None, checkpoint: Mapping[str, Any]
) -> dict[str, Any]:
    """Change a thread's state at a checkpoint as if a node had done it; return the new checkpoint.

    Raises:
        ApiError: if the thread has no graph, is at work, or the change does not fit.
    """
    async with open_graph(server, thread) as opened:
        if opened is None:
            raise ApiError(400, "No graph has worked on this thread; name one as graph_id in its metadata.")
        if thread["status"] == "busy":
            raise ApiError(409, "The thread is busy with a run; wait for it, or cancel it.")
        try:
            config = await opened.graph.aupdate_state(cast(Any, opened.config(checkpoint)), values, as_node)
        except (InvalidUpdateError, ValueError, TypeError, KeyError) as error:
            raise ApiError(400, f"The state cannot be changed so: {str(error)[:500]}") from error
        shown = read_shown(opened.graph, await opened.graph.aget_state(cast(Any, opened.config({}))))
    await server.database.execute(
        threads.update().where(threads.c.thread_id == thread["thread_id"]).values(shown)
    )
    made = show_checkpoint(config) or {}
    return {
        "checkpoint": made,
        "configurable": config["configurable"],
        "checkpoint_id": made["checkpoint_id"],
    }
