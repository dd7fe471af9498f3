"""Compile the graph of an agent, whose streams show what `invoke` returns, and its version in traces."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from contextlib import aclosing, closing
from functools import cache
from importlib.metadata import distribution
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, cast
from urllib.parse import unquote, urlsplit

from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph

from deepagents._state.channels import LatestValue
from deepagents._state.run_end import aending, ending
from deepagents._state.runtime import channels_of, has_newer_events, is_saved_from_outside, stream_through
from deepagents._values import valueclass
from deepagents._version import __version__
from deepagents.backends.state import show_file_updates
from deepagents.middleware.subagents.task import TASK

if TYPE_CHECKING:
    from deepagents.undo import FileHistory

_NO_THREAD: Final = (
    "Checkpointer requires one or more of the following 'configurable' keys: thread_id, checkpoint_ns, "
    'checkpoint_id; name the conversation: config={"configurable": {"thread_id": "1"}}'
)
Method = TypeVar("Method", bound=Callable[..., Any])


# The record is read from disk, and does not change under a running process.
@cache
def trace_version() -> str:
    """Return the version that traces show; a checkout that somebody works in is marked, as PEP 440 has it."""
    if not _is_editable():
        return __version__
    return f"{__version__}.editable" if "+" in __version__ else f"{__version__}+editable"


def _is_editable() -> bool:
    try:
        record: dict[str, Any] = json.loads(distribution("deepagents").read_text("direct_url.json") or "{}")
        url: str = record["url"]
        root = Path(unquote(urlsplit(url).path)).resolve()
        return bool(record["dir_info"]["editable"]) and root in Path(__file__).resolve().parents
    except (AttributeError, ImportError, LookupError, OSError, TypeError, ValueError):
        # A broken record must not keep an agent from being built: the version is for traces alone.
        return False


def _sign_as_inherited(own: Method) -> Method:
    """Let a method say that it takes what LangGraph's of its name takes."""
    theirs: Callable[..., Any] = getattr(CompiledStateGraph, own.__name__)
    # `**options` alone would hide the parameters of LangGraph from `inspect.signature`.
    vars(own)["__signature__"] = signature(theirs)
    return own


class AgentGraph(CompiledStateGraph[Any, Any, Any, Any]):
    """A compiled graph that keeps private state out of the streams of modes `values` and `updates`.

    `output_keys=agent.stream_channels_list` shows all there is.
    """

    def __init__(self, *, file_history: FileHistory | None = None, **parts: Any) -> None:
        """Take what LangGraph's graph takes, and what keeps the files that the agent changes."""
        super().__init__(**parts)
        self.file_history = file_history

    @classmethod
    def of(
        cls, graph: CompiledStateGraph[Any, Any, Any, Any], file_history: FileHistory | None = None
    ) -> Self:
        """Return the same graph as one of this kind, as LangGraph copies a graph.

        Where parallel calls write a key without a reducer, the last of them wins, and no run ends.
        """
        # `Graph[...]()` leaves `__orig_class__` on the instance, and the constructor does not take it.
        parts = {key: value for key, value in vars(graph).items() if key != "__orig_class__"}
        parts["channels"] = {key: LatestValue.instead_of(each) for key, each in parts["channels"].items()}
        return cls(**parts, file_history=file_history)

    @_sign_as_inherited
    def stream(self, input: Any, config: Any = None, **options: Any) -> Iterator[Any]:
        """Stream a run, as LangGraph does; `output_keys` are those of the result unless others are named.

        Raises:
            TypeError: for an input that is not a state, such as a text alone.
            ValueError: where a checkpointer is, and no `thread_id`.
        """
        self._check_run(input, config)
        view = _StreamView(shows_failures=has_newer_events(config))
        # Closed here: a reader that stops early ends the run at once, not when the generator is collected.
        with (
            ending(config) as config,
            closing(
                cast(Any, super()).stream(
                    input, stream_through(config, view.rewrite), **self._name_output_keys(options)
                )
            ) as parts,
        ):
            for part in parts:
                yield view.rewrite_part(part, options.get("stream_mode") or self.stream_mode)

    @_sign_as_inherited
    async def astream(self, input: Any, config: Any = None, **options: Any) -> AsyncIterator[Any]:
        """Stream a run, awaiting."""
        self._check_run(input, config)
        view = _StreamView(shows_failures=has_newer_events(config))
        async with (
            aending(config) as config,
            aclosing(
                cast(Any, super()).astream(
                    input, stream_through(config, view.rewrite), **self._name_output_keys(options)
                )
            ) as parts,
        ):
            async for part in parts:
                yield view.rewrite_part(part, options.get("stream_mode") or self.stream_mode)

    def _check_run(self, given: Any, config: RunnableConfig | None) -> None:
        _check_input(given, channels_of(self) or {})
        # LangGraph only asks whether anything is configured, and a run of ours always configures something.
        if isinstance(cast(Any, self).checkpointer, BaseCheckpointSaver) and not is_saved_from_outside(
            config
        ):
            configs = (ensure_config(config), self.config or RunnableConfig())
            if not any("thread_id" in each.get("configurable", {}) for each in configs):
                raise ValueError(_NO_THREAD)

    def _name_output_keys(self, options: dict[str, Any]) -> dict[str, Any]:
        named = options.get("output_keys")
        return {**options, "output_keys": self.output_channels if named is None else named}


