"""The compiled graph of an agent, whose streams show what `invoke` returns."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph

from deepagents._channels import LatestValue


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

    def stream(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        *,
        output_keys: str | Sequence[str] | None = None,
        **options: Any,
    ) -> Iterator[Any]:
        """Stream a run, as LangGraph does; `output_keys` are those of the result unless others are named."""
        keys = self.output_channels if output_keys is None else output_keys
        graph: Any = super()
        return graph.stream(input, config, output_keys=keys, **options)

    def astream(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        *,
        output_keys: str | Sequence[str] | None = None,
        **options: Any,
    ) -> AsyncIterator[Any]:
        """Stream a run, awaiting."""
        keys = self.output_channels if output_keys is None else output_keys
        graph: Any = super()
        return graph.astream(input, config, output_keys=keys, **options)
