"""The subagents of an agent, as workers that are checked at once and compiled on first use."""

from __future__ import annotations

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
from deepagents._plan import AgentPlan, InterruptOn, ReadyWorker
from deepagents._slots import Building
from deepagents._state import private_keys
from deepagents.middleware._base import Middleware, names_of_tools
from deepagents.middleware.subagents import SubAgentMiddleware
from deepagents.middleware.subagents.middleware import named
from deepagents.middleware.subagents.task import Worker


def subagents(building: Building) -> Middleware | None:
    plan = building.plan
    if not plan.subagents:
        return None
    private = private_keys(plan.state_schema).union(
        *(private_keys(each.state_schema) for each in building.brought)
    )
    return SubAgentMiddleware(
        subagents=[_worker(child, building) for child in plan.subagents],
        task_description=plan.profile.tool_description_overrides.get("task"),
        private_state_keys=private,
    )


def _worker(child: AgentPlan | ReadyWorker, parent: Building) -> Worker:
    if isinstance(child, ReadyWorker):
        return Worker(child.name, child.description, lambda: named(child.runnable, child.name))
    building = Building(child, parent.compile_child, child.profile.materialize_extra_middleware())
    refuse_contradictions(building)
    with already_warned():
        files = building.replacement("FilesystemMiddleware") or filesystem(building)
        under_rules(building, files)
    if known := building.replacement("SkillsMiddleware") or skills(building):
        all_sources(building, known)
    _warn_of_freed_tools(building, parent.plan.interrupt_on or {}, files)
    return Worker(child.name or "", child.description, lambda: parent.compile_child(child))


def _warn_of_freed_tools(building: Building, inherited: InterruptOn, files: Middleware) -> None:
    """Warn when a subagent's own interrupt_on lets a tool run that the parent's makes wait."""
    own = building.plan.interrupt_on
    if not inherited or own is inherited or building.replacement(APPROVAL):
        return
    brought = (files, todos(building), *building.brought)
    tools = names_of_tools(building.plan.tools, *(getattr(each, "tools", ()) for each in brought))
    unspoken = {name for name, entry in inherited.items() if entry is not False} - (own or {}).keys()
    if freed := sorted((unspoken & tools) - building.plan.profile.excluded_tools):
        warn_caller(
            f"interrupt_on of {building.who} replaces the agent's, so {', '.join(map(repr, freed))} will run "
            "there without asking; name each of them in it, with False if that is meant"
        )
