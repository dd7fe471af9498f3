"""Run an agent and read what it does as events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Iterable, Mapping
from contextlib import aclosing, closing
from typing import Any, Final, TypeAlias, cast

from langchain_core.runnables import RunnableConfig
from langgraph.pregel.protocol import PregelProtocol
from langgraph.types import Command, StateSnapshot

from deepagents._async import IOCall, arun, run
from deepagents.events import ApprovalRequest, Event, QuestionAsked
from deepagents.observe.observer import Chunk, Observer, interrupts_to_event

__all__ = ["Chunk", "Observer", "aobserve", "interrupts_to_event", "observe", "resume_with"]

Watchable: TypeAlias = PregelProtocol[Any, Any, Any, Any]
Given: TypeAlias = Mapping[str, Any] | Command[Any] | None

STREAM: Final[Mapping[str, Any]] = {
    "stream_mode": ["messages", "updates", "custom", "tasks"],
    "subgraphs": True,
}
"""How to call `stream` for the chunks that an `Observer` takes."""


def observe(
    agent: Watchable,
    given: Given,
    config: RunnableConfig | None = None,
    *,
    observer: Observer | None = None,
    **options: Any,
) -> Generator[Event]:
    """Stream a run as events; `given` is an input, a `Command`, or `None` to take up pending steps.

    `options` are those of LangGraph's `stream`. A new observer first reads the thread, where one is kept, so
    that subagents go on under their labels. Closing the events stops the run.
    """
    watching = observer or Observer()
    run(_recall(watching, agent, given, config))
    with closing(cast(Any, agent).stream(given, config, **STREAM, **options)) as chunks:
        for chunk in chunks:
            yield from watching.see(chunk)
    yield from watching.end()


async def aobserve(
    agent: Watchable,
    given: Given,
    config: RunnableConfig | None = None,
    *,
    observer: Observer | None = None,
    **options: Any,
) -> AsyncGenerator[Event]:
    """Stream an agent's run as events, awaiting."""
    watching = observer or Observer()
    await arun(_recall(watching, agent, given, config))
    # A generator that is left early is otherwise closed by the garbage collector, in another task.
    async with aclosing(cast(Any, agent).astream(given, config, **STREAM, **options)) as chunks:
        async for chunk in chunks:
            for event in watching.see(chunk):
                yield event
    for event in watching.end():
        yield event


def resume_with(answers: Iterable[tuple[ApprovalRequest | QuestionAsked, Any]]) -> Command[Any]:
    """Make the command that continues a run: a decision for each request, and an answer for each question.

    A decision is one of those of `HumanInTheLoopMiddleware`, such as `{"type": "approve"}`. All requests of
    an interrupt are answered together, in the order in which they came.
    """
    resume: dict[str, Any] = {}
    for asked, answer in answers:
        if isinstance(asked, QuestionAsked):
            resume[asked.interrupt_id] = answer
        else:
            resume.setdefault(asked.interrupt_id, {"decisions": []})["decisions"].append(answer)
    return Command(resume=resume)


async def _recall(observer: Observer, agent: Any, given: Given, config: RunnableConfig | None) -> None:
    if not _is_to_be_read(agent, config, observer):
        return
    reading: IOCall[StateSnapshot] = IOCall(lambda: agent.get_state(config), lambda: agent.aget_state(config))
    state = await reading
    values: Any = state.values
    found: Any = cast("Mapping[str, Any]", values).get("messages") if isinstance(values, Mapping) else None
    undone = given is None
    observer.recall(found or [], resuming=undone or isinstance(given, Command), was_cut_off=undone)


def _is_to_be_read(agent: Any, config: RunnableConfig | None, observer: Observer) -> bool:
    configurable = (config or {}).get("configurable") or {}
    kept = getattr(agent, "checkpointer", None) not in (None, False, True)
    return observer.is_new and kept and "thread_id" in configurable
