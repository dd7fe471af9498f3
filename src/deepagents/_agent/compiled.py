"""The compiled graph of an agent, whose streams show what `invoke` returns."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, closing
from dataclasses import dataclass
from inspect import signature
from typing import Any, Self, TypeVar, cast

from langchain_core.messages import ToolMessage
from langgraph.graph.state import CompiledStateGraph

from deepagents._state.runtime import LatestValue, has_newer_events, stream_through
from deepagents.backends.filedata import show_file_updates

_FILES = "files"

Method = TypeVar("Method", bound=Callable[..., Any])


def _signed_as_inherited(own: Method) -> Method:
    """Let a method say that it takes what LangGraph's of its name takes."""
    theirs: Callable[..., Any] = getattr(CompiledStateGraph, own.__name__)
    vars(own)["__signature__"] = signature(theirs)
    return own


class AgentGraph(CompiledStateGraph[Any, Any, Any, Any]):
    """A compiled graph that keeps private state out of the streams of modes `values` and `updates`.

    `output_keys=agent.stream_channels_list` shows all there is.
    """

    @classmethod
    def of(cls, graph: CompiledStateGraph[Any, Any, Any, Any]) -> Self:
        """Return the same graph as one of this kind, as LangGraph copies a graph.

        Where parallel calls write a key without a reducer, the last of them wins, and no run ends.
        """
        parts = {key: value for key, value in vars(graph).items() if key != "__orig_class__"}
        parts["channels"] = {key: LatestValue.instead_of(each) for key, each in parts["channels"].items()}
        return cls(**parts)

    @_signed_as_inherited
    def stream(self, input: Any, config: Any = None, **options: Any) -> Iterator[Any]:
        """Stream a run, as LangGraph does; `output_keys` are those of the result unless others are named."""
        show = _Shown(failed_subagents=has_newer_events(config))
        with closing(
            cast(Any, super()).stream(input, stream_through(config, show), **self._named(options))
        ) as parts:
            for part in parts:
                yield show.part(part, options.get("stream_mode") or self.stream_mode)

    @_signed_as_inherited
    async def astream(self, input: Any, config: Any = None, **options: Any) -> AsyncIterator[Any]:
        """Stream a run, awaiting."""
        show = _Shown(failed_subagents=has_newer_events(config))
        async with aclosing(
            cast(Any, super()).astream(input, stream_through(config, show), **self._named(options))
        ) as parts:
            async for part in parts:
                yield show.part(part, options.get("stream_mode") or self.stream_mode)

    def _named(self, options: dict[str, Any]) -> dict[str, Any]:
        named = options.get("output_keys")
        return {**options, "output_keys": self.output_channels if named is None else named}


@dataclass(frozen=True, slots=True)
class _Shown:
    """What streams show: files where the state takes changes to them, and which subagents failed.

    A subagent that fails is an error result, and its tool call did not fail. Newer events learn from the
    call alone how a subagent ended, so there the call has the error.
    """

    failed_subagents: bool

    def part(self, part: Any, modes: Any) -> Any:
        """Return a part of a stream in the form that it came in, which the modes and the version tell."""
        if isinstance(part, dict) and "data" in part and "ns" in part:
            return {**part, "data": self(part["type"], part["data"])}
        if isinstance(modes, str):
            if isinstance(part, tuple) and len(part) == 2 and isinstance(part[0], tuple):
                return part[0], self(modes, part[1])
            return self(modes, part)
        *namespace, mode, data = part
        return (*namespace, mode, self(mode, data))

    def __call__(self, mode: str, data: Any) -> Any:
        """Return what a mode streams."""
        match mode, data:
            case "updates", dict():
                return {node: _written(update) for node, update in data.items()}
            case "tasks", {"result": result}:
                return {**data, "result": _written(result), "error": data["error"] or self._failure(result)}
            case "debug", {"payload": {"result": result} as payload}:
                return {**data, "payload": {**payload, "result": _written(result)}}
            case "checkpoints", {"tasks": tasks}:
                return {**data, "tasks": [_task(each) for each in tasks]}
            case _:
                return data

    def _failure(self, result: Any) -> str | None:
        if not self.failed_subagents or not isinstance(result, dict):
            return None
        said = [each for each in result.get("messages") or () if isinstance(each, ToolMessage)]
        return next((each.text for each in said if each.name == "task" and each.status == "error"), None)


def _task(task: Any) -> Any:
    return {**task, "result": _written(task["result"])} if "result" in task else task


def _written(update: Any) -> Any:
    if isinstance(update, list):
        return [_written(each) for each in update]
    if not isinstance(update, dict) or not isinstance(files := update.get(_FILES), dict):
        return update
    writes = files.get("$writes")
    if isinstance(writes, list):
        return {**update, _FILES: {"$writes": [show_file_updates(each) for each in writes]}}
    return {**update, _FILES: show_file_updates(files)}
