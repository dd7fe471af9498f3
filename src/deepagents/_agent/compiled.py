"""The compiled graph of an agent, whose streams show what `invoke` returns."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from inspect import signature
from typing import Any, Self, TypeVar, cast

from langgraph.graph.state import CompiledStateGraph

from deepagents._state.runtime import LatestValue

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
    def stream(self, *given: Any, **options: Any) -> Iterator[Any]:
        """Stream a run, as LangGraph does; `output_keys` are those of the result unless others are named."""
        return cast(Any, super()).stream(*given, **self._showing(options))

    @_signed_as_inherited
    def astream(self, *given: Any, **options: Any) -> AsyncIterator[Any]:
        """Stream a run, awaiting."""
        return cast(Any, super()).astream(*given, **self._showing(options))

    def _showing(self, options: dict[str, Any]) -> dict[str, Any]:
        named = options.get("output_keys")
        return {**options, "output_keys": self.output_channels if named is None else named}
