"""Drive a session to its end: show events, ask about calls, go on with the decisions."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, contextmanager
from socket import socketpair
from typing import Protocol, TypeAlias

from deepagents.events import ApprovalGiven, ApprovalNeeded, Event, RunFailed, RunStarted, RunStopped
from deepagents_cli.errors import CommandError
from deepagents_cli.session import Decisions, Session

Show: TypeAlias = Callable[[Event], None]


class Ask(Protocol):
    """Decides about calls that wait."""

    def __call__(self, needed: ApprovalNeeded, report: Callable[[ApprovalGiven], None]) -> Decisions: ...


def converse(runner: asyncio.Runner, session: Session, started: RunStarted, *, ask: Ask, show: Show) -> None:
    """Run until the agent has nothing left to do.

    The person is asked between two turns of the event loop, so that Ctrl-C works at the question too.

    Raises:
        CommandError: when there is nothing to take up and no task.
    """
    try:
        with _wake_by_signals(runner.get_loop()):
            _converse(runner, session, started, ask, show)
    except KeyboardInterrupt:
        show(RunStopped(session.thread))
        raise
    except CommandError:
        raise
    except Exception as error:
        show(RunFailed(type(error).__name__, str(error)))
        raise


def _converse(runner: asyncio.Runner, session: Session, started: RunStarted, ask: Ask, show: Show) -> None:
    waiting = runner.run(_begin(session, started, show))
    while waiting:
        decisions = {interrupt: made for needed in waiting for interrupt, made in ask(needed, show).items()}
        waiting = runner.run(_drain(session.answer(decisions), show))


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


async def _begin(session: Session, started: RunStarted, show: Show) -> list[ApprovalNeeded]:
    if started.task is not None:
        show(started)
        return await _drain(session.send(started.task), show)
    if not await session.is_cut():
        raise CommandError(
            'Nothing is left to do in this thread; give it a task: deepagents run --continue "TASK"'
        )
    show(started)
    if needed := await session.pending():
        show(needed)
        return [needed]
    return await _drain(session.resume(), show)


async def _drain(events: AsyncGenerator[Event], show: Show) -> list[ApprovalNeeded]:
    waiting: list[ApprovalNeeded] = []
    async with aclosing(events):
        async for event in events:
            if isinstance(event, ApprovalNeeded):
                waiting.append(event)
            show(event)
    return waiting
