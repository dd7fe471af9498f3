"""SubAgentMiddleware: offers the task tool over a set of workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]
from langchain_core.runnables import Runnable

from deepagents._flow import Flow
from deepagents._state import DeepAgentState
from deepagents.errors import ConfigError
from deepagents.middleware._base import FlowMiddleware, Middleware, Request, Response, add_section, inner
from deepagents.middleware.interrupts import Approval
from deepagents.middleware.subagents.legacy import asks_itself, with_defaults
from deepagents.middleware.subagents.spec import CompiledSubAgent, SubAgent, checked
from deepagents.middleware.subagents.task import TASK, Delegation, Worker, describe
from deepagents.models.resolve import resolve_model
from deepagents.permissions import Rules
from deepagents.tools._tool import Runtime, make_tool

SUBAGENT_PROMPT: Final = (
    "Hand large or separable work to a subagent with task, several at once where they do not depend on "
    "each other; it keeps "
    "your own context small. Do small things yourself."
)


class SubAgentMiddleware(FlowMiddleware):
    """Let an agent delegate to subagents through a `task` tool.

    Args:
        subagents: specs, each with its own `model` and `tools`, or compiled runnables.
        backend: accepted for older code; not used.
        system_prompt: replaces our short part of the system prompt; `None` or `""` leaves it out.
        task_description: the tool's description; `{available_agents}` in it becomes the list of agents.
        private_state_keys: further state keys that no subagent sees or returns.
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
        specs = iter(checked([each for each in given if not isinstance(each, Worker)]))
        workers = [each if isinstance(each, Worker) else worker_of(next(specs), schema) for each in given]
        if not workers:
            raise ConfigError("At least one subagent is needed, or general_purpose_agent=True")
        self._workers: Mapping[str, Worker] = {worker.name: worker for worker in workers}
        self.private_state_keys = private_state_keys or frozenset[str]()
        self.system_prompt = system_prompt
        self.tools = [make_tool(TASK, self._delegation, describe(self._workers, task_description))]

    @property
    def subagent_names(self) -> frozenset[str]:
        """The names that the model may delegate to."""
        return frozenset(self._workers)

    def _delegation(self, runtime: Runtime) -> Delegation:
        return Delegation(self._workers, self.private_state_keys, runtime)

    def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Flow[Response]:
        return (yield from inner(handler, add_section(request, self.system_prompt)))


def worker_of(spec: Mapping[str, Any], state_schema: type[Any]) -> Worker:
    """Make the worker of a complete spec or of a compiled one.

    Raises:
        ConfigError: when a spec lacks its model or tools, or says twice which calls wait for a person.
    """
    name: str = spec["name"]
    if "runnable" in spec:
        return Worker(name, spec["description"], lambda: named(spec["runnable"], name))
    for key, given in (("model", spec.get("model") is not None), ("tools", "tools" in spec)):
        if not given:
            raise ConfigError(f"subagent {name!r} must specify '{key}', or give default_{key}")
    if spec.get("interrupt_on") and asks_itself(spec):
        raise ConfigError(f"subagent {name!r} has interrupt_on and a HumanInTheLoopMiddleware; give it one")
    if spec.get("permissions"):
        raise ConfigError(
            f"subagent {name!r} has permissions, which only create_deep_agent gives to file tools; put "
            "FilesystemMiddleware(permissions=...) and its approval() in its middleware"
        )
    if spec.get("skills"):
        raise ConfigError(
            f"subagent {name!r} has skills, for which only create_deep_agent knows a backend; put "
            "SkillsMiddleware(backend=..., sources=...) and FilesystemMiddleware(backend=...) in its "
            "middleware"
        )
    ready = {**spec, "model": resolve_model(spec["model"])}
    return Worker(name, spec["description"], lambda: create_sub_agent(ready, state_schema=state_schema))


def named(runnable: Runnable[Any, Any], name: str) -> Runnable[Any, Any]:
    """Return the runnable so that its runs and its stream carry the subagent's name."""
    return runnable.with_config({"metadata": {"lc_agent_name": name}, "run_name": name})


def create_sub_agent(
    spec: Mapping[str, Any], *, state_schema: type[Any] | None = None, response_format: Any = None
) -> Runnable[Any, Any]:
    """Compile a complete spec into an agent, as it stands: nothing is added but its approval rules."""
    middleware: list[Middleware] = list(spec.get("middleware") or ())
    if spec.get("interrupt_on"):
        middleware.append(Approval(Rules(()), spec["interrupt_on"]))
    graph: Any = create_agent(
        resolve_model(spec["model"]),
        tools=list(spec["tools"] or ()),
        system_prompt=spec.get("system_prompt") or None,
        middleware=middleware,
        response_format=response_format or spec.get("response_format"),
        state_schema=cast(Any, state_schema or DeepAgentState),
        name=spec["name"],
    )
    return graph.with_config({"recursion_limit": 9_999, "metadata": {"lc_agent_name": spec["name"]}})
