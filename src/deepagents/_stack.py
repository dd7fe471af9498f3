"""The middleware table: which middleware an agent has, in which order, and why there.

Order is outermost first: what stands higher sees a request earlier and a result later. A caller's
middleware whose name equals a slot's takes that slot's place; any other lands at `CALLER`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from deepagents._deprecation import already_warned, warn_caller
from deepagents._plan import AgentPlan, CompileChild, InterruptOn, ReadyWorker
from deepagents._slots import Building, Place, Slot
from deepagents._state import private_keys
from deepagents.errors import StackError
from deepagents.middleware._approval_entries import checked
from deepagents.middleware._base import Middleware, names_of_tools
from deepagents.middleware.filesystem import FilesystemMiddleware
from deepagents.middleware.interrupts import Approval, adopted
from deepagents.middleware.memory import MemoryMiddleware
from deepagents.middleware.memory.middleware import remembering
from deepagents.middleware.patch_tool_calls import PatchToolCallsMiddleware
from deepagents.middleware.prompt_caching import STAND_INS, PromptCachingMiddleware
from deepagents.middleware.skills import SkillsMiddleware
from deepagents.middleware.skills.middleware import knowing, refuse_second
from deepagents.middleware.subagents import SubAgentMiddleware
from deepagents.middleware.subagents.middleware import named
from deepagents.middleware.subagents.task import Worker
from deepagents.middleware.summarization import create_summarization_middleware
from deepagents.middleware.summarization.middleware import told_of
from deepagents.middleware.todos import TodoListMiddleware
from deepagents.middleware.tool_errors import ToolErrorMiddleware, ToolOriginMiddleware
from deepagents.middleware.tool_exclusion import ToolExclusionMiddleware
from deepagents.middleware.unsupported_content import UnsupportedContentMiddleware
from deepagents.permissions import Rules

_APPROVAL: Final = "HumanInTheLoopMiddleware"


def _tool_errors(building: Building) -> Middleware:
    return ToolErrorMiddleware()


def _todos(building: Building) -> Middleware:
    return TodoListMiddleware()


def _memory(building: Building) -> Middleware | None:
    plan = building.plan
    if not plan.memory:
        return None
    with already_warned():
        return MemoryMiddleware(backend=plan.backend, sources=plan.memory, add_cache_control=True)


def _skills(building: Building) -> Middleware | None:
    plan = building.plan
    if not plan.skills:
        return None
    with already_warned():
        return SkillsMiddleware(backend=plan.backend, sources=plan.skills)


def _all_sources(building: Building, skills: Middleware) -> Middleware:
    return knowing(skills, building.plan.skills, building.who)


def _filesystem(building: Building) -> Middleware:
    plan = building.plan
    descriptions = plan.profile.tool_description_overrides
    return FilesystemMiddleware(backend=plan.backend, custom_tool_descriptions=descriptions)


def _under_rules(building: Building, files: Middleware) -> Middleware:
    """Give the plan's permissions to the file tools, whoever brought them."""
    rules = building.plan.permissions
    if not isinstance(files, FilesystemMiddleware):
        if rules:
            raise StackError(f"{files!r} replaces FilesystemMiddleware, which would drop permissions=")
        return files
    ruled = files.with_permissions(rules)
    own = building.replacement(_APPROVAL)
    if own and not isinstance(own, Approval) and Rules(ruled.permissions).has("interrupt"):
        raise StackError(
            f"{building.who} has permissions that ask a person and a {_APPROVAL} of its own, which would "
            "drop them; give the agent a FilesystemMiddleware with the permissions, and its approval()"
        )
    return ruled


def _subagents(building: Building) -> Middleware | None:
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
    _refuse_contradictions(building)
    with already_warned():
        files = building.replacement("FilesystemMiddleware") or _filesystem(building)
        _under_rules(building, files)
    if skills := building.replacement("SkillsMiddleware") or _skills(building):
        _all_sources(building, skills)
    _warn_of_freed_tools(building, parent.plan.interrupt_on or {}, files)
    return Worker(child.name or "", child.description, lambda: parent.compile_child(child))


def _warn_of_freed_tools(building: Building, inherited: InterruptOn, files: Middleware) -> None:
    """Warn when a subagent's own interrupt_on lets a tool run that the parent's makes wait."""
    own = building.plan.interrupt_on
    if not inherited or own is inherited or building.replacement(_APPROVAL):
        return
    brought = (files, _todos(building), *building.brought)
    tools = names_of_tools(building.plan.tools, *(getattr(each, "tools", ()) for each in brought))
    unspoken = {name for name, entry in inherited.items() if entry is not False} - (own or {}).keys()
    if freed := sorted((unspoken & tools) - building.plan.profile.excluded_tools):
        warn_caller(
            f"interrupt_on of {building.who} replaces the agent's, so {', '.join(map(repr, freed))} will run "
            "there without asking; name each of them in it, with False if that is meant"
        )


def _patch_tool_calls(building: Building) -> Middleware:
    return PatchToolCallsMiddleware()


def _summarization(building: Building) -> Middleware:
    with already_warned():
        return create_summarization_middleware(building.plan.model, building.plan.backend)


def _rules(building: Building) -> Rules:
    """Return the rules that bind the file tools, whoever gave them."""
    standing = building.replacement("FilesystemMiddleware")
    own = standing.permissions if isinstance(standing, FilesystemMiddleware) else ()
    return Rules(building.plan.permissions or own)


def _approval(building: Building) -> Middleware | None:
    rules, interrupt_on = _rules(building), building.plan.interrupt_on
    return Approval(rules, interrupt_on) if interrupt_on or rules.has("interrupt") else None


