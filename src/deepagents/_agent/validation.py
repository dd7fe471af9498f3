"""What is refused, or warned about, before an agent is built."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deepagents._agent.exclusions import APPROVAL, check_exclusions
from deepagents._agent.factories import limits, rules_of
from deepagents._agent.namesakes import ASYNC_SUBAGENTS, FILES, SUBAGENTS, Namesake, namesakes
from deepagents._agent.plan import AgentPlan
from deepagents._agent.slots import Building, CompileChild
from deepagents._deprecation import warn_caller
from deepagents.errors import StackError
from deepagents.middleware.approval import validate_interrupt_on
from deepagents.middleware.skills.middleware import refuse_second
from deepagents.middleware.subagents.worker import Worker
from deepagents.tools import specs_by_name


def prepared(
    plan: AgentPlan, compile_child: CompileChild, slots: frozenset[str], parent: Building | None = None
) -> Building:
    """Return what the stack of a plan is built from, once it is known that it can be.

    Raises:
        ProfileError: for exclusions that cannot be meant.
        ConfigError: for a model without a price where money is limited.
        StackError: for what was brought where it would silently drop something that was asked for.
    """
    building = Building(plan, compile_child, plan.profile.materialize_extra_middleware(), slots)
    _refuse_contradictions(building)
    _check_names_of_tools(building, parent)
    return building


def _refuse_contradictions(building: Building) -> None:
    plan, who = building.plan, building.who
    validate_interrupt_on(plan.interrupt_on)
    names: list[Any] = [each.name for each in plan.middleware]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise StackError(f"middleware of {who} holds two named {twice!r}; each needs a name of its own")
    _refuse_limits(building)
    if SUBAGENTS in names and _own_workers(plan):
        raise StackError(
            "middleware= replaces SubAgentMiddleware, which would drop subagents=; give the subagents to "
            "one of them"
        )
    if ASYNC_SUBAGENTS in names and plan.async_subagents and plan.role == "main":
        raise StackError(
            "middleware= replaces AsyncSubAgentMiddleware, which would drop the subagents= with a graph_id; "
            "give them to it"
        )
    if APPROVAL in names and plan.interrupt_on:
        raise StackError(
            f"{who} has interrupt_on and a HumanInTheLoopMiddleware of its own, which would drop the rules; "
            f"give all of them to one: for interrupt_mode, that is {APPROVAL}(interrupt_on={{...}}, "
            "interrupt_mode='per_call') in middleware=, and leave interrupt_on= out"
        )
    refuse_second(plan.skills, building.brought, who)
    check_exclusions(building, lambda: bool(plan.interrupt_on) or rules_of(building).has("interrupt"))


def _refuse_limits(building: Building) -> None:
    if building.replacement("LimitsMiddleware") is None:
        limits(building)
    elif building.plan.role == "main" and building.plan.limits:
        raise StackError(
            "the agent has limits= and a LimitsMiddleware of its own; give them to one of the two"
        )


def _own_workers(plan: AgentPlan) -> bool:
    return any(isinstance(each, Worker) or each.role != "general-purpose" for each in plan.subagents)


def _check_names_of_tools(building: Building, parent: Building | None) -> None:
    """Refuse tools that take the place of a safeguard or of subagents, and warn of the others.

    What was said about the parent is not said again; the general-purpose agent has the parent's tools.
    """
    if building.plan.role == "general-purpose":
        return
    found = namesakes(building)
    for each in found:
        _refuse_taken(building, each)
    said = namesakes(parent) if parent and found else []
    told = [each for each in found if each not in said]
    for of, taken_by in dict.fromkeys((each.of, each.taken_by) for each in told):
        tools = [each.tool for each in told if (each.of, each.taken_by) == (of, taken_by)]
        warn_caller(
            f"{building.who}: {_listed(tools, taken_by)} in the place of the same of {of}, which nobody "
            "can call any more; give it another name, or filter this warning out if that is meant"
        )


def _refuse_taken(building: Building, taken: Namesake) -> None:
    who, plan = building.who, building.plan
    theirs = f"{taken.tool!r} of {taken.taken_by} would stand in the place of that of {taken.of}"
    if taken.of == FILES and _restricted(building, taken.tool):
        raise StackError(f"{who} has permissions, which do not bind this tool: {theirs}; rename it")
    reached_by_it = (taken.of == SUBAGENTS and (_own_workers(plan) or building.replacement(SUBAGENTS))) or (
        taken.of == ASYNC_SUBAGENTS
    )
    if reached_by_it and plan.role != "forked":
        raise StackError(f"nobody could reach the subagents of {who}: {theirs}; rename it")


def _restricted(building: Building, tool: str) -> bool:
    spec = specs_by_name(getattr(building.replacement(FILES), "tools", ())).get(tool)
    operation = spec.operation if spec else "read"
    rules = rules_of(building)
    return operation is not None and (rules.has("deny", operation) or rules.has("interrupt", operation))


def _listed(tools: Sequence[str], owner: str) -> str:
    return f"{', '.join(map(repr, tools))} of {owner} {'stands' if len(tools) == 1 else 'stand'}"
