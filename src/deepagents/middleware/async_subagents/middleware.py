"""AsyncSubAgentMiddleware: tools for tasks on Agent Protocol servers, and news of them between steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from itertools import takewhile
from typing import Any, Final, Self

from langchain.agents.middleware import hook_config
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage

from deepagents.middleware._base import BaseMiddleware, Request, Response, add_section, inner
from deepagents.middleware._history import stopped_at_a_limit
from deepagents.middleware.async_subagents.client import MOST_SECONDS, Clients
from deepagents.middleware.async_subagents.notifications import (
    about_earlier_run,
    event_in,
    questions_told,
)
from deepagents.middleware.async_subagents.office import Office
from deepagents.middleware.async_subagents.pace import Pace
from deepagents.middleware.async_subagents.polling import News, Poll, recorded
from deepagents.middleware.async_subagents.schemas import ASYNC_TASK_SYSTEM_PROMPT
from deepagents.middleware.async_subagents.spec import AsyncSubAgent, checked, listed
from deepagents.middleware.async_subagents.state import TASKS, AsyncSubAgentState, AsyncTask
from deepagents.middleware.async_subagents.tools import tools_for
from deepagents.tools._tool import Runtime

POLL_SECONDS: Final = 5.0


class AsyncSubAgentMiddleware(BaseMiddleware):
    """Let an agent start tasks on Agent Protocol servers, and tell it when they end.

    A task is polled before a model call, at most once in `poll_seconds`, and after a final answer; a server
    that fails is left alone for longer and longer. A task without news costs no message and no state.

    Args:
        async_subagents: specs, each with the `graph_id` of an agent, and with the `url` of its server unless
            that is the one which runs this agent.
        system_prompt: replaces our short part of the system prompt, and is followed by the list of agents;
            `""` leaves it out, `None` stands for ours.
        poll_seconds: the least time between two polls of one task.
        request_seconds: how long one call of a tool may wait for a server.

    Raises:
        ConfigError: for no specs at all, a name used twice, or a spec that cannot work.
    """

    state_schema: type[Any] = AsyncSubAgentState

    def __init__(
        self,
        *,
        async_subagents: Sequence[AsyncSubAgent],
        system_prompt: str | None = None,
        poll_seconds: float = POLL_SECONDS,
        request_seconds: float = MOST_SECONDS,
    ) -> None:
        super().__init__()
        self._agents = checked(async_subagents)
        self._clients = Clients()
        self._pace = Pace(poll_seconds)
        self._seconds = request_seconds
        self._poll: Poll | None = Poll(self._agents, self._clients, self._pace)
        self._shown: Callable[[Mapping[str, Any]], Sequence[Any]] | None = None
        self.system_prompt = (
            ASYNC_TASK_SYSTEM_PROMPT
            if system_prompt is None
            else system_prompt and f"{system_prompt}\n\nAgents:\n{listed(self._agents)}"
        )
        self.tools = tools_for(self._agents, self._office)

    @property
    def subagent_names(self) -> frozenset[str]:
        """The names of the agents that tasks may be given to."""
        return frozenset(self._agents)

    def seeing(self, shown: Callable[[Mapping[str, Any]], Sequence[Any]]) -> Self:
        """Return a copy whose forks begin with what the model sees of a state."""
        other = copy(self)
        other.see(shown)
        return other

    def silent(self) -> Self:
        """Return a copy that tells of nothing by itself."""
        other = copy(self)
        other.see(self._shown)
        other.stop_polling()
        return other

    def stop_polling(self) -> None:
        """Ask for nothing by itself any more."""
        self._poll = None

    def see(self, shown: Callable[[Mapping[str, Any]], Sequence[Any]] | None) -> None:
        """Begin forks with what the model sees of a state."""
        self._shown = shown
        self.tools = tools_for(self._agents, self._office)

    def _office(self, runtime: Runtime) -> Office:
        return Office(self._agents, self._clients, self._pace, runtime, self._seconds, self._shown)

    async def _before_model(self, state: Mapping[str, Any], runtime: Any) -> dict[str, Any] | None:
        """Record what notifications say that came in from outside, then ask what else is new."""
        tasks: Mapping[str, AsyncTask] = state.get(TASKS) or {}
        if not tasks or self._poll is None:
            return None
        changes, rewritten = _incoming(tasks, state["messages"])
        news = await self._poll.news({**tasks, **changes})
        return _update(changes, rewritten, news)

    @hook_config(can_jump_to=["model"])
    async def _after_model(self, state: Mapping[str, Any], runtime: Any) -> dict[str, Any] | None:
        """Before the agent stops, ask once more: what ended meanwhile is still taken up.

        Of a task that asks people again and again, only the first question keeps the agent from stopping.
        """
        tasks = state.get(TASKS)
        if not tasks or self._poll is None or not _is_answered(state["messages"]):
            return None
        told = questions_told(state["messages"])
        news = [
            each
            for each in await self._poll.news(tasks, at_the_end=True)
            if each.task["status"] != "waiting" or each.task["task_id"] not in told
        ]
        update = _update({}, [], news)
        return {**update, "jump_to": "model"} if update and "messages" in update else update

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        return await inner(handler, add_section(request, self.system_prompt))


def _is_answered(messages: Sequence[AnyMessage]) -> bool:
    """Tell whether the model has answered; behind what a limit answered nobody is left to go back to."""
    last = messages[-1]
    return isinstance(last, AIMessage) and not last.tool_calls and not stopped_at_a_limit(messages)


def _update(
    changes: Mapping[str, AsyncTask], messages: Sequence[BaseMessage], news: Sequence[News]
) -> dict[str, Any] | None:
    told = [each.told for each in news if each.told]
    tasks = {**changes, **{each.task["task_id"]: each.task for each in news}}
    update = {TASKS: tasks} if tasks else {}
    return {**update, **({"messages": [*messages, *told]} if messages or told else {})} or None


def _incoming(
    tasks: Mapping[str, AsyncTask], messages: Sequence[BaseMessage]
) -> tuple[dict[str, AsyncTask], list[BaseMessage]]:
    """Take up the notifications since the model's last word; one about a replaced run is rewritten."""
    changes: dict[str, AsyncTask] = {}
    rewritten: list[BaseMessage] = []
    for message in takewhile(lambda each: not isinstance(each, AIMessage), reversed(messages)):
        event = event_in(message)
        task = tasks.get(event["task_id"]) if event else None
        if event is None or task is None or not isinstance(message, HumanMessage):
            continue
        if event.get("run_id") in task.get("superseded_run_ids", []):
            rewritten.append(about_earlier_run(message))
        elif record := recorded({**tasks, **changes}, event):
            changes[record["task_id"]] = record
    return changes, rewritten
