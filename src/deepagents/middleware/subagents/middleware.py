"""Offer the task tool over a set of workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cache
from typing import Any, Final, Self, cast

from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]
from langchain_core.messages import AnyMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool

from deepagents import _models
from deepagents._state.schema import FORKS_ONLY, DeepAgentState, Sharing, collect_sharing
from deepagents.errors import ConfigError
from deepagents.middleware._base import BaseMiddleware, Middleware, inner
from deepagents.middleware._requests import Request, Response, add_section
from deepagents.middleware.approval import ApprovalMiddleware
from deepagents.middleware.async_subagents import AsyncSubAgentState
from deepagents.middleware.filesystem import FilesystemMiddleware
from deepagents.middleware.limits import LimitsMiddleware
from deepagents.middleware.memory import MemoryMiddleware
from deepagents.middleware.patch_tool_calls import PatchToolCallsMiddleware
from deepagents.middleware.rubric import RubricMiddleware
from deepagents.middleware.skills import SkillsState
from deepagents.middleware.subagents.fork import ForkedContextMiddleware
from deepagents.middleware.subagents.spec import (
    CompiledSubAgent,
    SubAgent,
    check_complete,
    validate_specs,
    with_defaults,
)
from deepagents.middleware.subagents.task import (
    TASK,
    TASK_TOOL_DESCRIPTION,
    Delegation,
    State,
    Worker,
    ready_worker,
)
from deepagents.middleware.summarization import SummarizationMiddleware
from deepagents.middleware.unsupported_content import UnsupportedContentMiddleware
from deepagents.permissions import Rules
from deepagents.tools._tool import Runtime, make_tool

_KNOWS: Final = " (a fork: it has this whole conversation; give it the task alone)"
SUBAGENT_PROMPT: Final = (
    "Hand large or separable work to a subagent with task, several at once where they do not depend on each "
    "other; it keeps your own context small. Do small things yourself."
)


class SubAgentMiddleware(BaseMiddleware):
    """Let an agent delegate to subagents through a `task` tool.

    Args:
        subagents: specs, each with its own `model` and `tools`, or compiled runnables.
        backend: accepted for older code; not used.
        system_prompt: replaces our short part of the system prompt; `None` or `""` leaves it out.
        task_description: the tool's description; `{available_agents}` in it becomes the list of agents.
        private_state_keys: further state keys that no isolated subagent sees and none returns.
        state_schema: the base state of the agents made from specs.
        older: `default_model`, `default_tools`, `default_middleware`, `default_interrupt_on` and
            `general_purpose_agent` of earlier versions, with one warning.

    Raises:
        ConfigError: for no subagents at all, a name used twice, or a spec without model or tools.
    """

    def __init__(
        self,
        *,
        subagents: Sequence[SubAgent | CompiledSubAgent | Worker] | None = None,
        backend: Any = None,
        system_prompt: str | None = SUBAGENT_PROMPT,
        task_description: str | None = None,
        private_state_keys: frozenset[str] | None = None,
        state_schema: type[Any] | None = None,
        **older: Any,
    ) -> None:
        super().__init__()
        schema = state_schema or DeepAgentState
        given = with_defaults(subagents or [], older)
        specs = iter(validate_specs([each for each in given if not isinstance(each, Worker)]))
        workers = [
            each if isinstance(each, Worker) else self._worker_of(next(specs), schema) for each in given
        ]
        if not workers:
            raise ConfigError("At least one subagent is needed, or general_purpose_agent=True")
        self._workers: Mapping[str, Worker] = {worker.name: worker for worker in workers}
        self._description = _describe(self._workers, task_description)
        self._schemas: Callable[[], Sequence[type]] = tuple
        self._shown: Callable[[State], Sequence[AnyMessage]] = lambda state: state.get("messages", ())
        self.private_state_keys = private_state_keys or frozenset[str]()
        self.system_prompt = system_prompt
        self.tools = [self._tool()]

    @property
    def subagent_names(self) -> frozenset[str]:
        """The names that the model may delegate to."""
        return frozenset(self._workers)

    def in_agent(
        self, schemas: Callable[[], Sequence[type]], shown: Callable[[State], Sequence[AnyMessage]]
    ) -> Self:
        """Return a copy for one agent.

        `schemas` returns the agent's state schemas, and `shown` the messages of a state as its model sees
        them; both are called when a task is run.
        """
        clone = copy(self)
        clone.connect(schemas, shown)
        return clone

    def connect(
        self, schemas: Callable[[], Sequence[type]], shown: Callable[[State], Sequence[AnyMessage]]
    ) -> None:
        """Use the state schemas of one agent, and what its model sees."""
        self._schemas, self._shown = schemas, shown
        # Made anew: it holds the method of the middleware that it was made for.
        self.tools = [self._tool()]

    def _tool(self) -> BaseTool:
        return make_tool(TASK, self._delegation, self._description)

    def _delegation(self, runtime: Runtime) -> Delegation:
        private = dict.fromkeys(self.private_state_keys, FORKS_ONLY)
        keys: dict[str, Sharing] = {**private, **collect_sharing([*_feature_schemas(), *self._schemas()])}
        return Delegation(self._workers, keys, self._shown, runtime)

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        return await inner(handler, add_section(request, self.system_prompt))

    def _worker_of(self, spec: Mapping[str, Any], state_schema: type[Any]) -> Worker:
        """Make the worker of a complete spec or of a compiled one."""
        if "runnable" in spec:
            return ready_worker(spec)
        check_complete(spec)
        ready = {**spec, "model": _models.resolve_model(spec["model"])}

        def make(response_format: Any) -> Runnable[Any, Any]:
            whole = self._as_fork(ready) if spec.get("mode") == "fork" else ready
            return create_sub_agent(whole, state_schema=state_schema, response_format=response_format)

        return Worker(spec["name"], spec["description"], make, spec.get("mode") or "isolated")

    def _as_fork(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Add what makes an agent a fork: the private state it goes on with, and a task tool that refuses."""
        brought: list[Middleware] = list(spec.get("middleware") or ())
        own = [] if any(each.name == self.name for each in brought) else [self]
        files = next((at for at, each in enumerate(brought, 1) if each.name == "FilesystemMiddleware"), 0)
        placed = [ForkedContextMiddleware(), *brought[:files], *own, *brought[files:]]
        return {**spec, "middleware": placed}


