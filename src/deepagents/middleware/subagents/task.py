"""The task tool: choose a worker, give it a state of its own, run it, and return what it said and changed."""

from __future__ import annotations

from asyncio import CancelledError, current_task
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.graph.state import CompiledStateGraph
from pydantic import BaseModel, Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from deepagents._async import IOCall, in_thread
from deepagents._state.inherited import (
    Handed,
    HandedDownChannel,
    HandedMessagesChannel,
    handing_down,
    mark_of,
    message_mark,
)
from deepagents._state.runtime import LatestValue, running_channels
from deepagents._state.schema import SHARED, Sharing
from deepagents.errors import ToolFailure
from deepagents.middleware.subagents.fork import FORKED, REFUSAL, forked_history
from deepagents.middleware.subagents.merge import changes, same
from deepagents.middleware.subagents.report import report
from deepagents.middleware.subagents.worker import Made, Worker
from deepagents.tools._tool import Runtime, ToolOutput, ToolSpec

SUBAGENT_RESPONSE_FORMAT_CONFIG_KEY: Final = "__deepagents_subagent_response_format"
"""Where the configuration of a call says in which format a subagent is to answer, for that call."""

_FILES: Final = "files"

TASK_TOOL_DESCRIPTION = """Delegate a task to a subagent, which works on its own and returns one report.

Agents:
{available_agents}

It starts blank: put all it needs, and what it should return, in description. The user does not see its \
report, so pass on what matters. Start independent tasks together in one turn."""

State: TypeAlias = Mapping[str, Any]


class TaskToolSchema(BaseModel):
    """What `task` takes; anything else is refused by name, because it would be lost."""

    description: str = Field(description="The task, with all the context it needs.")
    subagent_type: str = Field(description="Name of the agent.")

    @model_validator(mode="before")
    @classmethod
    def _refuse_extras(cls, given: Any) -> Any:
        arguments = cast("dict[str, Any]", given) if isinstance(given, dict) else dict[str, Any]()
        extra = sorted(arguments.keys() - {"description", "subagent_type", "runtime"})
        if extra:
            refused = [_refused(key, arguments[key]) for key in extra]
            raise ValidationError.from_exception_data("task", refused)
        return cast(Any, given)


def _refused(key: str, value: Any) -> InitErrorDetails:
    said = "task takes description and subagent_type only; put everything else in description"
    return InitErrorDetails(type=PydanticCustomError("unexpected_argument", said), loc=(key,), input=value)


@dataclass(frozen=True, slots=True)
class Delegation:
    """What the task tool works with during one call: workers, how state keys are shared, the caller's run.

    `shown` returns the messages of a state as its agent's model sees them.
    """

    workers: Mapping[str, Worker]
    keys: Mapping[str, Sharing]
    shown: Callable[[State], Sequence[AnyMessage]]
    runtime: Runtime

    def worker(self, name: str) -> Worker:
        """Return the worker of this name.

        Raises:
            ToolFailure: where there is none, or this agent may not delegate.
        """
        if self.runtime.state.get(FORKED):
            raise ToolFailure("not_supported", REFUSAL)
        if not self.runtime.tool_call_id:
            raise ToolFailure("invalid_argument", "a call of task needs an id, and this one has none")
        if worker := self.workers.get(name):
            return worker
        names = ", ".join(f"`{each}`" for each in self.workers)
        raise ToolFailure("unknown_subagent", f"there is no subagent {name!r}; choose one of {names}")

    def sharing(self, key: str) -> Sharing:
        """Tell how a state key is shared."""
        return self.keys.get(key, SHARED)

    def handed(self) -> dict[str, Any]:
        """Return the state that goes down to every subagent."""
        return {key: value for key, value in self.runtime.state.items() if self.sharing(key).down}

    def inherited(self) -> dict[str, Any]:
        """Return the state that goes down to forks alone."""
        kept = self.runtime.state.items()
        return {key: each for key, each in kept if self.sharing(key).forks and not self.sharing(key).down}

    def given_to(self, worker: Worker, task: str) -> dict[str, Any]:
        """Return the state that a worker begins with."""
        handed, state, call_id = self.handed(), self.runtime.state, str(self.runtime.tool_call_id)
        if worker.mode == "isolated":
            return {**handed, "messages": [HumanMessage(task)]}
        history = self.shown(state) if worker.compiled else state.get("messages", ())
        inherited = {} if worker.compiled else {FORKED: self.inherited()}
        return {
            **handed,
            **inherited,
            "messages": forked_history(history, call_id, task, worker.addendum, compiled=worker.compiled),
        }

    def response_format(self) -> Any:
        """Return the format that this call asks for, if any."""
        return self.runtime.config.get("configurable", {}).get(SUBAGENT_RESPONSE_FORMAT_CONFIG_KEY)


