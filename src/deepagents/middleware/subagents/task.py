"""The task tool: choose a worker, give it a state of its own, run it, and return what it said and changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final, cast

from langchain_core.messages import HumanMessage
from langchain_core.runnables import Runnable
from langgraph.graph.state import CompiledStateGraph
from pydantic import BaseModel, Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from deepagents._channels import channel_reducers, reducers_of
from deepagents._flow import Call, Flow
from deepagents._handed import Handed, HandedDownChannel, handing_down, mark_of
from deepagents.errors import ToolFailure
from deepagents.middleware._base import private_to_features
from deepagents.middleware.subagents.merge import changes
from deepagents.middleware.subagents.report import report
from deepagents.tools._tool import Reply, Runtime, ToolSpec

NEVER_SHARED = frozenset(
    {"messages", "todos", "structured_response", "skills_metadata", "pinned_skills", "rubric"}
)
"""State keys that a subagent neither receives nor returns, beside those that are private."""

_FILES: Final = "files"

TASK_TOOL_DESCRIPTION = """Delegate a task to a subagent, which works on its own and returns one report.

Agents:
{available_agents}

It starts blank: put all it needs, and what it should return, in description. The user does not see its \
report, so pass on what matters. Start independent tasks together in one turn."""


@dataclass(slots=True)
class Worker:
    """A subagent: its name, what it is for, and its runnable, made on first use."""

    name: str
    description: str
    make: Callable[[], Runnable[Any, Any]]
    _made: Runnable[Any, Any] | None = None
    _lock: Any = field(default_factory=Lock)

    def runnable(self) -> Runnable[Any, Any]:
        """Return the runnable, the same one at each call."""
        with self._lock:
            if self._made is None:
                self._made = self.make()
            return self._made


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
    """What the task tool works with during one call."""

    workers: Mapping[str, Worker]
    private_keys: frozenset[str]
    runtime: Runtime


def _task(desk: Delegation, description: str, subagent_type: str) -> Flow[Reply]:
    worker = desk.workers.get(subagent_type)
    if worker is None:
        names = ", ".join(f"`{name}`" for name in desk.workers)
        raise ToolFailure(
            "unknown_subagent", f"there is no subagent {subagent_type!r}; choose one of {names}"
        )
    kept_back = NEVER_SHARED | private_to_features() | desk.private_keys
    shared = {key: value for key, value in desk.runtime.state.items() if key not in kept_back}
    state = {**shared, "messages": [HumanMessage(description)]}
    result = yield from _run(worker.runnable(), state, desk.runtime)
    said = report(worker.name, result)
    returned = {key: value for key, value in result.items() if key not in kept_back}
    own = reducers_of(getattr(worker.runnable(), "channels", {}))
    return Reply(said, update=changes(shared, returned, channel_reducers(), own))


def _run(runnable: Runnable[Any, Any], state: dict[str, Any], runtime: Runtime) -> Flow[dict[str, Any]]:
    config: Any = {"configurable": {"ls_agent_type": "subagent"}, **_lower_limit(runnable, runtime)}
    handed = Handed(str(runtime.tool_call_id), state.get(_FILES) or {})
    given = _as_handed(runnable, state, handed)

    def block() -> dict[str, Any]:
        with handing_down(handed):
            return runnable.invoke(given, config)

    async def wait() -> dict[str, Any]:
        with handing_down(handed):
            return await runnable.ainvoke(given, config)

    return (yield from Call(block, wait))


def _as_handed(runnable: Runnable[Any, Any], state: dict[str, Any], handed: Handed) -> dict[str, Any]:
    """Put a mark in the place of the files where that will do, so that they are not saved again."""
    if not handed.value or not isinstance(runnable, CompiledStateGraph):
        return state
    channels: Mapping[str, Any] = vars(runnable)["channels"]
    if _FILES not in channels:
        return {key: value for key, value in state.items() if key != _FILES}
    forgets = vars(runnable)["checkpointer"] in (None, False)
    takes_marks = isinstance(channels[_FILES], HandedDownChannel)
    return {**state, _FILES: mark_of(handed)} if takes_marks and forgets else state


def _lower_limit(runnable: Runnable[Any, Any], runtime: Runtime) -> dict[str, int]:
    bound: Any = getattr(runnable, "config", None) or {}
    own: int | None = bound.get("recursion_limit")
    parents = runtime.config.get("recursion_limit")
    return {"recursion_limit": min(own, parents)} if own and parents else {}


TASK = ToolSpec("task", TASK_TOOL_DESCRIPTION, TaskToolSchema, _task)


def describe(workers: Mapping[str, Worker], template: str | None) -> str:
    """Fill the list of agents into a description; a text without the placeholder is taken as it is."""
    listed = "\n".join(f"- {worker.name}: {worker.description}" for worker in workers.values())
    return (template or TASK_TOOL_DESCRIPTION).replace("{available_agents}", listed)