@cache
def _feature_schemas() -> Sequence[type]:
    """Return the state schemas of all features, which a subagent that a caller compiled may have."""
    features: Sequence[type[Middleware]] = (
        *(ApprovalMiddleware, FilesystemMiddleware, ForkedContextMiddleware, LimitsMiddleware),
        *(MemoryMiddleware, PatchToolCallsMiddleware, RubricMiddleware, SummarizationMiddleware),
    )
    return [AsyncSubAgentState, SkillsState, *(each.state_schema for each in features)]


def create_sub_agent(
    spec: Mapping[str, Any], *, state_schema: type[Any] | None = None, response_format: Any = None
) -> Runnable[Any, Any]:
    """Compile a complete spec into an agent: its approval rules and a check of what its model takes come in.

    Args:
        spec: with `name`, `model` and `tools`.
        state_schema: base state; default `DeepAgentState`.
        response_format: replaces the spec's own.
    """
    middleware: list[Middleware] = list(spec.get("middleware") or ())
    if spec.get("interrupt_on"):
        middleware.append(ApprovalMiddleware(Rules(()), spec["interrupt_on"]))
    last = UnsupportedContentMiddleware()
    if all(each.name != last.name for each in middleware):
        middleware.append(last)
    graph: Any = create_agent(
        _models.resolve_model(spec["model"]),
        tools=list(spec["tools"] or ()),
        system_prompt=spec.get("system_prompt") or None,
        middleware=middleware,
        response_format=response_format or spec.get("response_format"),
        state_schema=cast(Any, state_schema or DeepAgentState),
        name=spec["name"],
    )
    return graph.with_config({"recursion_limit": 9_999, "metadata": {"lc_agent_name": spec["name"]}})


def build_task_tool(
    subagents: Sequence[SubAgent | CompiledSubAgent | Worker],
    task_description: str | None = None,
    private_state_keys: frozenset[str] | None = None,
    state_schema: type[Any] | None = None,
    **older: Any,
) -> BaseTool:
    """Make the task tool without its middleware, as older code does."""
    made = SubAgentMiddleware(
        subagents=subagents,
        task_description=task_description,
        private_state_keys=private_state_keys,
        state_schema=state_schema,
        **older,
    )
    return made.tools[0]


def _describe(workers: Mapping[str, Worker], template: str | None) -> str:
    """Fill the list of agents into a description; a text without the placeholder is taken as it is."""
    listed = [
        f"- {each.name}: {each.description}{_KNOWS if each.mode == 'fork' else ''}"
        for each in workers.values()
    ]
    return (template or TASK_TOOL_DESCRIPTION).replace("{available_agents}", "\n".join(listed))
