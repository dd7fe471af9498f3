"""Keep the runs of this process: what a task works in, what it shows, and how it ended."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from concurrent.futures import Future
from concurrent.futures import wait as wait_for_futures
from contextlib import aclosing, closing, nullcontext
from dataclasses import dataclass, field
from functools import cache
from threading import Lock
from typing import Any, Final

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from deepagents._async import IOCall, arun, run, running_loop, start_thread
from deepagents._state.run_end import RunEnd, run_end
from deepagents._state.runtime import outside_of_runs, running_stream
from deepagents._text import describe_exception
from deepagents.middleware.async_subagents.spec import RunStatus
from deepagents.middleware.limits import Budget, counting

_MOST_KEPT: Final = 1_000
"""Threads of which this process remembers the runs; older ones are looked up in their checkpointer."""


class StreamOfCaller:
    """Shows what a task does on the stream of the agent that started it, while that runs and is watched.

    There it stands under the call that started the task.
    """

    def __init__(self) -> None:
        self._stream, self._namespace = running_stream()
        self._modes = ["updates"]
        self._loop = running_loop()
        self._end: RunEnd | None = None
        self.follow()

    def follow(self) -> None:
        """Show it on the stream of the run that asks, until that ends."""
        stream, end = running_stream()[0], run_end()
        # A stream belongs to an event loop, or to a caller that blocks.
        usable = end is not None and self._loop is running_loop()
        self._stream = stream if usable else None
        if self._stream:
            self._modes = list(self._stream.modes)
        if end and end is not self._end:
            self._end = end
            end.add(self._leave)

    async def _leave(self) -> None:
        # Nobody reads it any more, so it would only grow.
        self._stream = None

    def options(self) -> dict[str, Any]:
        """Return how to call `stream` of the task's graph."""
        return {"stream_mode": self._modes, "subgraphs": True}

    def show(self, part: tuple[tuple[str, ...], str, Any]) -> None:
        """Show a part."""
        namespace, mode, data = part
        if (stream := self._stream) and mode in stream.modes:
            stream.write(((*self._namespace, *namespace), mode, data))


