"""Make the middleware of each row of the stack, or adapt the one that replaces it.

Each function takes the build and the caller's or the profile's middleware of that name, if there is one.
`None` leaves the row out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, TypeAlias, cast

from langchain.agents.middleware import ModelFallbackMiddleware
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool

from deepagents import middleware
from deepagents._agent.artifacts import hide_artifacts
from deepagents._agent.build import APPROVAL, ASYNC_SUBAGENTS, CODE_MODE, FILES, LIMITS, SUBAGENTS, Build
from deepagents._agent.plan import AgentPlan
from deepagents._agent.validation import validate
from deepagents._deprecation import already_warned
from deepagents.backends.handle import BACKEND_SECONDS
from deepagents.backends.protocol import BACKEND_TYPES
from deepagents.errors import LimitExceeded, StackError, ToolFailure
from deepagents.middleware._base import Middleware, has_hook_after_model
from deepagents.middleware.approval import ApprovalMiddleware, wrap_langchain
from deepagents.middleware.async_subagents.spec import make_local
from deepagents.middleware.fallback import passing
from deepagents.middleware.filesystem import FilesystemMiddleware
from deepagents.middleware.filesystem.choice import describe_files
from deepagents.middleware.limits import LimitsMiddleware
from deepagents.middleware.patch_tool_calls.middleware import AskAgainMiddleware
from deepagents.middleware.prompt_caching import PromptCachingMiddleware
from deepagents.middleware.retries import ModelRetryMiddleware
from deepagents.middleware.subagents.fork import REFUSAL, ForkedContextMiddleware
from deepagents.middleware.subagents.middleware import SUBAGENT_PROMPT, SubAgentMiddleware
from deepagents.middleware.subagents.task import TASK, Mode, Worker
from deepagents.middleware.summarization import SummarizationMiddleware, create_summarization_middleware
from deepagents.middleware.todos import TODO_PROMPT, WRITE_TODOS, TodoListMiddleware
from deepagents.middleware.tool_exclusion import ToolExclusionMiddleware
from deepagents.models.failures import is_overflow
from deepagents.models.traits import model_provider
from deepagents.permissions import Rules
from deepagents.tools import EDIT_TOOLS, FILE_TOOLS, specs_by_name
from deepagents.tools.change import EDIT_FILE

Given: TypeAlias = Middleware | None
Factory: TypeAlias = Callable[[Build, Given], Middleware | None]


def always(kind: Callable[[], Middleware]) -> Factory:
    """Return the factory for middleware that each agent has."""
    return lambda build, given: given or kind()


def brought(_: Build, given: Given) -> Middleware | None:
    return given


def limits(build: Build, given: Given) -> Middleware | None:
    plan = build.plan
    if given and plan.limits and plan.role == "main":
        raise StackError(f"the agent has limits= and a {LIMITS} of its own; give them to one of the two")
    if given or plan.limits is None:
        return given
    models = (plan.model, *plan.fallback_models)
    made = LimitsMiddleware(plan.limits, models=models)
    # Here and not at the first call, so that an agent whose cost is unknown is never built.
    for model in models:
        made.refuse_unpriced(model)
    return made


def mcp(build: Build, given: Given) -> Middleware | None:
    servers = build.plan.mcp
    return given or (None if servers is None else middleware.MCPMiddleware(servers))


def file_history(build: Build, given: Given) -> Middleware | None:
    history = build.plan.file_history
    if given or history is None:
        return given
    return history.make_middleware(build.files, is_main=build.plan.role == "main")


def forked_context(build: Build, given: Given) -> Middleware | None:
    return given or (ForkedContextMiddleware() if build.plan.role == "forked" else None)


def ask_again(build: Build, given: Given) -> Middleware | None:
    others = (*build.extras, *build.plan.middleware)
    return given or (AskAgainMiddleware() if any(map(has_hook_after_model, others)) else None)


def finish_check(build: Build, given: Given) -> Middleware | None:
    """Connect the caller's or the profile's check with the files of the agent."""
    if given and isinstance(given, middleware.FinishCheckMiddleware):
        return given.in_agent(_file_backend(build), build.rules)
    return given


def todos(build: Build, given: Given) -> Middleware:
    if given:
        return given
    hidden = WRITE_TODOS.name in build.plan.profile.excluded_tools
    made: Middleware = TodoListMiddleware(system_prompt="" if hidden else TODO_PROMPT)
    made.tools = cast("list[BaseTool]", build.describe(made.tools))
    return made


def memory(build: Build, given: Given) -> Middleware | None:
    plan = build.plan
    if given:
        return _require_sources(given, middleware.MemoryMiddleware, plan.memory, f"{plan.label} has memory")
    if not plan.memory:
        return None
    with already_warned():
        # FilesystemMiddleware warns about an older form of the same backend; once is enough.
        return middleware.MemoryMiddleware(
            backend=plan.backend,
            sources=plan.memory,
            add_cache_control=True,
            backend_timeout=_backend_timeout(build),
        )


def skills(build: Build, given: Given) -> Middleware | None:
    plan = build.plan
    if given:
        sources = [*map(middleware.source_path, plan.skills)]
        return _require_sources(given, middleware.SkillsMiddleware, sources, f"{plan.label} has skills")
    if not plan.skills:
        return None
    with already_warned():
        return middleware.SkillsMiddleware(
            backend=plan.backend, sources=plan.skills, backend_timeout=_backend_timeout(build)
        )


def _require_sources(
    given: Middleware,
    kind: type[middleware.MemoryMiddleware | middleware.SkillsMiddleware],
    sources: Sequence[str],
    what: str,
) -> Middleware:
    """Return a middleware that replaces one with these sources, if it has them all.

    Raises:
        StackError: for sources that would be dropped, naming them.
    """
    known = given.sources if isinstance(given, kind) else []
    if missing := [source for source in sources if source not in known]:
        raise StackError(
            f"{what} and a {kind.__name__} of its own, which would drop {missing!r}; give all sources to one "
            "of them"
        )
    return given


def _backend_timeout(build: Build) -> float | None:
    """Return the timeout of the agent's file tools, which holds for memory, skills and archives too."""
    files = build.overrides.get(FILES)
    return files.backend_timeout if isinstance(files, FilesystemMiddleware) else BACKEND_SECONDS


