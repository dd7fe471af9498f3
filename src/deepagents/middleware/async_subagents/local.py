"""Run tasks in this process, and answer about them as a server does.

A task works as its caller does: in a thread of its own when that blocks, in a task of the same event loop
when that awaits. Its conversation is a thread in the caller's checkpointer, which may outlive the process;
that it is under way is known in this process alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, TypeAlias
from uuid import uuid4

from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, StateSnapshot
from pydantic_core import to_json

from deepagents._async import IOCall, in_thread
from deepagents._state.runtime import (
    channels_of,
    config_to_outlast,
    outside_of_runs,
    running_saver,
    runtime_of_run,
)
from deepagents.middleware._history import is_from_person
from deepagents.middleware.async_subagents.client import Clients, RemoteClient, RemoteFailure, Run
from deepagents.middleware.async_subagents.local_runs import LocalRun, StreamOfCaller, runs_of_process
from deepagents.middleware.async_subagents.messages import Input, content_blocks
from deepagents.middleware.async_subagents.spec import (
    UNDER_WAY,
    AsyncAgent,
    AsyncTask,
    TaskStatus,
    as_mapping,
)
from deepagents.middleware.limits import open_background, save_background
from deepagents.models.endings import break_of, describe_break


class LocalClient:
    """The requests about tasks of one agent in this process; those of `RemoteClient`, without a server."""

    def __init__(self, agent: AsyncAgent, owner: object) -> None:
        self.agent = agent
        self._owner = owner
        self._runs = runs_of_process()

    async def create_thread(self, thread_id: str, metadata: Mapping[str, str]) -> str:
        """Return the id of a new thread, which its first run makes."""
        return thread_id

    async def create_run(self, thread_id: str, messages: Sequence[Input], options: Mapping[str, Any]) -> Run:
        """Start a run of the agent on a thread."""
        return await self._begin(thread_id, {"messages": messages}, options)

    async def answer(self, thread_id: str, answers: Mapping[str, Any], options: Mapping[str, Any]) -> Run:
        """Go on with a thread that waits for a person, with the answers by the ids of the questions."""
        return await self._begin(thread_id, Command(resume=dict(answers)), options)

    async def status(self, task: AsyncTask) -> TaskStatus:
        """Return how a task stands."""
        if task["status"] == "cancelled":
            return TaskStatus("cancelled", task["run_id"])
        if known := self._runs.newest(task["thread_id"]):
            _take_over(known)
            if known.status in UNDER_WAY or known.status == "error":
                return TaskStatus(known.status, known.run_id, error=known.error)
        return _status_at_rest(await self._read(task["thread_id"]), known, task["run_id"])

    async def cancel_run(self, thread_id: str, run_id: str) -> None:
        """Stop a run.

        Raises:
            RemoteFailure: for one that is not under way here.
        """
        known = self._runs.find(thread_id, run_id)
        if known is None or known.status not in UNDER_WAY:
            raise RemoteFailure("remote_failed", f"run {run_id!r} is not under way", 404)
        known.stop()

    async def wait(self, thread_id: str, seconds: float) -> None:
        """Wait until a thread is at rest, at most so long."""
        if newest := self._runs.newest(thread_id):
            await newest.wait(seconds)

    async def _begin(self, thread_id: str, given: Any, options: Mapping[str, Any]) -> Run:
        run_id, earlier = str(uuid4()), self._runs.newest(thread_id)
        if earlier:
            _take_over(earlier)
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
        return {"run_id": made.run_id, "status": made.status}

    async def _bind(self) -> Any:
        """Return the agent's graph, which has the caller's checkpointer and store unless it has its own."""
        saver, caller, make = running_saver() or self._runs.memory, runtime_of_run(), self.agent.make
        # In a thread: to compile an agent would hold up all else on the event loop.
        made: Any = await in_thread(make) if make else None
        graph = made if channels_of(made) is not None else _as_graph(made)
        if "messages" not in graph.channels:
            raise RemoteFailure(
                "not_supported",
                f"the state of {self.agent.name!r} has no 'messages', so it can neither be given a task nor "
                "answer: its graph must be compiled with a state that has them",
                400,
            )
        given = {"store": graph.store or (caller and caller.store)}
        # `True` means the saver of a graph around it, and around this one there is none.
        if not isinstance(graph.checkpointer, BaseCheckpointSaver):
            given["checkpointer"] = saver
        return graph.copy(given)

    async def _read(self, thread_id: str) -> StateSnapshot:
        # Not with the graph of a run: its checkpointer may have been closed when its request had ended.
        graph = await self._bind()
        config = {"configurable": {"thread_id": thread_id}}

        def block() -> StateSnapshot:
            with outside_of_runs():
                return graph.get_state(config)

        async def wait() -> StateSnapshot:
            with outside_of_runs():
                return await graph.aget_state(config)

        return await IOCall(block, wait)


TaskClient: TypeAlias = RemoteClient | LocalClient


def open_client(agent: AsyncAgent, clients: Clients, seconds: float) -> TaskClient:
    """Return what answers about tasks of an agent: its server within these seconds, or this process."""
    return LocalClient(agent, clients) if agent.make else RemoteClient(agent, clients, seconds)


def _take_over(known: LocalRun) -> None:
    """Show a run on the stream of the main agent's present run, and let it spend from the limits of that."""
    known.stream.follow()
    if known.budget:
        save_background(known.budget)


def _status_at_rest(state: StateSnapshot, known: LocalRun | None, run_id: str) -> TaskStatus:
    """Return how a task stands that does not work here; its thread tells of one of another process."""
    run_id = known.run_id if known else run_id
    questions = tuple({"id": each.id, "value": each.value} for each in state.interrupts)
    is_over = (questions or not state.tasks) and (state.metadata or {}).get("run_id") == run_id
    if known.status == "lost" if known else not is_over:
        return TaskStatus("interrupted", run_id)
    values = as_mapping(state.values)
    if questions:
        return TaskStatus("waiting", run_id, values, questions)
    if known and known.status == "interrupted":
        return TaskStatus("cancelled", run_id)
    last = next(reversed(values.get("messages") or ()), None)
    if last is not None and (kind := break_of(last)):
        return TaskStatus("error", run_id, error=f"The answer {describe_break(kind)}: {last.text}")
    return TaskStatus("success", run_id, _find_result(values))


def _as_graph(runnable: Runnable[Any, Any]) -> Any:
    """Make a graph of any other runnable, so that its thread is kept."""
    builder: Any = StateGraph(MessagesState)
    builder.add_node("run", runnable)
    builder.add_edge(START, "run")
    builder.add_edge("run", END)
    return builder.compile()


def _find_result(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an agent answered, as the last message of its thread: a structured answer as JSON."""
    structured = values.get("structured_response")
    if structured is not None:
        return {"messages": [{"content": to_json(structured, serialize_unknown=True).decode()}]}
    messages: Sequence[Any] = values.get("messages") or ()
    # What stands before the task or its last update is another answer, or that of the agent it is a fork of.
    since = takewhile(lambda message: not is_from_person(message), reversed(messages))
    answers = (each.content for each in since if isinstance(each, AIMessage))
    return {"messages": [{"content": next(filter(content_blocks, answers), "")}]}
