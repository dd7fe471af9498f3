"""How the middleware of each slot of the stack is made, or taken from who brought it."""

from __future__ import annotations

from langchain.agents.middleware import ModelFallbackMiddleware, ModelRetryMiddleware

from deepagents._agent.exclusions import APPROVAL
from deepagents._agent.slots import Building, Slot
from deepagents._deprecation import already_warned
from deepagents.errors import LimitExceeded, StackError
from deepagents.middleware._base import Middleware
from deepagents.middleware.approval import ApprovalMiddleware, PassThroughApproval, wrap_langchain
from deepagents.middleware.async_subagents import AsyncSubAgentMiddleware
from deepagents.middleware.async_subagents.notifier import ParentNotifierMiddleware, on_agent_server
from deepagents.middleware.fallback import passing
from deepagents.middleware.filesystem import FilesystemMiddleware
from deepagents.middleware.limits import LimitsMiddleware
from deepagents.middleware.memory import MemoryMiddleware
from deepagents.middleware.memory.middleware import BACKEND_SECONDS
from deepagents.middleware.patch_tool_calls.middleware import PatchToolCallsMiddleware
from deepagents.middleware.prompt_caching.middleware import PromptCachingMiddleware
from deepagents.middleware.skills import SkillsMiddleware
from deepagents.middleware.skills.middleware import require_sources
from deepagents.middleware.subagents.fork import ForkedContextMiddleware
from deepagents.middleware.subagents.worker import Worker
from deepagents.middleware.summarization import create_summarization_middleware
from deepagents.middleware.summarization.overflow import is_overflow
from deepagents.middleware.todos import TODO_PROMPT, WRITE_TODOS, TodoListMiddleware
from deepagents.middleware.tool_errors import ToolErrorMiddleware, ToolOriginMiddleware
from deepagents.middleware.tool_exclusion import ToolExclusionMiddleware
from deepagents.middleware.unsupported_content import UnsupportedContentMiddleware
from deepagents.models.failures import may_pass
from deepagents.permissions import Rules
from deepagents.tools import FILE_TOOLS


def tool_errors(building: Building) -> Middleware:
    return ToolErrorMiddleware()


def forked_context(building: Building) -> Middleware | None:
    return ForkedContextMiddleware() if building.plan.role == "forked" else None


def limits(building: Building) -> Middleware | None:
    plan = building.plan
    if plan.limits is None:
        return None
    models = (plan.model, *plan.recovery.fallbacks)
    made = LimitsMiddleware(plan.limits, models=models)
    for model in models:
        made.refuse_unpriced(model)
    return made


def todos(building: Building) -> Middleware:
    profile = building.plan.profile
    described: str = profile.tool_description_overrides.get("write_todos", WRITE_TODOS.description)
    prompt = "" if "write_todos" in profile.excluded_tools else TODO_PROMPT
    return TodoListMiddleware(system_prompt=prompt, tool_description=described)


def memory(building: Building) -> Middleware | None:
    plan = building.plan
    if not plan.memory:
        return None
    with already_warned():
        return MemoryMiddleware(
            backend=plan.backend,
            sources=plan.memory,
            add_cache_control=True,
            backend_timeout=_backend_timeout(building),
        )


def skills(building: Building) -> Middleware | None:
    plan = building.plan
    if not plan.skills:
        return None
    with already_warned():
        return SkillsMiddleware(
            backend=plan.backend, sources=plan.skills, backend_timeout=_backend_timeout(building)
        )


def _backend_timeout(building: Building) -> float | None:
    """Return the timeout of the agent's file tools, which holds for its memory and skills too."""
    files = building.replacement("FilesystemMiddleware")
    return files.backend_timeout if isinstance(files, FilesystemMiddleware) else BACKEND_SECONDS


def all_sources(building: Building, skills: Middleware) -> Middleware:
    return require_sources(skills, building.plan.skills, building.who)


def filesystem(building: Building) -> Middleware:
    plan = building.plan
    descriptions = plan.profile.tool_description_overrides
    left = {spec.name for spec in FILE_TOOLS} - plan.profile.excluded_tools
    return FilesystemMiddleware(
        backend=plan.backend, custom_tool_descriptions=descriptions, system_prompt=None if left else ""
    )


