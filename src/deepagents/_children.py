"""The subagents of an agent, as workers that are checked at once and compiled on first use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.runnables import Runnable

from deepagents._deprecation import already_warned, warn_caller
from deepagents._makers import (
    APPROVAL,
    all_sources,
    filesystem,
    refuse_contradictions,
    skills,
    todos,
    under_rules,
)
from deepagents._plan import AgentPlan, InterruptOn
from deepagents._slots import Building
from deepagents.middleware._base import Middleware, names_of_tools
from deepagents.middleware.async_subagents import AsyncSubAgentMiddleware
from deepagents.middleware.subagents import SubAgentMiddleware
from deepagents.middleware.subagents.worker import Worker
from deepagents.middleware.summarization import SummarizationMiddleware


def subagents(building: Building) -> Middleware | None:
    plan = building.plan
    if not plan.subagents:
        return None
    made = SubAgentMiddleware(
        subagents=[_worker(child, building, lambda: made) for child in plan.subagents],
        task_description=plan.profile.tool_description_overrides.get("task"),
    )
    return made


def acquainted(each: Middleware, stack: Sequence[Middleware], schema: type) -> Middleware:
    """Tell a middleware that delegates of the agent's state, and of what its model sees."""
    if not isinstance(each, SubAgentMiddleware | AsyncSubAgentMiddleware):
        return each
    shown = next((other.shown_of for other in stack if isinstance(other, SummarizationMiddleware)), None)
    if isinstance(each, AsyncSubAgentMiddleware):
        return each.seeing(shown) if shown else each
    return each.among([schema, *(other.state_schema for other in stack)], shown)


def _worker(child: AgentPlan | Worker, parent: Building, delegating: Callable[[], Middleware]) -> Worker:
    if isinstance(child, Worker):
        return child
    extras = child.profile.materialize_extra_middleware()
    building = Building(child, parent.compile_child, extras, parent.slots)
    refuse_contradictions(building)
    if child.permissions or building.replacement("FilesystemMiddleware"):
        under_rules(building, _files(building))
    if known := building.replacement("SkillsMiddleware") or skills(building):
        all_sources(building, known)
    _warn_of_freed_tools(building, parent.plan.interrupt_on or {})

    def make(response_format: Any) -> Runnable[Any, Any]:
        plan = child if response_format is None else replace(child, response_format=response_format)
        return parent.compile_child(_delegating_as(delegating(), plan) if child.role == "forked" else plan)

    mode = "fork" if child.role == "forked" else "isolated"
    return Worker(child.name or "", child.description, make, mode, addendum=child.addendum)


def _files(building: Building) -> Middleware:
    with already_warned():
        return building.replacement("FilesystemMiddleware") or filesystem(building)


def _delegating_as(parents: Middleware, fork: AgentPlan) -> AgentPlan:
    """Give a fork the task tool of the agent that calls it, so that it is offered the same tools."""
    if any(each.name == parents.name for each in fork.middleware):
        return fork
    return replace(fork, middleware=(*fork.middleware, parents))


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