def _file_backend(build: Build) -> BACKEND_TYPES:
    """Return where the agent's file tools have their files, which the caller may have brought."""
    files = build.overrides.get(FILES)
    return files.backend if isinstance(files, FilesystemMiddleware) else build.plan.backend


def filesystem(build: Build, given: Given) -> Middleware:
    """Make the file tools, and give them the plan's permissions, be they ours or the caller's."""
    plan, rules = build.plan, build.plan.permissions
    if given and not isinstance(given, FilesystemMiddleware):
        if rules:
            raise StackError(f"{given!r} replaces FilesystemMiddleware, which would drop permissions=")
        return given
    main = build.parent or build
    hidden = hide_artifacts(plan, main.plan, main.below)
    excluded = _excluded_tools(build)
    made = _with_edits(given, excluded) if given else _file_tools(build, excluded)
    ruled = _naming_only_offered(made, excluded).with_permissions(rules).hide(hidden)
    approval = build.overrides.get(APPROVAL)
    can_ask = approval is None or isinstance(wrap_langchain(approval), ApprovalMiddleware)
    if not can_ask and Rules(ruled.permissions).has("interrupt"):
        raise StackError(
            f"{plan.label} has permissions that ask a person and a {APPROVAL} of its own, which would "
            "drop them; give the agent a FilesystemMiddleware with the permissions, and its approval()"
        )
    return ruled


