"""Run an agent and read what it does as events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any, Final, cast

from langgraph.types import Command, StateSnapshot

from deepagents.events import Event
from deepagents.observe.approvals import interrupts_to_event
from deepagents.observe.observer import Chunk, Observer

__all__ = ["Chunk", "Observer", "aobserve", "interrupts_to_event", "observe"]

STREAM: Final[Mapping[str, Any]] = {
    "stream_mode": ["messages", "updates", "custom", "tasks"],
    "subgraphs": True,
}
"""How to call `stream` for the chunks that an `Observer` takes."""


def observe(
    agent: Any, given: Any, config: Any = None, *, observer: Observer | None = None, **options: Any
) -> Iterator[Event]:
    """Stream a run as events; `given` is an input, a `Command`, or `None` to take up pending steps.

    `options` are those of LangGraph's `stream`. A new observer first reads the thread, where one is kept, so
    that subagents go on under their labels.
    """
    watching = observer or Observer()
    if _is_to_be_read(agent, config, watching):
        _read(watching, agent.get_state(config), given)
    for chunk in agent.stream(given, config, **STREAM, **options):
        yield from watching.see(chunk)
    yield from watching.end()


def aobserve(
    agent: Any, given: Any, config: Any = None, *, observer: Observer | None = None, **options: Any
) -> AsyncIterator[Event]:
    """Stream an agent's run as events, awaiting."""
    watching = observer or Observer()
    chunks: AsyncIterator[Chunk] = agent.astream(given, config, **STREAM, **options)
    steps = [_recalled(watching, agent, given, config)] if _is_to_be_read(agent, config, watching) else []
    return _joined([*steps, _seen(watching, chunks), _ended(watching)])


def _joined(parts: Iterable[AsyncIterator[Iterable[Event]]]) -> AsyncIterator[Event]:
    return (event for part in parts async for some in part for event in some)


async def _recalled(
    observer: Observer, agent: Any, given: Any, config: Any
) -> AsyncIterator[Iterable[Event]]:
    yield _read(observer, await agent.aget_state(config), given)


async def _seen(observer: Observer, chunks: AsyncIterator[Chunk]) -> AsyncIterator[Iterable[Event]]:
    async for chunk in chunks:
        yield observer.see(chunk)


async def _ended(observer: Observer) -> AsyncIterator[Iterable[Event]]:
    yield observer.end()


def _is_to_be_read(agent: Any, config: Any, observer: Observer) -> bool:
    given = cast("Mapping[str, Any]", config or {})
    configurable: Mapping[str, Any] = given.get("configurable") or {}
    kept = getattr(agent, "checkpointer", None) not in (None, False, True)
    return observer.is_new and kept and "thread_id" in configurable


def _read(observer: Observer, state: StateSnapshot, given: Any) -> Iterable[Event]:
    values: Any = state.values
    found: Any = cast("Mapping[str, Any]", values).get("messages") if isinstance(values, Mapping) else None
    observer.recall(found or [], resuming=given is None or isinstance(given, Command))
    return ()
