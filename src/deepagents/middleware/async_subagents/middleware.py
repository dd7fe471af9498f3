"""Offer tools for tasks in the background, and announce how they end."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, Final, Self, TypeAlias

from langchain.agents.middleware import hook_config
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langgraph.types import interrupt

from deepagents._async import as_io_call, gather_threads, sync_and_async
from deepagents._state.runtime import is_saved
from deepagents.middleware._base import BaseMiddleware, inner
from deepagents.middleware._history import ends_at_limit, is_from_person, open_turn
from deepagents.middleware._requests import Request, Response, add_section
from deepagents.middleware.async_subagents.client import (
    REQUEST_SECONDS,
    Clients,
    PollSchedule,
    RemoteFailure,
    make_malformed_failure,
)
from deepagents.middleware.async_subagents.local import LocalClient, open_client
from deepagents.middleware.async_subagents.local_runs import stop_runs
from deepagents.middleware.async_subagents.messages import (
    ShownMessages,
    announce_status,
    as_question,
    find_announced_questions,
    mark_superseded,
    read_event,
    run_options,
)
from deepagents.middleware.async_subagents.spec import (
    TASKS,
    UNDER_WAY,
    UNFINISHED,
    AsyncAgent,
    AsyncSubAgent,
    AsyncSubAgentState,
    AsyncTask,
    CompiledSubAgent,
    TaskEvent,
    TaskStatus,
    list_agents,
    update_task,
    validate_specs,
)
from deepagents.middleware.async_subagents.tools import ASYNC_TASK_SYSTEM_PROMPT, TaskContext, make_tools
from deepagents.tools._tool import Runtime

POLL_SECONDS: Final = 5.0
_POLL_BUDGET: Final = 2.0
_LOST: Final = (
    "Its server does not know this task any more; it may have been restarted. Start the task again if it is "
    "still needed."
)
_log = logging.getLogger(__name__)


TaskNews: TypeAlias = tuple[AsyncTask, HumanMessage | None]
"""A task whose record changed, with the notification of an end or of a question to a person."""


class AsyncSubAgentMiddleware(BaseMiddleware):
    """Let an agent start tasks that work in the background, and tell it when they end.

    Tasks are polled when a run begins, before a model call at most once in `poll_seconds`, and after a final
    answer. A server that fails is left alone for a minute. A task without news adds no message and
    changes no state. Tasks in this process are looked at every time, and what they ask a person is asked when
    the main agent has answered.

    Args:
        async_subagents: specs, each with the `graph_id` of an agent, and with the `url` of its server unless
            that is the server which runs this agent; or with a `runnable`, which works in this process.
        system_prompt: replaces our short part of the system prompt, and is followed by the list of agents;
            `""` leaves it out, `None` stands for ours.
        poll_seconds: the least time between two polls of one task.
        request_seconds: how long one call of a tool may wait for a server.

    Raises:
        ConfigError: for no specs, a name used twice, or a spec that cannot work.
    """

    state_schema: type[Any] = AsyncSubAgentState

    def __init__(
        self,
        *,
        async_subagents: Sequence[AsyncSubAgent | CompiledSubAgent | AsyncAgent],
        system_prompt: str | None = None,
        poll_seconds: float = POLL_SECONDS,
        request_seconds: float = REQUEST_SECONDS,
    ) -> None:
        super().__init__()
        self._agents = validate_specs(async_subagents)
        self._clients = Clients(request_seconds)
        self._schedule = PollSchedule(poll_seconds)
        self._request_seconds = request_seconds
        self._announces = True
        self._shown: ShownMessages | None = None
        self.system_prompt = (
            ASYNC_TASK_SYSTEM_PROMPT
            if system_prompt is None
            else system_prompt and f"{system_prompt}\n\nAgents:\n{list_agents(self._agents)}"
        )
        self.tools = make_tools(self._agents, self._context)

    @property
    def subagent_names(self) -> frozenset[str]:
        """The names of the agents that tasks may be given to."""
        return frozenset(self._agents)

    def in_agent(self, shown: ShownMessages, *, announces: bool) -> Self:
        """Return a copy for one agent.

        Tasks that are forks begin with the messages that `shown` returns. An agent that is a fork itself
        announces nothing: that is left to the agent that called it.
        """
        clone = copy(self)
        clone.connect(shown, announces=announces)
        return clone

    def connect(self, shown: ShownMessages, *, announces: bool) -> None:
        """Use what the model of one agent sees, and announce ends or not."""
        self._shown, self._announces = shown, announces
        # Made anew: each holds the context of the middleware that it was made for.
        self.tools = make_tools(self._agents, self._context)

    async def _close(self) -> None:
        """Stop the tasks of this agent that work in this process, and wait until they have ended.

        One whose event loop does not run meanwhile ends when that runs on. Their threads are kept;
        `update_async_task` lets them go on.
        """
        await stop_runs(self._clients)

    close, aclose = sync_and_async(_close)

    def _context(self, runtime: Runtime) -> TaskContext:
        return TaskContext(self._agents, self._clients, runtime, self._request_seconds, self._shown)

    async def _before_model(self, state: Mapping[str, Any], runtime: Any) -> dict[str, Any] | None:
        """Record notifications that came in from outside, then poll; at the start of a run every task."""
        tasks: Mapping[str, AsyncTask] = state.get(TASKS) or {}
        if not tasks or not self._announces:
            return None
        messages: Sequence[AnyMessage] = state.get("messages", ())
        changes, rewritten = _take_notifications(tasks, messages)
        starts = bool(messages) and is_from_person(messages[-1])
        news = await self._poll({**tasks, **changes}, at_edge=starts)
        return _as_update(changes, rewritten, news)

    @hook_config(can_jump_to=["model"])
    async def _after_model(self, state: Mapping[str, Any], runtime: Any) -> dict[str, Any] | None:
        """Poll once more before the agent stops, so that it still takes up what ended meanwhile.

        Of a task that asks people again and again, only the first question keeps the agent from stopping.
        """
        tasks: Mapping[str, AsyncTask] = state.get(TASKS) or {}
        if not tasks or not self._announces or not _is_final_answer(state["messages"]):
            # LangGraph drops the jump that the model's node asked for when this one runs, and it still holds.
            return {"jump_to": state["jump_to"]} if state.get("jump_to") else None
        # A task in this process asks the person itself, right after this.
        asked = find_announced_questions(state["messages"])
        news = [
            (task, message)
            for task, message in await self._poll(tasks, at_edge=True)
            if task["status"] != "waiting" or task["task_id"] not in asked
        ]
        update = _as_update({}, [], news)
        return {**update, "jump_to": "model"} if update and "messages" in update else update

    async def _after_agent(self, state: Mapping[str, Any], runtime: Any) -> dict[str, Any] | None:
        """Ask a person what tasks in this process ask, and pass the answers on to them."""
        tasks: Mapping[str, AsyncTask] = state.get(TASKS) or {}
        waiting = [task for task in tasks.values() if task["status"] == "waiting" and self._is_local(task)]
        if not waiting or not self._announces or not is_saved():
            return None
        clients = [LocalClient(self._agents[task["agent_name"]], self._clients) for task in waiting]
        found = [await client.status(task) for client, task in zip(clients, waiting, strict=True)]
        # All are asked, also if one was settled meanwhile: LangGraph tells answers apart by their order.
        answers = [interrupt(as_question(task, each)) for task, each in zip(waiting, found, strict=True)]
        changes: dict[str, AsyncTask] = {}
        for task, client, each, answer in zip(waiting, clients, found, answers, strict=True):
            # The same run asks the same question, so an answer never goes to another one.
            if (each.status, each.run_id) == ("waiting", task["run_id"]):
                given = {each.interrupts[0]["id"]: answer}
                options = run_options(client.agent, runtime)
                went_on = await client.answer(task["thread_id"], given, options)
                changes[task["task_id"]] = update_task(task, "running", went_on["run_id"])
        return {TASKS: changes} if changes else None

    def _is_local(self, task: AsyncTask) -> bool:
        agent = self._agents.get(task["agent_name"])
        return agent is not None and agent.make is not None

    async def _poll(self, tasks: Mapping[str, AsyncTask], *, at_edge: bool) -> list[TaskNews]:
        """Return what changed about unfinished tasks that are due."""
        unfinished = {
            task_id: self._agents[task["agent_name"]]
            for task_id, task in tasks.items()
            if task["status"] in UNFINISHED and task["agent_name"] in self._agents
        }
        due = self._schedule.choose(unfinished, at_edge=at_edge)
        polls = [as_io_call(lambda task=tasks[task_id]: self._ask_about(task)) for task_id in due]
        return [news for news in await gather_threads(polls) if news] if polls else []

    async def _ask_about(self, task: AsyncTask) -> TaskNews | None:
        """Return what changed about a task; a poll that fails is made again later."""
        agent = self._agents[task["agent_name"]]
        client = open_client(agent, self._clients, _POLL_BUDGET)
        try:
            news = _as_news(task, await client.status(task), asks=self._is_local(task) and is_saved())
        except (RemoteFailure, RecursionError) as error:
            # An answer may be nested too deep to be shown.
            failure = error if isinstance(error, RemoteFailure) else make_malformed_failure()
            if failure.status == 404:
                return _as_news(task, TaskStatus("error", task["run_id"], error=_LOST))
            # That is our own refusal to block without a url, and no failure of the server.
            if failure.code != "not_supported":
                self._schedule.note_failure(agent)
                _log.warning("a task of async subagent %r could not be polled: %s", agent.name, failure.text)
            return None
        return news

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        return await inner(handler, add_section(request, self.system_prompt))


def _is_final_answer(messages: Sequence[AnyMessage]) -> bool:
    """Return whether the model has answered; after the answer of a limit no further model call may follow."""
    last = messages[-1]
    return isinstance(last, AIMessage) and not last.tool_calls and not ends_at_limit(messages)


def _as_news(task: AsyncTask, found: TaskStatus, *, asks: bool = False) -> TaskNews | None:
    """Return what is new of a task; one that `asks` a person itself needs no words about that."""
    if (found.status, found.run_id) == (task["status"], task["run_id"]):
        return None
    record = update_task(task, found.status, found.run_id)
    runs_on = found.status in UNDER_WAY or (asks and found.status == "waiting")
    return record, None if runs_on else announce_status(record, found)


def _as_update(
    changes: Mapping[str, AsyncTask], messages: Sequence[BaseMessage], news: Sequence[TaskNews]
) -> dict[str, Any] | None:
    announced = [message for _, message in news if message]
    tasks = {**changes, **{task["task_id"]: task for task, _ in news}}
    update: dict[str, Any] = {TASKS: tasks} if tasks else {}
    if messages or announced:
        update["messages"] = [*messages, *announced]
    return update or None


def _take_notifications(
    tasks: Mapping[str, AsyncTask], messages: Sequence[AnyMessage]
) -> tuple[dict[str, AsyncTask], list[BaseMessage]]:
    """Return the records that notifications since the last answer change, and notifications to rewrite."""
    changes: dict[str, AsyncTask] = {}
    rewritten: list[BaseMessage] = []
    for message in reversed(open_turn(messages)):
        event = read_event(message)
        task = {**tasks, **changes}.get(event["task_id"]) if event else None
        if event is None or task is None or not isinstance(message, HumanMessage):
            continue
        if event.get("run_id") in task.get("superseded_run_ids", []):
            rewritten.append(mark_superseded(message))
        elif record := _apply_event(task, event):
            changes[record["task_id"]] = record
    return changes, rewritten


def _apply_event(task: AsyncTask, event: TaskEvent) -> AsyncTask | None:
    """Return the record after a notification, `None` where it says nothing new."""
    run_id = event.get("run_id") or task["run_id"]
    is_known = (task["status"], task["run_id"]) == (event["status"], run_id)
    is_of_another_run = run_id != task["run_id"] and task["status"] not in UNFINISHED
    if is_known or is_of_another_run or task["status"] == "cancelled":
        return None
    return update_task(task, event["status"], run_id)
