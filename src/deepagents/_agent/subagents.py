"""The subagents of an agent, as workers that are checked at once and compiled on first use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from langchain_core.runnables import Runnable

from deepagents._agent.factories import APPROVAL, all_sources, filesystem, skills, todos, under_rules
from deepagents._agent.plan import AgentPlan, InterruptOn
from deepagents._agent.slots import Building
from deepagents._agent.validation import prepared
from deepagents._deprecation import already_warned, warn_caller
from deepagents.errors import ToolFailure
from deepagents.middleware._base import Middleware, names_of_tools
from deepagents.middleware.async_subagents import AsyncSubAgentMiddleware
from deepagents.middleware.subagents.fork import REFUSAL
from deepagents.middleware.subagents.middleware import SUBAGENT_PROMPT, SubAgentMiddleware
from deepagents.middleware.subagents.worker import Mode, Worker
from deepagents.middleware.summarization import SummarizationMiddleware


def subagents(building: Building) -> Middleware | None:
    if not building.plan.subagents:
        return None
    return _delegating(building, [_worker(child, building) for child in _with_task(building)])


def _with_task(parent: Building) -> Sequence[AgentPlan | Worker]:
    """Give forks a task tool that reads as that of the agent that calls them, and refuses."""
    children = parent.plan.subagents
    if all(_mode(child) != "fork" for child in children):
        return children
    task = _delegating(
        parent, [Worker(_name(child), child.description, _refuse, _mode(child)) for child in children]
    )
    return [_offering(task, child) for child in children]


def _offering(task: Middleware, child: AgentPlan | Worker) -> AgentPlan | Worker:
    if (
        isinstance(child, Worker)
        or child.role != "forked"
        or task.name in [each.name for each in child.middleware]
    ):
        return child
    return replace(child, middleware=(*child.middleware, task))


def _delegating(parent: Building, workers: Sequence[Worker]) -> SubAgentMiddleware:
    profile = parent.plan.profile
    return SubAgentMiddleware(
        subagents=workers,
        system_prompt=None if "task" in profile.excluded_tools else SUBAGENT_PROMPT,
        task_description=profile.tool_description_overrides.get("task"),
    )


def _refuse(_: Any) -> Runnable[Any, Any]:
    raise ToolFailure("not_supported", REFUSAL)


def _name(child: AgentPlan | Worker) -> str:
    return child.name or ""


def _mode(child: AgentPlan | Worker) -> Mode:
    if isinstance(child, Worker):
        return child.mode
    return "fork" if child.role == "forked" else "isolated"


def acquainted(each: Middleware, stack: Sequence[Middleware], schema: type) -> Middleware:
    """Tell a middleware that delegates of the agent's state, and of what its model sees."""
    if not isinstance(each, SubAgentMiddleware | AsyncSubAgentMiddleware):
        return each
    shown = next((other.shown_of for other in stack if isinstance(other, SummarizationMiddleware)), None)
    if isinstance(each, AsyncSubAgentMiddleware):
        return each.seeing(shown) if shown else each
    return each.among([schema, *(other.state_schema for other in stack)], shown)


def _worker(child: AgentPlan | Worker, parent: Building) -> Worker:
    if isinstance(child, Worker):
        return child
    building = prepared(child, parent.compile_child, parent.slots, parent)
    if child.permissions or building.replacement("FilesystemMiddleware"):
        under_rules(building, _files(building))
    if known := building.replacement("SkillsMiddleware") or skills(building):
        all_sources(building, known)
    _warn_of_freed_tools(building, parent.plan.interrupt_on or {})

    def make(response_format: Any) -> Runnable[Any, Any]:
        wanted = building if response_format is None else building.answering_in(response_format)
        return parent.compile_child(wanted)

    return Worker(_name(child), child.description, make, _mode(child), addendum=child.addendum)


def _files(building: Building) -> Middleware:
    with already_warned():
        return building.replacement("FilesystemMiddleware") or filesystem(building)


def _warn_of_freed_tools(building: Building, inherited: InterruptOn) -> None:
    """Warn when a subagent's own interrupt_on lets a tool run that the parent's makes wait."""
    own = building.plan.interrupt_on
    if not inherited or own is inherited or building.replacement(APPROVAL):
        return
    brought = (_files(building), todos(building), *building.brought)
    tools = names_of_tools(building.plan.tools, *(getattr(each, "tools", ()) for each in brought))
    unspoken = {name for name, entry in inherited.items() if entry is not False} - (own or {}).keys()
    if freed := sorted((unspoken & tools) - building.plan.profile.excluded_tools):
        warn_caller(
            f"interrupt_on of {building.who} replaces the agent's, so {', '.join(map(repr, freed))} will run "
            "there without asking; name each of them in it, with False if that is meant"
        )