async def _task(desk: Delegation, description: str, subagent_type: str) -> ToolOutput:
    worker = desk.worker(subagent_type)
    wanted = desk.response_format()
    runnable = worker.made(wanted)
    if runnable is None:
        runnable = await in_thread(lambda: worker.runnable(wanted))
    state = desk.given_to(worker, description)
    result = await _run(runnable, worker.name, state, desk.runtime)
    said = report(worker.name, result, known=state["messages"])
    returned = {key: value for key, value in result.items() if desk.sharing(key).back}
    update = changes(desk.handed(), returned, running_channels(), getattr(runnable, "channels", {}))
    return ToolOutput(said + _shared_with(update, str(desk.runtime.tool_call_id)), update=update)


def _shared_with(update: Mapping[str, Any], call_id: str) -> str:
    """Say which keys that hold one value another call of this step writes too."""
    channels = running_channels()
    keys: list[str] = []
    for key, value in update.items():
        channel = channels.get(key)
        if isinstance(channel, LatestValue):
            others = channel.announce(call_id, value)
            keys += [key] if not all(same(value, other) for other in others) else []
    named = ", ".join(map(repr, keys))
    return (
        f"\n\n[Another call of this turn also set {named}: the value of the last call stays.]" if keys else ""
    )


async def _run(runnable: Made, name: str, state: dict[str, Any], runtime: Runtime) -> dict[str, Any]:
    within = {"ls_agent_type": "subagent", SUBAGENT_RESPONSE_FORMAT_CONFIG_KEY: None}
    config: Any = {"configurable": within, **_lower_limit(runnable, runtime)}
    inherited = _inherited(state["messages"], runtime.state.get("messages", ()))
    handed = Handed(str(runtime.tool_call_id), state.get(_FILES) or {}, inherited)
    given = _as_handed(runnable, state, handed)

    def block() -> dict[str, Any]:
        with handing_down(handed):
            return runnable.invoke(given, config)

    async def wait() -> dict[str, Any]:
        with handing_down(handed):
            return await runnable.ainvoke(given, config)

    try:
        return await (IOCall(block, wait) if hasattr(runnable, "ainvoke") else in_thread(block))
    except CancelledError as error:
        if _is_cancelled():
            raise
        raise ToolFailure("cancelled", f"the subagent {name!r} was cancelled before it answered") from error


def _is_cancelled() -> bool:
    """Tell whether the run itself is cancelled, rather than something inside a subagent."""
    try:
        running = current_task()
    except RuntimeError:
        return False
    return running is not None and running.cancelling() > 0


def _as_handed(runnable: Made, state: dict[str, Any], handed: Handed) -> dict[str, Any]:
    """Put marks in the place of files and messages where that will do, so that they are not saved again."""
    if not isinstance(runnable, CompiledStateGraph):
        return state
    channels: Mapping[str, Any] = vars(runnable)["channels"]
    given = dict(state) if _FILES in channels else {key: state[key] for key in state if key != _FILES}
    if vars(runnable)["checkpointer"] not in (None, False):
        return given
    if handed.value and isinstance(channels.get(_FILES), HandedDownChannel):
        given[_FILES] = mark_of(handed)
    if handed.messages and isinstance(channels["messages"], HandedMessagesChannel):
        mark = HumanMessage("", id=f"handed-{handed.name}", additional_kwargs=message_mark(handed))
        given["messages"] = [mark, *state["messages"][len(handed.messages) :]]
    return given


def _inherited(given: Sequence[AnyMessage], own: Sequence[AnyMessage]) -> Sequence[AnyMessage]:
    """Return the messages with which both begin."""
    count = next(
        (at for at, (one, other) in enumerate(zip(given, own, strict=False)) if one is not other), None
    )
    return own[: min(len(given), len(own)) if count is None else count]


def _lower_limit(runnable: Made, runtime: Runtime) -> dict[str, int]:
    bound: Any = getattr(runnable, "config", None) or {}
    own: int | None = bound.get("recursion_limit")
    parents = runtime.config.get("recursion_limit")
    return {"recursion_limit": min(own, parents)} if own and parents else {}


TASK = ToolSpec("task", TASK_TOOL_DESCRIPTION, TaskToolSchema, _task)


def describe(workers: Mapping[str, Worker], template: str | None) -> str:
    """Fill the list of agents into a description; a text without the placeholder is taken as it is."""
    listed = "\n".join(worker.listed for worker in workers.values())
    return (template or TASK_TOOL_DESCRIPTION).replace("{available_agents}", listed)