def _check_input(given: Any, keys: Collection[str]) -> None:
    if isinstance(given, str | list | BaseMessage):
        shown = repr(cast(Any, given))
        raise TypeError(f'an agent takes a state, got {shown}; write agent.invoke({{"messages": {shown}}})')
    # LangGraph drops keys that it does not know, and the model would be asked with no message.
    if isinstance(given, dict) and given and cast("dict[str, Any]", given).keys().isdisjoint(keys):
        found = ", ".join(map(repr, cast("dict[str, Any]", given)))
        raise TypeError(f'no key of this state is known to the agent: {found}; write {{"messages": ...}}')


@valueclass
class _StreamView:
    """Rewrites the parts of a stream for readers: files instead of changes to them, and failed subagents.

    A subagent that fails is an error result, so its tool call did not fail. Newer events learn from the
    call alone how a subagent ended, so there the call gets the error.
    """

    shows_failures: bool

    def rewrite_part(self, part: Any, modes: Any) -> Any:
        """Rewrite a part in the form that it came in, which depends on modes, subgraphs and version."""
        if isinstance(part, dict):
            whole = cast("dict[str, Any]", part)
            if {"type", "ns", "data"} <= whole.keys():
                return {**whole, "data": self.rewrite(whole["type"], whole["data"])}
        if not isinstance(modes, str):
            *namespace, mode, data = cast("Sequence[Any]", part)
            return (*namespace, mode, self.rewrite(mode, data))
        # Mode `messages` streams pairs as well, but only a namespace is itself a tuple.
        if isinstance(part, tuple) and isinstance(part[0], tuple):
            namespace, data = cast("tuple[Any, Any]", part)
            return namespace, self.rewrite(modes, data)
        return self.rewrite(modes, part)

    def rewrite(self, mode: str, data: Any) -> Any:
        """Rewrite what one mode streams."""
        match mode, data:
            case "updates", dict():
                updates = cast("dict[str, Any]", data)
                return {node: _with_files(update) for node, update in updates.items()}
            case "tasks", {"result": result}:
                error = data["error"] or self._failure(result)
                return {**data, "result": _with_files(result), "error": error}
            case "debug", {"payload": {"result": result}}:
                return {**data, "payload": {**data["payload"], "result": _with_files(result)}}
            case "checkpoints", {"tasks": tasks}:
                return {**data, "tasks": [_with_result(task) for task in tasks]}
            case _:
                return data

    def _failure(self, result: Any) -> str | None:
        messages: Any = cast("dict[str, Any]", result).get("messages") if isinstance(result, dict) else None
        if not self.shows_failures or not isinstance(messages, list):
            return None
        for message in cast("list[Any]", messages):
            if isinstance(message, ToolMessage) and message.name == TASK.name and message.status == "error":
                return message.text
        return None


def _with_result(task: dict[str, Any]) -> dict[str, Any]:
    return {**task, "result": _with_files(task["result"])} if "result" in task else task


def _with_files(update: Any) -> Any:
    """Return an update, or a list of them, with files instead of changes to them."""
    if isinstance(update, list):
        return [_with_files(each) for each in cast("list[Any]", update)]
    if not isinstance(update, dict):
        return update
    written = cast("dict[str, Any]", update)
    files: Any = written.get("files")
    if not isinstance(files, dict):
        return written
    # LangGraph gathers several writes of one task to one channel under this key.
    several: Any = cast("dict[str, Any]", files).get("$writes")
    if isinstance(several, list):
        shown = {"$writes": [show_file_updates(each) for each in cast("list[Any]", several)]}
    else:
        shown = show_file_updates(cast("dict[str, Any]", files))
    return {**written, "files": shown}
