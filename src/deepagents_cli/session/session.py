"""Drive a thread of an agent: show events, ask about calls, go on with the decisions."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import aclosing, contextmanager
from pathlib import Path
from socket import socketpair
from typing import Any, TypeAlias

import aiosqlite
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END
from langgraph.types import Command

from deepagents.checkpoints import OrderedCheckpoints
from deepagents.events import (
    ApprovalGiven,
    ApprovalNeeded,
    ApprovalRequest,
    Event,
    QuestionAsked,
    RunFailed,
    RunStarted,
    RunStopped,
)
from deepagents.observe import Observer, aobserve, resume_with
from deepagents_cli.approval.questions import Decision
from deepagents_cli.errors import CommandError
from deepagents_cli.session.threads import BUSY_SECONDS

Show: TypeAlias = Callable[[Event], None]
Ask: TypeAlias = Callable[[ApprovalRequest, str | None], Decision]
"""Decides about one call of an agent, the main one or that of the label."""
Waiting: TypeAlias = ApprovalNeeded | QuestionAsked
"""What a person is waited for."""


class _Saver(OrderedCheckpoints, AsyncSqliteSaver):
    """Finds what was written last also after the clock was set back."""


async def open_saver(path: Path) -> AsyncSqliteSaver:
    """Open the file that keeps the checkpoints; the caller closes its connection."""
    connection = await aiosqlite.connect(path, timeout=BUSY_SECONDS)
    # With WAL this loses at most the last steps at a power cut, and never the file.
    await connection.execute("PRAGMA synchronous=NORMAL")
    return _Saver(connection)


def messages_in(state: Any) -> Sequence[BaseMessage]:
    """Return the messages in the state of a thread."""
    return state.values.get("messages") or ()


class Session:
    """A thread of an agent, kept by its checkpointer; what drives it returns what then waits for a person.

    A method that is cancelled leaves the thread as after a crash: what was done is kept.
    """

    def __init__(self, agent: Any, thread: str, show: Show) -> None:
        self.agent = agent
        self.config: RunnableConfig = {"configurable": {"thread_id": thread}}
        self._show = show
        self._observer = Observer()

    async def read(self) -> Any:
        """Return the state of the thread."""
        return await self.agent.aget_state(self.config)

    async def send(self, messages: Sequence[HumanMessage]) -> list[Waiting]:
        """Give the agent messages, and show what it does until it stops."""
        if (await self.read()).tasks:
            # A step was cut off. A new input alone would drop the results of its calls that did end.
            await self.agent.aupdate_state(self.config, None, as_node=END)
        return await self.go_on({"messages": [*messages]})

    async def go_on(self, given: Any = None) -> list[Waiting]:
        """Show what the agent does with an input, with answers, or with what it has left undone."""
        waiting: list[Waiting] = []
        # Each step is saved before the next begins, so that a killed run goes on where it was.
        events = aobserve(self.agent, given, self.config, observer=self._observer, durability="sync")
        async with aclosing(events):
            async for event in events:
                if isinstance(event, ApprovalNeeded | QuestionAsked):
                    waiting.append(event)
                self._show(event)
        return waiting

    def answers(self, decided: Iterable[tuple[ApprovalRequest, Decision]]) -> dict[str, Any]:
        """Return decisions by interrupt, as `go_on` takes them in a `Command`, and show them."""
        decided = list(decided)
        for request, made in decided:
            self._show(
                ApprovalGiven(
                    request.interrupt_id,
                    request.name,
                    made["type"],
                    made.get("message"),
                    request.tool_call_id,
                )
            )
        resume: Any = resume_with(decided).resume
        return resume


def converse(runner: asyncio.Runner, agent: Any, started: RunStarted, *, ask: Ask, show: Show) -> None:
    """Run until the agent has nothing left to do.

    The person is asked between two turns of the event loop, so that Ctrl-C works at the question too.

    Raises:
        CommandError: when there is nothing to take up and no task.
    """
    session = Session(agent, started.thread, show)
    try:
        with _wake_by_signals(runner.get_loop()):
            waiting = runner.run(_begin(session, started, show))
            while requests := [
                (each, needed.agent)
                for needed in waiting
                if isinstance(needed, ApprovalNeeded)
                for each in needed.requests
            ]:
                decided = ((each, ask(each, label)) for each, label in requests)
                waiting = runner.run(session.go_on(Command(resume=session.answers(decided))))
    except KeyboardInterrupt:
        show(RunStopped(started.thread))
        raise
    except CommandError:
        raise
    except Exception as error:
        show(RunFailed(type(error).__name__, str(error)))
        raise


async def _begin(session: Session, started: RunStarted, show: Show) -> Sequence[Waiting]:
    """Give the agent its task; without one take up what a stop or a crash left undone."""
    if started.task is not None:
        show(started)
        return await session.send([HumanMessage(started.task)])
    state = await session.read()
    if not state.tasks:
        raise CommandError(
            'Nothing is left to do in this thread; give it a task: deepagents --continue "TASK"'
        )
    show(started)
    # Also where a question waits: an agent that stops again says anew what it may do unasked.
    return await session.go_on()


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
