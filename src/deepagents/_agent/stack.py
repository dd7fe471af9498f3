"""List the middleware of an agent in one table: which, in which order, and why there.

The order is outermost first: a row that is higher sees a request earlier and a result later. A caller's
middleware replaces the row of its name; any other lands at `CALLER`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from deepagents._agent import factories
from deepagents._agent.build import Build
from deepagents._agent.factories import Factory
from deepagents._values import valueclass
from deepagents.errors import StackError
from deepagents.middleware._base import Middleware, join_layers
from deepagents.middleware.limits import ReservationMiddleware
from deepagents.middleware.patch_tool_calls.broken import BrokenAnswerMiddleware
from deepagents.middleware.patch_tool_calls.middleware import PatchToolCallsMiddleware
from deepagents.middleware.prompt_caching import STAND_INS, CacheBreakMiddleware
from deepagents.middleware.tool_errors import ToolErrorMiddleware, ToolOriginMiddleware
from deepagents.middleware.unsupported_content import UnsupportedContentMiddleware


@valueclass
class Slot:
    """One row: the name of its middleware, how to make it, and why it stands there."""

    name: str
    make: Factory
    reason: str

    def fill(self, build: Build) -> list[Middleware]:
        """Make the middleware of this row, if the agent has it.

        Raises:
            StackError: if it has another name than the row, so that none of that name could replace it.
        """
        made = self.make(build, build.overrides.get(self.name))
        if made and made.name != self.name:
            raise StackError(f"the row {self.name!r} of the stack makes a {made.name!r}; name the row so too")
        return [made] if made else []


@valueclass
class Position:
    """Where middleware lands that is not the library's own."""

    name: Literal["CALLER", "PROFILE"]
    reason: str


STACK: Final[tuple[Slot | Position, ...]] = (
    Slot(
        "CodeModeMiddleware",
        factories.brought,
        "where it was given; the calls of a program pass all that stands below",
    ),
    Slot(
        "ToolErrorMiddleware",
        factories.always(ToolErrorMiddleware),
        "a failing tool becomes a result; a caller's own retry sees it first",
    ),
    Slot("LimitsMiddleware", factories.limits, "counts everything that is done further in, and ends it"),
    Slot(
        "MCPMiddleware",
        factories.mcp,
        "adds tools before any other row: what comes later stands behind them, and the prefix is kept",
    ),
    Slot(
        "ForkedContextMiddleware",
        factories.forked_context,
        "a fork has the private state of the agent that called it, before anything reads that",
    ),
    Slot(
        "FileHistoryMiddleware",
        factories.file_history,
        "looks at files before and after all that a call of a tool does, and finishes a going back before "
        "anything reads them",
    ),
    Slot("TodoListMiddleware", factories.todos, "its prompt comes first after the base prompt"),
    Slot(
        "MemoryMiddleware",
        factories.memory,
        "its prompt comes after planning, and is counted with the rest",
    ),
    Slot("SkillsMiddleware", factories.skills, "its prompt comes after memory"),
    Slot("FilesystemMiddleware", factories.filesystem, "every tool result passes it on the way out"),
    Slot(
        "EditCheckMiddleware",
        factories.edit_checks,
        "where it was given; what formats a file runs right behind the tool that wrote it, inside its step",
    ),
    Slot("SubAgentMiddleware", factories.subagents, "offers the task tool"),
    Slot(
        "ParentNotifierMiddleware",
        factories.parent_notifier,
        "on an agent server alone: tells the agent that started this run how it ended, after all else",
    ),
    Slot(
        "AsyncSubAgentMiddleware",
        factories.async_subagents,
        "offers the tools for tasks elsewhere, and hears of their ends before anything reads the history",
    ),
    Slot(
        "PatchToolCallsMiddleware",
        factories.always(PatchToolCallsMiddleware),
        "the history is valid before the first model call",
    ),
    Slot(
        "FinishCheckMiddleware",
        factories.finish_check,
        "where it was given; asks whether an answer is the end, behind the hooks of the caller's middleware",
    ),
    Slot(
        "AskAgainMiddleware",
        factories.ask_again,
        "where further middleware has a hook after the model, which would end a run after malformed calls",
    ),
    Position("CALLER", "sees requests with the library's parts in them, and results before they are moved"),
    Position("PROFILE", "a profile's extras are closer to the model than the caller's"),
    Slot(
        "ToolExclusionMiddleware",
        factories.tool_exclusion,
        "hides tools of every origin, before they are counted",
    ),
    Slot(
        "ToolSearchMiddleware",
        factories.tool_search,
        "holds back tools, wherever they come from, before they are counted",
    ),
    Slot(
        "SummarizationMiddleware",
        factories.summarization,
        "counts the request as it will be sent: prompt, tools and messages",
    ),
    Slot(
        "ModelFallbackMiddleware",
        factories.fallback,
        "asks other models when one has failed for good; a request that is too long goes back",
    ),
    Slot("ModelRetryMiddleware", factories.retries, "asks the same model again when its failure may pass"),
    *(
        Slot(
            kind.__name__,
            factories.caching(kind),
            f"marks the request as it will be sent, for models of {kind.package}",
        )
        for kind in STAND_INS
    ),
    Slot(
        "HumanInTheLoopMiddleware",
        factories.approval,
        "asks about the calls that the model made, before any of them runs",
    ),
    Slot(
        "BrokenAnswerMiddleware",
        factories.always(BrokenAnswerMiddleware),
        "runs no call of an answer that broke off, before anything sees its calls",
    ),
    Slot(
        "UnsupportedContentMiddleware",
        factories.always(UnsupportedContentMiddleware),
        "sees all media in the request, and knows what this model takes",
    ),
    Slot(
        "ReservationMiddleware",
        factories.always(ReservationMiddleware),
        "keeps from others what the request may cost, which it sees as it is sent",
    ),
    Slot(
        "CacheBreakMiddleware",
        factories.always(CacheBreakMiddleware),
        "compares requests that are sent, so it stands behind what may hold one back",
    ),
    Slot(
        "ToolOriginMiddleware",
        factories.always(ToolOriginMiddleware),
        "marks what a tool raised, to tell it from what middleware raised",
    ),
)

SLOT_NAMES: Final = frozenset(row.name for row in STACK if isinstance(row, Slot))


def assemble(build: Build) -> list[Middleware]:
    """Walk the table once: fill each row, and drop what the profile excludes.

    Raises:
        ConfigError: for a subagent that cannot be.
        StackError: for two middleware of one name.
    """
    profile = build.plan.profile
    build.stack = []
    for row in STACK:
        filled = _own(row.name, build) if isinstance(row, Position) else row.fill(build)
        build.stack += [each for each in filled if not profile.excludes(each)]
    names = [each.name for each in build.stack]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise StackError(f"two middleware are named {twice!r}; give one of each pair another name")
    return join_layers(build.stack)


def _own(position: Literal["CALLER", "PROFILE"], build: Build) -> Iterable[Middleware]:
    """Return the caller's or the profile's middleware that replaces no row."""
    plan = build.plan
    if position == "CALLER":
        # The general-purpose agent has what replaces a row, and none of the caller's further middleware.
        brought = () if plan.role == "general-purpose" else plan.middleware
        return [each for each in brought if each.name not in SLOT_NAMES]
    # A caller's middleware replaces a profile's of the same name too, wherever that stands.
    taken = SLOT_NAMES.union(each.name for each in plan.middleware)
    return [each for each in build.extras if each.name not in taken]