def under_rules(building: Building, files: Middleware) -> Middleware:
    """Give the plan's permissions to the file tools, whoever brought them."""
    rules = building.plan.permissions
    if not isinstance(files, FilesystemMiddleware):
        if rules:
            raise StackError(f"{files!r} replaces FilesystemMiddleware, which would drop permissions=")
        return files
    ruled = files.with_permissions(rules)
    own = building.replacement(APPROVAL)
    if own and not isinstance(own, ApprovalMiddleware) and Rules(ruled.permissions).has("interrupt"):
        raise StackError(
            f"{building.who} has permissions that ask a person and a {APPROVAL} of its own, which would "
            "drop them; give the agent a FilesystemMiddleware with the permissions, and its approval()"
        )
    return ruled


def parent_notifier(building: Building) -> Middleware | None:
    return ParentNotifierMiddleware() if building.plan.role == "main" and on_agent_server() else None


def async_subagents(building: Building) -> Middleware | None:
    """Make the tools for tasks elsewhere; a fork has them too."""
    plan = building.plan
    if not plan.async_subagents or plan.role not in ("main", "forked"):
        return None
    if plan.role == "main":
        return AsyncSubAgentMiddleware(async_subagents=plan.async_subagents)
    with already_warned():
        return AsyncSubAgentMiddleware(async_subagents=plan.async_subagents)


def silent_in_forks(building: Building, tasks: Middleware) -> Middleware:
    """Leave the news of tasks to the agent that a fork comes from."""
    if building.plan.role != "forked" or not isinstance(tasks, AsyncSubAgentMiddleware):
        return tasks
    return tasks.silent()


def patch_tool_calls(building: Building) -> Middleware:
    return PatchToolCallsMiddleware()


def summarization(building: Building) -> Middleware:
    with already_warned():
        return create_summarization_middleware(building.plan.model, building.plan.backend)


def fallback(building: Building) -> Middleware | None:
    models = building.plan.recovery.fallbacks
    return ModelFallbackMiddleware(*models) if models else None


def retries(building: Building) -> Middleware | None:
    times = building.plan.recovery.retries
    return ModelRetryMiddleware(max_retries=times, retry_on=may_pass, on_failure="error") if times else None


def refusals_passing(building: Building, fallback: Middleware) -> Middleware:
    return passing(fallback, lambda error: isinstance(error, LimitExceeded) or is_overflow(error))


def rules_of(building: Building) -> Rules:
    """Return the rules that bind the file tools, whoever gave them."""
    standing = building.replacement("FilesystemMiddleware")
    own = standing.permissions if isinstance(standing, FilesystemMiddleware) else ()
    return Rules(building.plan.permissions or own)


def approval(building: Building) -> Middleware | None:
    rules, interrupt_on = rules_of(building), building.plan.interrupt_on
    if interrupt_on or rules.has("interrupt"):
        return ApprovalMiddleware(rules, interrupt_on)
    below = [each for each in building.plan.subagents if not isinstance(each, Worker)]
    asks = any(each.interrupt_on or Rules(each.permissions).has("interrupt") for each in below)
    return PassThroughApproval() if asks else None


def asking_for_rules(building: Building, approval: Middleware) -> Middleware:
    own = wrap_langchain(approval)
    return own.with_rules(rules_of(building)) if isinstance(own, ApprovalMiddleware) else own


def caching(kind: type[PromptCachingMiddleware]) -> Slot:
    return Slot(
        kind.__name__,
        lambda _: kind(),
        f"marks the request as it will be sent, for models of {kind.package}",
        take=lambda _, brought: kind(brought) if kind.stands_for(type(brought)) else brought,
    )


def tool_exclusion(building: Building) -> Middleware | None:
    excluded = building.plan.profile.excluded_tools
    return ToolExclusionMiddleware(excluded=excluded) if excluded else None


def unsupported_content(building: Building) -> Middleware:
    return UnsupportedContentMiddleware()


def tool_origin(building: Building) -> Middleware:
    return ToolOriginMiddleware()
