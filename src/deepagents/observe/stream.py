"""Run an agent and read what it does as events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import closing
from typing import Any, Final, cast

from langgraph.types import Command, StateSnapshot

from deepagents._async import IOCall, run, stream_after
from deepagents.events import Event
from deepagents.observe.observer import Chunk, Observer, interrupts_to_event

__all__ = ["Chunk", "Observer", "aobserve", "interrupts_to_event", "observe"]

STREAM: Final[Mapping[str, Any]] = {
    "stream_mode": ["messages", "updates", "custom", "tasks"],
    "subgraphs": True,
}
"""How to call `stream` for the chunks that an `Observer` takes."""


def observe(
    agent: Any, given: Any, config: Any = None, *, observer: Observer | None = None, **options: Any
) -> Generator[Event]:
    """Stream a run as events; `given` is an input, a `Command`, or `None` to take up pending steps.

    `options` are those of LangGraph's `stream`. A new observer first reads the thread, where one is kept, so
    that subagents go on under their labels. Closing the events stops the run.
    """
    watching = observer or Observer()
    run(_recall(watching, agent, given, config))
    with closing(agent.stream(given, config, **STREAM, **options)) as chunks:
        for chunk in chunks:
            yield from watching.see(chunk)
    yield from watching.end()


def aobserve(
    agent: Any, given: Any, config: Any = None, *, observer: Observer | None = None, **options: Any
) -> AsyncGenerator[Event]:
    """Stream an agent's run as events, awaiting."""
    watching = observer or Observer()
    chunks: AsyncGenerator[Chunk] = agent.astream(given, config, **STREAM, **options)
    return stream_after(_recall(watching, agent, given, config), chunks, watching.see, watching.end)


async def _recall(observer: Observer, agent: Any, given: Any, config: Any) -> None:
    if not _is_to_be_read(agent, config, observer):
        return
    reading: IOCall[StateSnapshot] = IOCall(lambda: agent.get_state(config), lambda: agent.aget_state(config))
    state = await reading
    values: Any = state.values
    found: Any = cast("Mapping[str, Any]", values).get("messages") if isinstance(values, Mapping) else None
    undone = given is None
    observer.recall(found or [], resuming=undone or isinstance(given, Command), was_cut_off=undone)


def _is_to_be_read(agent: Any, config: Any, observer: Observer) -> bool:
    given = cast("Mapping[str, Any]", config or {})
    configurable: Mapping[str, Any] = given.get("configurable") or {}
    kept = getattr(agent, "checkpointer", None) not in (None, False, True)
    return observer.is_new and kept and "thread_id" in configurable