def _with_edits(given: FilesystemMiddleware, excluded: frozenset[str]) -> FilesystemMiddleware:
    """Return file tools with `edit_file`, where their form stands for others that the agent goes without."""
    if EDIT_FILE.name in excluded or excluded.isdisjoint(EDIT_TOOLS[given.edit_form].instead_of):
        return given
    clone = copy(given)
    clone.take_edit_form("replace")
    return clone


def _naming_only_offered(given: FilesystemMiddleware, excluded: frozenset[str]) -> FilesystemMiddleware:
    """Return file tools whose own part of the prompt names no excluded tool."""
    names = [tool.name for tool in given.tools]
    if excluded.isdisjoint(names) or given.system_prompt != describe_files(names):
        return given
    clone = copy(given)
    clone.system_prompt = describe_files([name for name in names if name not in excluded])
    return clone


def _excluded_tools(build: Build) -> frozenset[str]:
    excluding = [each for each in build.plan.middleware if isinstance(each, ToolExclusionMiddleware)]
    return build.plan.profile.excluded_tools.union(*(each.excluded for each in excluding))


def _file_tools(build: Build, excluded: frozenset[str]) -> FilesystemMiddleware:
    profile = build.plan.profile
    offered = {spec.name for spec in FILE_TOOLS} - excluded
    form = profile.edit_form or "replace"
    return FilesystemMiddleware(
        backend=build.plan.backend,
        custom_tool_descriptions=profile.tool_description_overrides,
        edit_form=form if offered.issuperset(EDIT_TOOLS[form].instead_of) else "replace",
    )


def subagents(build: Build, given: Given) -> Middleware | None:
    """Make the task tool over the agent's subagents, or connect the caller's own with the agent."""
    made = given or (_task_tool(build, _make_workers(build)) if build.subagents else None)
    if not isinstance(made, SubAgentMiddleware):
        return made
    # The rows below are not made yet: both functions look at the stack when a task is run.
    return made.in_agent(build.state_schemas, build.show_messages)


def edit_checks(build: Build, given: Given) -> Middleware | None:
    """Connect the caller's checks with the agent; what agents below it change is checked in its own turn."""
    if build.plan.role in ("general-purpose", "forked"):
        return None
    if given and isinstance(given, middleware.EditCheckMiddleware):
        return given.in_agent(_file_backend(build), build.rules)
    return given


def _task_tool(build: Build, workers: Sequence[Worker]) -> SubAgentMiddleware:
    profile = build.plan.profile
    return SubAgentMiddleware(
        subagents=workers,
        system_prompt=None if TASK.name in profile.excluded_tools else SUBAGENT_PROMPT,
        task_description=profile.tool_description_overrides.get(TASK.name),
    )


def _make_workers(build: Build) -> list[Worker]:
    children = build.subagents
    if any(_mode(child) == "fork" for child in children):
        # A fork's request must begin as its caller's does: its task tool reads the same, and refuses.
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
    # The general-purpose agent has what its caller has, which was made already.
    if child.role != "general-purpose":
        with already_warned():
            # Made for their errors alone; the graph gets its own when it is compiled.
            limits(build, build.overrides.get(LIMITS))
            skills(build, build.overrides.get("SkillsMiddleware"))
            # Only rules can be wrong here, and to make the tools takes a third of the time of this check.
            if build.rules:
                filesystem(build, build.overrides.get(FILES))

    def make(response_format: Any) -> Runnable[Any, Any]:
        wanted = build if response_format is None else build.answering_in(response_format)
        with already_warned():
            return parent.compile(wanted)

    return Worker(child.name or "", child.description, make, _mode(child), addendum=child.addendum)


def parent_notifier(build: Build, given: Given) -> Middleware | None:
    # Only in a process that is an agent server can a run have a parent to notify.
    notifies = build.plan.role == "main" and "langgraph_api" in sys.modules
    return given or (middleware.ParentNotifierMiddleware() if notifies else None)


