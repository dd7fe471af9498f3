"""Hold the context in which one agent's stack is built: its plan, and what was made for it so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from langchain_core.messages import AnyMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool

from deepagents._agent.artifacts import separate_artifacts
from deepagents._agent.plan import AgentPlan, plan_background, plan_subagents
from deepagents._agent.schemas import mend_tool
from deepagents._values import field, recordclass, replace
from deepagents.middleware._base import Middleware
from deepagents.middleware.filesystem import FilesystemMiddleware
from deepagents.middleware.subagents.spec import ToolLike
from deepagents.middleware.subagents.task import Worker
from deepagents.middleware.summarization import SummarizationMiddleware
from deepagents.permissions import Rules
from deepagents.profiles.harness.harness_profiles import profile_for
from deepagents.tools._tool import tool_name
from deepagents.tools.web_search import place_search

if TYPE_CHECKING:
    from deepagents.undo.agents import AgentFiles

FILES, SUBAGENTS, ASYNC_SUBAGENTS = "FilesystemMiddleware", "SubAgentMiddleware", "AsyncSubAgentMiddleware"
APPROVAL, CODE_MODE, LIMITS = "HumanInTheLoopMiddleware", "CodeModeMiddleware", "LimitsMiddleware"
SKILLS = "SkillsMiddleware"

Compile: TypeAlias = Callable[["Build"], Runnable[Any, Any]]


@recordclass
class Build:
    """One agent while it is built: `slots` names the rows of the table, `stack` holds what was made so far.

    A row may look at what the rows before it made, and at all of it once the agent runs.
    """

    plan: AgentPlan
    compile: Compile
    slots: frozenset[str]
    parent: Build | None = None
    stack: list[Middleware] = field(default_factory=list[Middleware])

    @cached_property
    def extras(self) -> Sequence[Middleware]:
        """The profile's middleware, made anew for each agent."""
        # Cached: factories would make other instances each time, and validation must see those that run.
        return self.plan.profile.materialize_extra_middleware()

    @cached_property
    def overrides(self) -> Mapping[str, Middleware]:
        """The middleware by name that is not the library's own; the caller's goes before the profile's."""
        return {each.name: each for each in (*reversed(self.extras), *self.plan.middleware)}

    @cached_property
    def subagents(self) -> Sequence[AgentPlan | Worker]:
        """The plans of the agents that this one may delegate to."""
        own = self.plan.role == "main" and SUBAGENTS not in self.overrides
        return separate_artifacts(self.plan, plan_subagents(self.plan)) if own else ()

    @cached_property
    def background(self) -> Sequence[AgentPlan | Worker]:
        """The plans of the agents that work for this one in the background of this process."""
        own = self.plan.role == "main" and ASYNC_SUBAGENTS not in self.overrides
        return separate_artifacts(self.plan, plan_background(self.plan)) if own else ()

    @property
    def below(self) -> list[AgentPlan]:
        """The plans of all agents that work for this one, but for those that a caller compiled."""
        return [each for each in (*self.subagents, *self.background) if isinstance(each, AgentPlan)]

    @cached_property
    def tools(self) -> list[ToolLike]:
        """The caller's tools, as they can be sent, with the descriptions that the profile gives them."""
        profiles = [self.plan.profile, *map(profile_for, self.plan.fallback_models)]
        tools = place_search(self.plan.tools, [each.web_search for each in profiles], self.plan.label)
        return [mend_tool(each) for each in self.describe(tools)]

    def describe(self, tools: Sequence[ToolLike]) -> list[ToolLike]:
        """Return tools with the descriptions that the profile gives them."""
        texts = self.plan.profile.tool_description_overrides
        return [_describe_tool(tool, texts.get(tool_name(tool) or "")) for tool in tools]

    @cached_property
    def rules(self) -> Rules:
        """The rules that bind the file tools, be they the plan's or of the caller's own middleware."""
        files = self.overrides.get(FILES)
        return Rules(
            self.plan.permissions or (files.permissions if isinstance(files, FilesystemMiddleware) else ())
        )

    @cached_property
    def files(self) -> AgentFiles:
        """What undo has to know of the agent."""
        worker = any(isinstance(each, Worker) for each in (*self.subagents, *self.background))
        history: Any = self.plan.file_history
        return history.describe(
            self.plan.backend, self.rules, has_tools=bool(self.plan.tools), hands_on=worker
        )

    def state_schemas(self) -> list[type]:
        """Return the state schemas of the finished agent, which say how subagents share its keys."""
        return [self.plan.state_schema, *(each.state_schema for each in self.stack)]

    def show_messages(self, state: Mapping[str, Any]) -> Sequence[AnyMessage]:
        """Return the messages of a state as the finished agent's model sees them."""
        compacted = next((each for each in self.stack if isinstance(each, SummarizationMiddleware)), None)
        return compacted.show_messages(state) if compacted else state.get("messages", ())

    def answering_in(self, response_format: Any) -> Build:
        """Return the build of the same agent, to answer in another format."""
        # A build of its own: `stack` belongs to the graph that was compiled with it, which stays in use.
        plan = replace(self.plan, response_format=response_format)
        return Build(plan, self.compile, self.slots, self.parent)


def _describe_tool(tool: ToolLike, text: str | None) -> ToolLike:
    """Return a copy of a tool with another description; plain functions stay as they are."""
    if text is None:
        return tool
    if isinstance(tool, BaseTool):
        # A copy: the caller may give the same tool to agents with other profiles.
        return tool.model_copy(update={"description": text})
    if not isinstance(tool, dict):
        return tool
    inside: object = cast("dict[str, object]", tool).get("function")
    if not isinstance(inside, dict):
        return {**tool, "description": text}
    return {**tool, "function": {**cast("dict[str, Any]", inside), "description": text}}