@dataclass(eq=False)
class LocalRun:
    """One run of a task. `owner` is what may end it; `before` are the runs whose ends it waits for."""

    owner: object
    graph: Any
    config: RunnableConfig
    given: Any
    context: Any
    run_id: str
    budget: Budget | None
    stream: StreamOfCaller
    before: Sequence[LocalRun] = ()
    ended: Future[None] = field(default_factory=Future[None])
    error: str = ""
    _status: RunStatus = "pending"
    _is_stopped: bool = False
    _task: asyncio.Task[None] | None = None
    _finishing: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        # From here on nobody who waits for it can cancel it.
        self.ended.set_running_or_notify_cancel()

    @property
    def status(self) -> RunStatus:
        """How it stands: `lost` when something else than a wish of ours has ended it."""
        return "interrupted" if not self.has_ended and self._is_stopped else self._status

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it works any more."""
        task = self._task
        # An event loop may be closed without cancelling its tasks, which then never hear of it.
        if task and task.get_loop().is_closed():
            self._finish("lost")
        return self.ended.done()

    def start(self) -> IOCall[None]:
        """Make the call that starts it."""

        def begin() -> None:
            start_thread(lambda: run(self._work()))

        async def work() -> None:
            await arun(self._work())

        async def begin_task() -> None:
            self._task = asyncio.create_task(work())
            # A task that is cancelled before its first step never comes to its own end.
            self._task.add_done_callback(lambda _: self._finish("lost"))

        return IOCall(begin, begin_task)

    def stop(self) -> None:
        """End it soon: an awaiting one at once, a blocking one after the step that it is in."""
        self._is_stopped = True
        task = self._task
        if task and not self.has_ended:
            task.get_loop().call_soon_threadsafe(task.cancel)

    def wait(self, seconds: float | None) -> IOCall[None]:
        """Make the call that waits for its end, at most so long."""

        def block() -> None:
            if not self.has_ended:
                wait_for_futures([self.ended], seconds)

        async def wait() -> None:
            if self.has_ended:
                return
            end = asyncio.wrap_future(self.ended)
            try:
                await asyncio.wait({end}, timeout=seconds)
            finally:
                # Else the end would be told to an event loop that may be closed by then.
                end.cancel()

        return IOCall(block, wait)

    def wait_stopped(self) -> IOCall[None]:
        """Make the call that waits for its end, unless its event loop cannot come to that meanwhile."""
        loop, waiting = self._task.get_loop() if self._task else None, self.wait(None)

        def block() -> None:
            if loop is None or (loop.is_running() and loop is not running_loop()):
                waiting.block()

        async def wait() -> None:
            if loop is None or loop.is_running():
                await waiting.wait()

        return IOCall(block, wait)

    async def _work(self) -> None:
        status: RunStatus = "lost"
        try:
            with outside_of_runs(), counting(self.budget) if self.budget else nullcontext():
                # All, not the last alone: one that was stopped while it waited ends before those ahead of it.
                for each in self.before:
                    await each.wait(None)
                if not self._is_stopped:
                    self._status = "running"
                    await IOCall(self._block, self._await)
            status = "success"
        # Whatever an agent raises is the end of its task, and told as that; a tool may even call `sys.exit`.
        except (Exception, SystemExit) as error:  # noqa: BLE001
            status, self.error = "error", describe_exception(error)
        finally:
            self._finish(status)

    def _finish(self, status: RunStatus) -> None:
        """Note how it ended, unless that is known, and keep nothing that is not asked for any more."""
        # Threads may find at the same time that its event loop is closed.
        with self._finishing:
            if self.ended.done():
                return
            self._status = "interrupted" if self._is_stopped and status != "error" else status
            # This process remembers many runs, whose agents may each have been made for one request.
            self.before = ()
            self.graph = self.given = self.context = None
            self.config = {}
            # One that was left unfinished complains when it is collected.
            if self._task and not self._task.get_loop().is_closed():
                self._task = None
            self.ended.set_result(None)

    def _block(self) -> None:
        options = {"context": self.context, **self.stream.options()}
        with closing(self.graph.stream(self.given, self.config, **options)) as parts:
            for part in parts:
                self.stream.show(part)
                if self._is_stopped:
                    return

    async def _await(self) -> None:
        options = {"context": self.context, **self.stream.options()}
        async with aclosing(self.graph.astream(self.given, self.config, **options)) as parts:
            async for part in parts:
                self.stream.show(part)


class LocalRuns:
    """The runs of this process, by thread; the newest of a thread is the last."""

    def __init__(self) -> None:
        self.memory = InMemorySaver()
        """Keeps the threads of tasks whose caller has no checkpointer."""
        self._runs: dict[str, list[LocalRun]] = {}
        self._lock = Lock()

    def add(self, thread_id: str, made: LocalRun, *, stop_others: bool) -> None:
        """Add a run, which begins when those before it on its thread have ended; or stop these."""
        with self._lock:
            made.before = [each for each in self._runs.pop(thread_id, []) if not each.has_ended]
            if stop_others:
                for other in made.before:
                    other.stop()
            self._runs[thread_id] = [*made.before, made]
            over = (key for key, runs in self._runs.items() if all(each.has_ended for each in runs))
            for oldest in list(over)[: max(len(self._runs) - _MOST_KEPT, 0)]:
                del self._runs[oldest]
                self.memory.delete_thread(oldest)

    def newest(self, thread_id: str) -> LocalRun | None:
        """Return the newest run of a thread that this process knows of."""
        with self._lock:
            return next(reversed(self._runs.get(thread_id, [])), None)

    def find(self, thread_id: str, run_id: str) -> LocalRun | None:
        """Return a run that this process knows of."""
        with self._lock:
            return next((each for each in self._runs.get(thread_id, []) if each.run_id == run_id), None)

    def of_owner(self, owner: object) -> list[LocalRun]:
        """Return the runs under way of one owner."""
        with self._lock:
            runs = [each for many in self._runs.values() for each in many]
        return [each for each in runs if each.owner is owner and not each.has_ended]


# Of the process and not of an agent: programs make an agent anew for each request, and its tasks go on.
def runs_of_process() -> LocalRuns:
    """Return the runs of this process."""
    return _runs_of(os.getpid())


@cache
def _runs_of(process: int) -> LocalRuns:
    # A fork has the memory of its parent, but none of the threads that work there.
    return LocalRuns()


async def stop_runs(owner: object) -> None:
    """Stop all runs of one owner, and wait for the end of those that can come to it meanwhile."""
    runs = runs_of_process().of_owner(owner)
    for each in runs:
        each.stop()
    for each in runs:
        await each.wait_stopped()