def async_subagents(build: Build, given: Given) -> Middleware | None:
    """Make the tools for tasks in the background; a fork has its caller's, and leaves their news to it."""
    plan = build.plan
    brought = given
    if not given and plan.role == "forked" and build.parent:
        given = next((each for each in build.parent.stack if each.name == ASYNC_SUBAGENTS), None)
    elif not given and plan.async_subagents:
        made = {each.name: _make_worker(each, build).runnable for each in build.background}
        given = middleware.AsyncSubAgentMiddleware(
            async_subagents=[
                make_local(spec, made[spec["name"]]) if spec["name"] in made else spec
                for spec in plan.async_subagents
            ],
            system_prompt="" if "start_async_task" in plan.profile.excluded_tools else None,
        )
    if given is None or not isinstance(given, middleware.AsyncSubAgentMiddleware):
        return given
    own = given.in_agent(build.show_messages, announces=plan.role != "forked")
    if not brought:
        own.tools = cast("list[BaseTool]", build.describe(own.tools))
    return own


def tool_exclusion(build: Build, given: Given) -> Middleware | None:
    excluded = build.plan.profile.excluded_tools
    return given or (ToolExclusionMiddleware(excluded=excluded) if excluded else None)


def tool_search(build: Build, given: Given) -> Middleware | None:
    """Make the search where there may be tools that are not the library's own, anew for each agent."""
    plan = build.plan
    if given and type(given) is not middleware.ToolSearchMiddleware:
        return given
    mode = given.tool_search if given else plan.tool_search
    may_have_others = plan.tools or plan.mcp or plan.middleware or build.extras
    # Programs find by it the tools that other middleware adds.
    is_needed = CODE_MODE in build.overrides or (mode is not False and may_have_others)
    if given is None and not is_needed:
        return None
    # A request that was made for the search of one provider cannot be sent to another.
    if mode == "provider" and len({*map(model_provider, (plan.model, *plan.fallback_models))}) > 1:
        mode = "auto"
    return middleware.ToolSearchMiddleware(mode)


def summarization(build: Build, given: Given) -> Middleware:
    if not given:
        with already_warned():
            given = create_summarization_middleware(
                build.plan.model, build.plan.backend, backend_timeout=_backend_timeout(build)
            )
    if isinstance(given, SummarizationMiddleware) and build.rules:
        return given.with_permissions(build.rules.given)
    return given


def fallback(build: Build, given: Given) -> Middleware | None:
    models = build.plan.fallback_models
    if not given and not models:
        return None
    # A request that is too long goes back to be compacted, and a limit holds for other models too.
    return passing(
        given or ModelFallbackMiddleware(*models),
        lambda error: isinstance(error, LimitExceeded) or is_overflow(error),
    )


def retries(build: Build, given: Given) -> Middleware | None:
    times = build.plan.model_retries
    return given or (ModelRetryMiddleware(times) if times else None)


def caching(kind: type[PromptCachingMiddleware]) -> Factory:
    """Return the factory for one provider's package; a caller's own middleware of it is wrapped."""

    def make(build: Build, given: Given) -> Middleware:
        return kind(given) if given is None or kind.stands_for(type(given)) else given

    return make


def approval(build: Build, given: Given) -> Middleware | None:
    """Make what asks a person: for rules, for `interrupt_on`, or for what subagents remember."""
    rules, interrupt_on = build.rules, build.plan.interrupt_on
    below = any(each.interrupt_on or Rules(each.permissions).has("interrupt") for each in build.below)
    given_tools = [*build.tools, *(tool for each in build.below for tool in each.tools)]
    asking = any(each.find_question for each in specs_by_name(given_tools).values())
    own = wrap_langchain(given) if given else None
    if own is None and (interrupt_on or rules.has("interrupt") or below or asking):
        own = ApprovalMiddleware(rules, interrupt_on)
    return own.in_agent(rules, build.stack, build.tools) if isinstance(own, ApprovalMiddleware) else own
