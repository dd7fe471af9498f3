"""The middleware table: which middleware an agent has, in which order, and why there.

Order is outermost first: what stands higher sees a request earlier and a result later. A caller's
middleware whose name equals a slot's takes that slot's place; any other lands at `CALLER`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from deepagents._agent import factories as _makers
from deepagents._agent import subagents as _children
from deepagents._agent.joined import join_layers
from deepagents._agent.plan import AgentPlan
from deepagents._agent.slots import Building, CompileChild, Place, Slot
from deepagents._agent.validation import prepared
from deepagents.errors import StackError
from deepagents.middleware._base import Middleware
from deepagents.middleware.approval import ApprovalMiddleware
from deepagents.middleware.memory.middleware import require_sources
from deepagents.middleware.prompt_caching.middleware import STAND_INS
from deepagents.middleware.summarization.middleware import under_rules as _summarizing_under_rules

STACK: Final[tuple[Slot | Place, ...]] = (
    Slot(
        "ToolErrorMiddleware",
        _makers.tool_errors,
        "a failing tool becomes a result; a caller's own retry sees it first",
    ),
    Slot("LimitsMiddleware", _makers.limits, "counts whatever is done further in, and ends it"),
    Slot(
        "ForkedContextMiddleware",
        _makers.forked_context,
        "a fork has the private state of the agent that called it, before anything reads that",
    ),
    Slot("TodoListMiddleware", _makers.todos, "planning is spoken of first, after the base prompt"),
    Slot(
        "MemoryMiddleware",
        _makers.memory,
        "memory is spoken of after planning, and counted with the rest",
        take=lambda building, memory: require_sources(memory, building.plan.memory, building.who),
    ),
    Slot("SkillsMiddleware", _makers.skills, "skills are spoken of after memory", take=_makers.all_sources),
    Slot(
        "FilesystemMiddleware",
        _makers.filesystem,
        "every tool result passes it on the way out",
        required=True,
        take=_makers.under_rules,
    ),
    Slot("SubAgentMiddleware", _children.subagents, "offers the task tool", required=True),
    Slot(
        "ParentNotifierMiddleware",
        _makers.parent_notifier,
        "on an agent server alone: tells the agent that started this run how it ended, after all else",
    ),
    Slot(
        "AsyncSubAgentMiddleware",
        _makers.async_subagents,
        "offers the tools for tasks elsewhere, and is told of their ends before anything reads the history",
        take=_makers.silent_in_forks,
    ),
    Slot(
        "PatchToolCallsMiddleware",
        _makers.patch_tool_calls,
        "the history is valid before the first model call",
    ),
    Place("CALLER", "sees requests with the library's parts in them, and results before they are evicted"),
    Place("PROFILE", "a profile's extras are closer to the model than the caller's"),
    Slot(
        "ToolExclusionMiddleware",
        _makers.tool_exclusion,
        "hides tools whoever brought them, before they are counted",
    ),
    Slot(
        "SummarizationMiddleware",
        _makers.summarization,
        "counts the request as it will be sent: prompt, tools and messages",
        take=lambda building, brought: _summarizing_under_rules(_makers.rules_of(building), brought),
    ),
    Slot(
        "ModelFallbackMiddleware",
        _makers.fallback,
        "asks other models when one has failed for good; one that is too long goes back to be compacted",
        take=_makers.refusals_passing,
    ),
    Slot("ModelRetryMiddleware", _makers.retries, "asks the same model again when its failure may pass"),
    *map(_makers.caching, STAND_INS),
    Slot(
        "HumanInTheLoopMiddleware",
        _makers.approval,
        "asks about the calls that the model made, before any of them runs",
        take=_makers.asking_for_rules,
    ),
    Slot(
        "UnsupportedContentMiddleware",
        _makers.unsupported_content,
        "sees the request last, with all media in it, and knows what this model takes",
    ),
    Slot("ToolOriginMiddleware", _makers.tool_origin, "tells what a tool raised from what middleware raised"),
)


def begin(plan: AgentPlan, compile_child: CompileChild) -> Building:
    """Check the main agent's plan against the table; its subagents are checked while it is assembled.

    Raises:
        ConfigError: for what cannot be, or would silently drop what was asked for.
    """
    return prepared(plan, compile_child, SLOT_NAMES)


def assemble(building: Building) -> list[Middleware]:
    """Walk the table once: make each slot or take the caller's of that name, and drop exclusions.

    Raises:
        ConfigError: for a subagent that cannot be.
        StackError: for two middleware of one name.
    """
    plan = building.plan
    stack = [each for row in STACK for each in _fill(row, building) if not plan.profile.excludes(each)]
    names = [each.name for each in stack]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise StackError(f"two middleware are named {twice!r}; give one of each pair another name")
    told = [
        each.with_stack(stack, plan.tools) if isinstance(each, ApprovalMiddleware) else each for each in stack
    ]
    return join_layers([_children.acquainted(each, told, plan.state_schema) for each in told])


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


SLOT_NAMES: Final = frozenset(row.name for row in STACK if isinstance(row, Slot))
