"""Run a graph and name what it streams as clients of the protocol expect."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final, cast

from langchain_core.messages import BaseMessage, BaseMessageChunk, message_chunk_to_message
from langgraph.types import Command, Send

from deepagents._values import field, recordclass
from deepagents_server.graphs import Graph

STREAM_MODES: Final = (
    "values", "updates", "custom", "messages", "messages-tuple", "tasks", "checkpoints", "debug", "events"
)  # fmt: skip
_OPTIONS: Final = ("interrupt_before", "interrupt_after", "context")

Named = tuple[str, Any]


@recordclass
class Request:
    """What a run asks of a graph."""

    input: Any
    config: dict[str, Any]
    modes: Sequence[str]
    subgraphs: bool = False
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    ends_here: Callable[[], Awaitable[bool]] | None = None
    """Asked before each step whether the run is to end without it."""
    on_result: Callable[[], Awaitable[None]] | None = None
    """Called after the events of a task's result, and before the checkpoint that holds it."""
    last_values: Any = None
    """What the graph showed of its state at the end; `None` if that must be read from the checkpoint."""

    @classmethod
    def of(cls, kwargs: Mapping[str, Any], config: dict[str, Any]) -> Request:
        """Read what a client sent."""
        modes = kwargs.get("stream_mode") or ["values"]
        command = as_command(kwargs.get("command") or {})
        return cls(
            kwargs.get("input") if command is None else command,
            config,
            [modes] if isinstance(modes, str) else list(modes),
            bool(kwargs.get("stream_subgraphs")),
            {name: kwargs[name] for name in _OPTIONS if kwargs.get(name) is not None},
        )


def as_command(given: Mapping[str, Any]) -> Command[Any] | None:
    """Read a command: where to go, what to change, what to answer; `None` if it says nothing."""
    goto, update, resume = (given.get(name) for name in ("goto", "update", "resume"))
    if not goto and update is None and resume is None:
        return None
    targets = cast(list[Any], goto) if isinstance(goto, list) else [goto] if goto else []
    sent = [_target(each) for each in targets]
    if isinstance(update, list):
        # LangGraph looks for tuples, of which JSON makes lists.
        update = [(name, value) for name, value in cast(list[list[Any]], update)]
    return Command(update=update, resume=resume, goto=cast(Any, sent))


def _target(given: Any) -> Any:
    if not isinstance(given, dict):
        return given
    sent = cast(dict[str, Any], given)
    return Send(sent["node"], sent.get("input"))


async def stream_graph(graph: Graph, request: Request) -> AsyncGenerator[Named]:
    """Yield the events of a run, named, in the order in which they happen."""
    stream = _stream_events if "events" in request.modes else _stream
    async with aclosing(stream(graph, request)) as events:
        async for event in events:
            yield event


def _graph_modes(modes: Sequence[str]) -> list[str]:
    """Return the modes as LangGraph names them."""
    named = ("messages" if mode == "messages-tuple" else mode for mode in modes)
    return [*dict.fromkeys(mode for mode in named if mode != "events")]


async def _stream(graph: Graph, request: Request) -> AsyncGenerator[Named]:
    name = _Names(request.modes)
    parts: Any = graph.astream(
        request.input,
        cast(Any, request.config),
        # Tasks tell that a step begins, and values what it has left; both cost next to nothing.
        stream_mode=[*{*_graph_modes(request.modes), "tasks", "values"}],
        subgraphs=request.subgraphs,
        durability="sync",
        **request.options,
    )
    values, unfinished = None, set[str]()
    async with aclosing(parts) as opened:
        async for part in opened:
            namespace, mode, data = part if request.subgraphs else ((), *part)
            if mode == "tasks" and await _ends(request, namespace, data):
                return
            if not namespace:
                values = data if mode == "values" else values
                _follow(unfinished, data if mode == "tasks" else {})
            for named in name(mode, namespace, data):
                yield named
            if request.on_result and _is_result(mode, data):
                await request.on_result()
    if not unfinished and not _may_stop(graph, request):
        request.last_values = values