def _asking_for_rules(building: Building, approval: Middleware) -> Middleware:
    own = adopted(approval)
    return own.under(_rules(building)) if isinstance(own, Approval) else own


def _caching(kind: type[PromptCachingMiddleware]) -> Slot:
    return Slot(
        kind.__name__,
        lambda _: kind(),
        f"marks the request as it will be sent, for models of {kind.package}",
        take=lambda _, brought: kind(brought) if kind.stands_for(type(brought)) else brought,
    )


def _tool_exclusion(building: Building) -> Middleware | None:
    excluded = building.plan.profile.excluded_tools
    return ToolExclusionMiddleware(excluded=excluded) if excluded else None


def _unsupported_content(building: Building) -> Middleware:
    return UnsupportedContentMiddleware()


def _tool_origin(building: Building) -> Middleware:
    return ToolOriginMiddleware()


STACK: Final[tuple[Slot | Place, ...]] = (
    Slot(
        "ToolErrorMiddleware",
        _tool_errors,
        "a failing tool becomes a result; a caller's own retry sees it first",
    ),
    Slot("TodoListMiddleware", _todos, "planning is spoken of first, after the base prompt"),
    Slot(
        "MemoryMiddleware",
        _memory,
        "memory is spoken of after planning, and counted with the rest",
        take=lambda building, memory: remembering(memory, building.plan.memory, building.who),
    ),
    Slot("SkillsMiddleware", _skills, "skills are spoken of after memory", take=_all_sources),
    Slot(
        "FilesystemMiddleware",
        _filesystem,
        "every tool result passes it on the way out",
        required=True,
        take=_under_rules,
    ),
    Slot("SubAgentMiddleware", _subagents, "offers the task tool", required=True),
    Slot("PatchToolCallsMiddleware", _patch_tool_calls, "the history is valid before the first model call"),
    Place("CALLER", "sees requests with the library's parts in them, and results before they are evicted"),
    Place("PROFILE", "a profile's extras are closer to the model than the caller's"),
    Slot(
        "ToolExclusionMiddleware",
        _tool_exclusion,
        "hides tools whoever brought them, before they are counted",
    ),
    Slot(
        "SummarizationMiddleware",
        _summarization,
        "counts the request as it will be sent: prompt, tools and messages",
        take=lambda building, brought: told_of(_rules(building), brought),
    ),
    *map(_caching, STAND_INS),
    Slot(
        "HumanInTheLoopMiddleware",
        _approval,
        "asks about the calls that the model made, before any of them runs",
        take=_asking_for_rules,
    ),
    Slot(
        "UnsupportedContentMiddleware",
        _unsupported_content,
        "sees the request last, with all media in it, and knows what this model takes",
    ),
    Slot("ToolOriginMiddleware", _tool_origin, "tells what a tool raised from what middleware raised"),
)


def assemble(plan: AgentPlan, compile_child: CompileChild) -> list[Middleware]:
    """Walk the table once: make each slot or take the caller's of that name, and drop exclusions.

    Raises:
        StackError: for two middleware of one name, or a replacement that would silently drop what was asked
        for.
    """
    building = Building(plan, compile_child, plan.profile.materialize_extra_middleware())
    _refuse_contradictions(building)
    stack = [each for row in STACK for each in _fill(row, building) if not plan.profile.excludes(each)]
    names = [each.name for each in stack]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise StackError(f"two middleware are named {twice!r}; give one of each pair another name")
    tools = names_of_tools(plan.tools, *(getattr(each, "tools", ()) for each in stack))
    return [each.among(tools) if isinstance(each, Approval) else each for each in stack]


def _fill(row: Slot | Place, building: Building) -> Iterator[Middleware]:
    if isinstance(row, Place):
        yield from _newcomers(building.plan) if row.name == "CALLER" else _extras(building)
        return
    standing = building.replacement(row.name) or row.make(building)
    if standing is not None:
        yield row.take(building, standing)


def _newcomers(plan: AgentPlan) -> Sequence[Middleware]:
    if plan.role == "general-purpose":
        return ()
    return [each for each in plan.middleware if each.name not in SLOT_NAMES]


def _extras(building: Building) -> Sequence[Middleware]:
    taken = SLOT_NAMES.union(each.name for each in building.plan.middleware)
    return [each for each in building.extras if each.name not in taken]


def _refuse_contradictions(building: Building) -> None:
    plan, who = building.plan, building.who
    checked(plan.interrupt_on)
    names: list[Any] = [each.name for each in plan.middleware]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise StackError(f"middleware of {who} holds two named {twice!r}; each needs a name of its own")
    own_workers = [
        child for child in plan.subagents if isinstance(child, ReadyWorker) or child.role == "declared"
    ]
    if "SubAgentMiddleware" in names and own_workers:
        raise StackError(
            "middleware= replaces SubAgentMiddleware, which would drop subagents=; give the subagents to "
            "one of them"
        )
    if _APPROVAL in names and plan.interrupt_on:
        raise StackError(
            f"{who} has interrupt_on and a HumanInTheLoopMiddleware of its own, which would drop the rules; "
            f"give all of them to one: for interrupt_mode, that is {_APPROVAL}(interrupt_on={{...}}, "
            "interrupt_mode='per_call') in middleware=, and leave interrupt_on= out"
        )
    refuse_second(plan.skills, building.brought, who)


SLOT_NAMES: Final = frozenset(row.name for row in STACK if isinstance(row, Slot))
