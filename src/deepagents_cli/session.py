"""Drive a thread of an agent to its end: show events, ask about calls, go on with the decisions."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Generator, Mapping
from contextlib import aclosing, contextmanager
from socket import socketpair
from typing import Any, TypeAlias

from langchain_core.messages import HumanMessage
from langgraph.types import Command

from deepagents.events import (
    ApprovalGiven,
    ApprovalNeeded,
    ApprovalRequest,
    Event,
    RunFailed,
    RunStarted,
    RunStopped,
)
from deepagents.observe import Observer, aobserve, interrupts_to_event
from deepagents_cli.errors import CommandError

Show: TypeAlias = Callable[[Event], None]
Decision: TypeAlias = Mapping[str, Any]
Ask: TypeAlias = Callable[[ApprovalRequest, str | None], Decision]
"""Decides about one call of an agent, the main one or that of the label."""


def converse(runner: asyncio.Runner, agent: Any, started: RunStarted, *, ask: Ask, show: Show) -> None:
    """Run until the agent has nothing left to do.

    The person is asked between two turns of the event loop, so that Ctrl-C works at the question too.

    Raises:
        CommandError: when there is nothing to take up and no task.
    """
    session = _Session(agent, started.thread, show)
    try:
        with _wake_by_signals(runner.get_loop()):
            waiting = runner.run(session.begin(started))
            while waiting:
                waiting = runner.run(session.work(_decide(waiting, ask, show)))
    except KeyboardInterrupt:
        show(RunStopped(started.thread))
        raise
    except CommandError:
        raise
    except Exception as error:
        show(RunFailed(type(error).__name__, str(error)))
        raise


class _Session:
    """A thread of an agent, kept by its checkpointer; each method returns the calls that then wait."""

    def __init__(self, agent: Any, thread: str, show: Show) -> None:
        self._agent = agent
        self._config = {"configurable": {"thread_id": thread}}
        self._show = show
        self._observer = Observer()

    async def begin(self, started: RunStarted) -> list[ApprovalNeeded]:
        """Give the agent its task; without one take up what a stop or a crash left undone."""
        if started.task is not None:
            self._show(started)
            return await self.work({"messages": [HumanMessage(started.task)]})
        state = await self._agent.aget_state(self._config)
        if not state.tasks:
            raise CommandError(
                'Nothing is left to do in this thread; give it a task: deepagents --continue "TASK"'
            )
        self._show(started)
        if needed := interrupts_to_event(state.interrupts):
            self._show(needed)
            return [needed]
        return await self.work(None)

    async def work(self, given: Any) -> list[ApprovalNeeded]:
        """Show what the agent does until it stops."""
        waiting: list[ApprovalNeeded] = []
        # Each step is saved before the next begins, so that a killed run goes on where it was.
        events = aobserve(self._agent, given, self._config, observer=self._observer, durability="sync")
        async with aclosing(events):
            async for event in events:
                if isinstance(event, ApprovalNeeded):
                    waiting.append(event)
                self._show(event)
        return waiting


def _decide(waiting: list[ApprovalNeeded], ask: Ask, show: Show) -> Command[Any]:
    """Ask about each call that waits, and return the decisions by interrupt."""
    resume: dict[str, dict[str, list[Decision]]] = {}
    for needed in waiting:
        for request in needed.requests:
            made = ask(request, needed.agent)
            resume.setdefault(request.interrupt_id, {"decisions": []})["decisions"].append(made)
            show(
                ApprovalGiven(
                    request.interrupt_id,
                    request.name,
                    made["type"],
                    made.get("message"),
                    request.tool_call_id,
                )
            )
    return Command(resume=resume)


@contextmanager
def _wake_by_signals(loop: asyncio.AbstractEventLoop) -> Generator[None]:
    """Let a signal wake the loop, even one that arrives in the moment before the loop begins to wait."""
    reading, writing = socketpair()
    with reading, writing:
        reading.setblocking(False)
        writing.setblocking(False)
        loop.add_reader(reading, reading.recv, 1 << 12)
        # Python runs a handler only between two steps, and a loop that sleeps takes none.
        before = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            loop.remove_reader(reading)
