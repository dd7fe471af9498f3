"""Run tasks in this process, and answer about them in the words of the Agent Protocol.

A task works as its caller does: in a thread of its own when that blocks, in a task of the same event loop
when that awaits. Its conversation is a thread in the caller's checkpointer, which may outlive the process;
that it is under way is known in this process alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import wait as wait_for_futures
from contextlib import aclosing, closing, nullcontext
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from threading import Lock
from typing import Any, Final
from uuid import uuid4

from langchain_core.messages import AIMessage, convert_to_messages
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, StateSnapshot
from pydantic_core import to_json

from deepagents._async import IOCall, arun, in_thread, run, start_thread
from deepagents._state.run_end import RunEnd, run_end
from deepagents._state.runtime import (
    channels_of,
    config_to_outlast,
    has_checkpointer,
    outside_of_runs,
    running_saver,
    running_stream,
)
from deepagents._text import describe_exception
from deepagents.middleware.async_subagents.client import RemoteFailure, Run
from deepagents.middleware.async_subagents.spec import AsyncAgent, as_mapping
from deepagents.middleware.limits import Budget, counting, open_background, save_background

_MOST_KEPT: Final = 1_000
"""Threads of which this process remembers the runs; older ones are looked up in their checkpointer."""
_UNDER_WAY: Final = ("pending", "running")


class StreamOfCaller:
    """Shows what a task does on the stream of the agent that started it, while that runs and is watched.

    There it stands under the call that started the task.
    """

    def __init__(self) -> None:
        self._stream, self._namespace = running_stream()
        self._modes = list(self._stream.modes) if self._stream else ["updates"]
        self._loop = _running_loop()
        self._end: RunEnd | None = None
        self.follow()

    def follow(self) -> None:
        """Show it on the stream of the run that asks, until that ends."""
        stream, end = running_stream()[0], run_end()
        # A stream belongs to an event loop, or to a caller that blocks.
        usable = end is not None and self._loop is _running_loop()
        self._stream = stream if usable else None
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


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


@dataclass(eq=False)
class LocalRun:
    """One run of a task. `owner` is what may end it; `before` is the run whose end it waits for."""

    owner: object
    graph: Any
    config: RunnableConfig
    given: Any
    context: Any
    run_id: str
    budget: Budget | None
    stream: StreamOfCaller
    before: LocalRun | None = None
    ended: Future[None] = field(default_factory=Future[None])
    error: str = ""
    _status: str = "pending"
    _is_stopped: bool = False
    _task: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        # From here on nobody who waits for it can cancel it.
        self.ended.set_running_or_notify_cancel()

    @property
    def status(self) -> str:
        """How it stands: `lost` when something else than a wish of ours has ended it."""
        return "interrupted" if self._is_stopped and self._status in _UNDER_WAY else self._status

    @property
    def is_over(self) -> bool:
        """Whether it has ended, or is about to because it was stopped."""
        return self.status not in _UNDER_WAY

    def start(self) -> IOCall[None]:
        """Make the call that starts it."""

        def begin() -> None:
            start_thread(lambda: run(self._work()))

        async def begin_task() -> None:
            self._task = asyncio.create_task(arun(self._work()))

        return IOCall(begin, begin_task)

    def stop(self) -> None:
        """End it soon: an awaiting one at once, a blocking one after the step that it is in."""
        self._is_stopped = True
        loop = self._task.get_loop() if self._task else None
        if self._task and loop and not loop.is_closed():
            loop.call_soon_threadsafe(self._task.cancel)

    def wait(self, seconds: float | None) -> IOCall[None]:
        """Make the call that waits for its end, at most so long."""

        def block() -> None:
            wait_for_futures([self.ended], seconds)

        async def wait() -> None:
            await asyncio.wait({asyncio.wrap_future(self.ended)}, timeout=seconds)

        return IOCall(block, wait)

    async def _work(self) -> None:
        try:
            with outside_of_runs(), counting(self.budget) if self.budget else nullcontext():
                if self.before:
                    await self.before.wait(None)
                if not self._is_stopped:
                    self._status = "running"
                    await IOCall(self._block, self._await)
            self._status = "interrupted" if self._is_stopped else "success"
        except asyncio.CancelledError:
            self._status = "interrupted" if self._is_stopped else "lost"
            raise
        # Whatever an agent raises is the end of its task, and told as that.
        except Exception as error:  # noqa: BLE001
            self._status, self.error = "error", describe_exception(error)
        finally:
            # Else each run of a thread would keep all earlier ones.
            self.before = None
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
            others = self._runs.pop(thread_id, [])
            if stop_others:
                for other in others:
                    other.stop()
            made.before = others[-1] if others else None
            self._runs[thread_id] = [each for each in others if not each.ended.done()] + [made]
            over = (key for key, runs in self._runs.items() if all(each.ended.done() for each in runs))
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
        return [each for each in runs if each.owner is owner and not each.ended.done()]


# Of the process and not of an agent: programs make an agent anew for each request, and its tasks go on.
@cache
def runs_of_process() -> LocalRuns:
    """Return the runs of this process."""
    return LocalRuns()


async def stop_runs(owner: object) -> None:
    """Stop all runs of one owner, and wait until they have ended."""
    runs = runs_of_process().of_owner(owner)
    for each in runs:
        each.stop()
    for each in runs:
        await each.wait(None)


class LocalClient:
    """The requests about tasks of one agent in this process; those of `RemoteClient`, without a server."""

    def __init__(self, agent: AsyncAgent, owner: object) -> None:
        self.agent = agent
        self._owner = owner
        self._runs = runs_of_process()

    async def create_thread(self, thread_id: str, metadata: Mapping[str, str]) -> str:
        """Return the id of a new thread, which its first run makes."""
        return thread_id

    async def create_run(
        self, thread_id: str, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any]
    ) -> Run:
        """Start a run of the agent on a thread."""
        given = {"messages": convert_to_messages([dict(each) for each in messages])}
        return await self._begin(thread_id, given, options)

    async def answer(self, thread_id: str, answers: Mapping[str, Any], options: Mapping[str, Any]) -> Run:
        """Go on with a thread that waits for a person, with the answers by the ids of the questions."""
        return await self._begin(thread_id, Command(resume=dict(answers)), options)

    async def get_run(self, thread_id: str, run_id: str) -> Run:
        """Return a run. One that another process began is `lost`, unless its thread shows that it is over."""
        known = self._runs.find(thread_id, run_id)
        if known:
            known.stream.follow()
            if known.budget:
                save_background(known.budget)
            return _show(known)
        state = await self._read(thread_id)
        rests = not state.tasks or any(task.interrupts for task in state.tasks)
        is_over = rests and (state.metadata or {}).get("run_id") == run_id
        return {"run_id": run_id, "status": "success" if is_over else "lost"}

    async def get_newest_run(self, thread_id: str) -> Run | None:
        """Return the newest run of a thread, `None` when this process knows of none."""
        known = self._runs.newest(thread_id)
        return _show(known) if known else None

    async def get_thread(self, thread_id: str) -> Mapping[str, Any]:
        """Return how a thread stands, its result, and the questions that it waits with."""
        newest = self._runs.newest(thread_id)
        if newest and not newest.is_over:
            return {"status": "busy"}
        if newest and newest.status == "error":
            return {"status": "error", "error": newest.error}
        state = await self._read(thread_id)
        questions = {
            task.id: [{"id": each.id, "value": each.value} for each in task.interrupts]
            for task in state.tasks
            if task.interrupts
        }
        status = "interrupted" if questions else "idle"
        return {"status": status, "interrupts": questions, "values": _find_result(state.values)}

    async def cancel_run(self, thread_id: str, run_id: str) -> None:
        """Stop a run.

        Raises:
            RemoteFailure: for one that is not under way here.
        """
        known = self._runs.find(thread_id, run_id)
        if known is None or known.is_over:
            raise RemoteFailure("remote_failed", f"run {run_id!r} is not under way", 409)
        known.stop()

    async def wait(self, thread_id: str, seconds: float) -> None:
        """Wait until a thread is at rest, at most so long."""
        if newest := self._runs.newest(thread_id):
            await newest.wait(seconds)

    async def _begin(self, thread_id: str, given: Any, options: Mapping[str, Any]) -> Run:
        run_id, earlier = str(uuid4()), self._runs.newest(thread_id)
        config = config_to_outlast()
        configurable = {**config.get("configurable", {}), "thread_id": thread_id}
        metadata = {"lc_agent_name": self.agent.name, "ls_agent_type": "subagent", "run_id": run_id}
        made = LocalRun(
            self._owner,
            await self._bind(),
            {**config, "configurable": configurable, "metadata": metadata, "run_name": self.agent.name},
            given,
            options.get("context"),
            run_id,
            earlier.budget if earlier else open_background(),
            earlier.stream if earlier else StreamOfCaller(),
        )
        stops = options.get("multitask_strategy") == "interrupt"
        self._runs.add(thread_id, made, stop_others=stops)
        await made.start()
        return _show(made)

    async def _bind(self) -> Any:
        """Return the agent's graph, which saves where the caller does unless it saves for itself."""
        saver, make = running_saver() or self._runs.memory, self.agent.make
        # In a thread: to compile an agent would hold up all else on the event loop.
        made: Any = await in_thread(make) if make else None
        graph = made if channels_of(made) is not None else _as_graph(made)
        return graph if has_checkpointer(graph) else graph.copy({"checkpointer": saver})

    async def _read(self, thread_id: str) -> StateSnapshot:
        newest = self._runs.newest(thread_id)
        graph = newest.graph if newest else await self._bind()
        config = {"configurable": {"thread_id": thread_id}}

        def block() -> StateSnapshot:
            with outside_of_runs():
                return graph.get_state(config)

        async def wait() -> StateSnapshot:
            with outside_of_runs():
                return await graph.aget_state(config)

        return await IOCall(block, wait)


def _show(known: LocalRun) -> Run:
    return {"run_id": known.run_id, "status": known.status}


def _as_graph(runnable: Runnable[Any, Any]) -> Any:
    """Make a graph of any other runnable, so that its thread is kept."""
    builder: Any = StateGraph(MessagesState)
    builder.add_node("run", runnable)
    builder.add_edge(START, "run")
    builder.add_edge("run", END)
    return builder.compile()


def _find_result(values: Any) -> dict[str, Any]:
    """Return what an agent answered, as the last message of its thread: a structured answer as JSON."""
    held = as_mapping(values)
    structured = held.get("structured_response")
    if structured is not None:
        return {"messages": [{"content": to_json(structured, serialize_unknown=True).decode()}]}
    messages: Sequence[Any] = held.get("messages") or ()
    answers = (each for each in reversed(messages) if isinstance(each, AIMessage) and each.content)
    return {"messages": [{"content": each.content} for each in islice(answers, 1)]}