def _is_result(mode: str, data: Any) -> bool:
    """Tell whether a task has a result now, perhaps one that a former attempt has left."""
    return "triggers" not in data if mode == "tasks" else mode == "updates" and "__metadata__" in data


def _follow(unfinished: set[str], task: Mapping[str, Any]) -> None:
    """Note which tasks have begun, and drop those that have a result and no question."""
    if "triggers" in task:
        unfinished.add(task["id"])
    elif task and not task["interrupts"]:
        unfinished.discard(task["id"])


def _may_stop(graph: Graph, request: Request) -> bool:
    """Tell whether a run may end between two nodes."""
    asked = request.options.keys() & {"interrupt_before", "interrupt_after"}
    return bool(asked or graph.interrupt_before_nodes or graph.interrupt_after_nodes)


async def _ends(request: Request, namespace: Sequence[str], task: Mapping[str, Any]) -> bool:
    """Tell whether a run is to end before this task, which is about to begin."""
    begins = not namespace and "triggers" in task
    return begins and request.ends_here is not None and await request.ends_here()


async def _stream_events(graph: Graph, request: Request) -> AsyncGenerator[Named]:
    name = _Names(request.modes)
    modes = _graph_modes(request.modes)
    events: Any = graph.astream_events(
        request.input,
        cast(Any, request.config),
        version="v2",
        stream_mode=cast(Any, modes or ["values"]),
        subgraphs=True,
        durability="sync",
        **request.options,
    )
    async with aclosing(events) as opened:
        async for event in opened:
            yield "events", event
            namespace, mode, data = _part_of(event) or ((), "", None)
            wanted = mode in modes and (request.subgraphs or not namespace)
            for named in name(mode, namespace, data) if wanted else ():
                yield named


def _part_of(event: Any) -> tuple[Any, str, Any] | None:
    """Return what the graph itself streamed, if this event is about that."""
    chunk = event["data"].get("chunk")
    if event["event"] != "on_chain_stream" or event["parent_ids"] or not isinstance(chunk, tuple):
        return None
    return cast(tuple[Any, str, Any], chunk)


class _Names:
    """Names the parts of one run's stream; the older mode of messages needs what came before."""

    def __init__(self, modes: Sequence[str]) -> None:
        self._graph_modes = _graph_modes(modes)
        self._tuples = "messages-tuple" in modes
        self._whole = "messages" in modes
        self._seen: dict[str, BaseMessage] = {}

    def __call__(self, mode: str, namespace: Sequence[str], data: Any) -> list[Named]:
        if mode not in self._graph_modes:
            return []
        tail = "".join(f"|{part}" for part in namespace)
        if mode != "messages":
            return [(f"{mode}{tail}", data)]
        tuples: list[Named] = [(f"messages{tail}", list(data))] if self._tuples else []
        return tuples + (self._grow(tail, *data) if self._whole else [])

    def _grow(self, tail: str, message: BaseMessage, metadata: Any) -> list[Named]:
        key = str(message.id)
        before = self._seen.get(key)
        if not isinstance(message, BaseMessageChunk):
            self._seen[key] = message
            return (
                []
                if before is not None
                else [self._first(tail, key, metadata), (f"messages/complete{tail}", [message])]
            )
        grown = before + message if isinstance(before, BaseMessageChunk) else message
        self._seen[key] = cast(BaseMessage, grown)
        first = [] if before is not None else [self._first(tail, key, metadata)]
        # As LangGraph's server sends it: with the type of a message, not of a part of one.
        return [*first, (f"messages/partial{tail}", [message_chunk_to_message(cast(Any, grown))])]

    @staticmethod
    def _first(tail: str, key: str, metadata: Any) -> Named:
        return f"messages/metadata{tail}", {key: {"metadata": metadata}}
