"""The subagents of an agent, as workers that are checked at once and compiled on first use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from langchain_core.runnables import Runnable

from deepagents._agent.build import FILES, SUBAGENTS, Build
from deepagents._agent.factories import Given, filesystem, skills
from deepagents._agent.plan import AgentPlan
from deepagents._agent.validation import validate
from deepagents._deprecation import already_warned
from deepagents.errors import ToolFailure
from deepagents.middleware._base import Middleware
from deepagents.middleware.subagents.fork import REFUSAL
from deepagents.middleware.subagents.middleware import SUBAGENT_PROMPT, SubAgentMiddleware
from deepagents.middleware.subagents.task import Mode, Worker


def subagents(build: Build, given: Given) -> Middleware | None:
    """Make the task tool over the agent's subagents, or connect the caller's own with the agent."""
    made = given or (_task_tool(build, _make_workers(build)) if build.subagents else None)
    if not isinstance(made, SubAgentMiddleware):
        return made
    # The rows below are not made yet: both functions look at the stack when a task is run.
    return made.in_agent(build.state_schemas, build.show_messages)


def _task_tool(build: Build, workers: Sequence[Worker]) -> SubAgentMiddleware:
    profile = build.plan.profile
    return SubAgentMiddleware(
        subagents=workers,
        system_prompt=None if "task" in profile.excluded_tools else SUBAGENT_PROMPT,
        task_description=profile.tool_description_overrides.get("task"),
    )


def _make_workers(build: Build) -> list[Worker]:
    children = build.subagents
    if any(_mode(child) == "fork" for child in children):
        # A fork's request must begin as its caller's does, so it has a task tool that reads the same, and
        # refuses.
        refusing = [Worker(child.name or "", child.description, _refuse, _mode(child)) for child in children]
        task = _task_tool(build, refusing)
        children = [_with_task(child, task) for child in children]
    return [_make_worker(child, build) for child in children]


def _with_task(child: AgentPlan | Worker, task: Middleware) -> AgentPlan | Worker:
    if isinstance(child, Worker) or child.role != "forked":
        return child
    if SUBAGENTS in [each.name for each in child.middleware]:
        return child
    return replace(child, middleware=(*child.middleware, task))


def _refuse(_: Any) -> Runnable[Any, Any]:
    raise ToolFailure("not_supported", REFUSAL)


def _mode(child: AgentPlan | Worker) -> Mode:
    if isinstance(child, Worker):
        return child.mode
    return "fork" if child.role == "forked" else "isolated"


def _make_worker(child: AgentPlan | Worker, parent: Build) -> Worker:
    """Check a subagent now, so that what cannot be is an error where the agent is made; compile it later."""
    if isinstance(child, Worker):
        return child
    build = Build(child, parent.compile, parent.slots, parent)
    validate(build)
    with already_warned():
        # Made for their errors alone; the graph gets its own when it is compiled.
        filesystem(build, build.replacement(FILES))
        skills(build, build.replacement("SkillsMiddleware"))

    def make(response_format: Any) -> Runnable[Any, Any]:
        wanted = build if response_format is None else build.answering_in(response_format)
        return parent.compile(wanted)

    return Worker(child.name or "", child.description, make, _mode(child), addendum=child.addendum)
