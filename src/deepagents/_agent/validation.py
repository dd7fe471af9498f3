"""Validate a plan before its agent is built: approvals, permissions, exclusions and names of tools."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from langchain.agents.middleware import AgentMiddleware

from deepagents import middleware as _middleware
from deepagents._agent.build import APPROVAL, ASYNC_SUBAGENTS, FILES, LIMITS, SKILLS, SUBAGENTS, Build
from deepagents._agent.plan import AgentPlan
from deepagents._deprecation import did_you_mean, warn_caller
from deepagents.backends.foreign.forms import is_factory
from deepagents.backends.handle import open_backend
from deepagents.errors import ConfigError, ProfileError, StackError
from deepagents.middleware import async_subagents, tool_search
from deepagents.middleware._base import BaseMiddleware, Middleware
from deepagents.middleware.approval import InterruptOn, is_pattern, validate_interrupt_on
from deepagents.middleware.filesystem import FilesystemMiddleware
from deepagents.middleware.subagents.task import TASK, Worker
from deepagents.middleware.summarization.tool import COMPACT_NAME
from deepagents.middleware.todos import READ_TODOS, WRITE_TODOS
from deepagents.profiles.harness.profile import leaves_out
from deepagents.tools import EDIT_TOOLS, FILE_TOOLS, ToolSpec, specs_by_name
from deepagents.tools._tool import names_of_tools

_log = logging.getLogger(__name__)
_MISSPELT: Final = 0.8
"""How alike a name must be to that of a known tool to count as misspelt."""


def validate(build: Build) -> None:
    """Validate the plan of one agent; its subagents are validated while it is assembled.

    Raises:
        ProfileError: for exclusions that match nothing, too much, or a safeguard.
        ConfigError: for a model without a price where money is limited, and for unknown names of tools.
        StackError: for middleware or tools that would silently drop a safeguard.
    """
    plan = build.plan
    if plan.interrupt_on is not None:
        validate_interrupt_on(plan.interrupt_on)
    names: list[Any] = [each.name for each in plan.middleware]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise StackError(f"middleware of {plan.label} holds two named {twice!r}; each needs its own name")
    _warn_of_replaced_arguments(build)
    _refuse_second_skills(build)
    _check_exclusions(build)
    _check_restricted_tools(build)
    _check_interrupted_tools(build)
    if build.parent:
        _warn_of_unasked_tools(build, build.parent.plan.interrupt_on or {})
    if plan.role == "main":
        _warn_of_missing_directories(plan)


def _warn_of_replaced_arguments(build: Build) -> None:
    """Say where the caller's middleware replaces what an argument asks for; the middleware counts.

    Packages bring a `task` tool of their own on purpose. A question that is not asked is worth a warning.
    """
    plan = build.plan
    own = {each.name for each in plan.middleware}
    asked = [name for name, entry in (plan.interrupt_on or {}).items() if entry is not False]
    if APPROVAL in own and asked and plan.role != "general-purpose":
        warn_caller(_describe_replaced(plan, APPROVAL, "interrupt_on", asked))
    if plan.role == "main":
        local = [each for each in plan.subagents if each not in plan.async_subagents]
        for name, specs in ((SUBAGENTS, local), (ASYNC_SUBAGENTS, plan.async_subagents)):
            if name in own and specs:
                _log.warning(_describe_replaced(plan, name, "subagents", [spec["name"] for spec in specs]))


def _describe_replaced(plan: AgentPlan, middleware: str, argument: str, lost: Iterable[str]) -> str:
    return (
        f"{plan.label} has a {middleware} of its own, so {argument}= has no effect there for "
        f"{', '.join(map(repr, lost))}; give all to one of the two"
    )


def _refuse_second_skills(build: Build) -> None:
    """Refuse two skills middleware in one agent: each would overwrite the other's list.

    Raises:
        StackError: naming the sources of each.
    """
    # Only for middleware that may be skills, which few agents have, are these loaded.
    given = [each for each in build.overrides.values() if hasattr(each, "sources")]
    own = {each.name: each.sources for each in given if isinstance(each, _middleware.SkillsMiddleware)}
    if build.plan.skills and SKILLS not in build.overrides:
        own[SKILLS] = list(map(_middleware.source_path, build.plan.skills))
    if len(own) > 1:
        raise StackError(
            f"{build.plan.label} has two skills middleware, of {' and '.join(map(repr, own.values()))}, "
            "which would overwrite each other's list; give all sources to one of them"
        )


def _check_exclusions(build: Build) -> None:
    """Check `excluded_middleware`. A name of the library's table counts as matched, used or not.

    Raises:
        ProfileError: naming the entry.
    """
    plan = build.plan
    own = {each.name for each in plan.middleware}
    present = [*plan.middleware, *(each for each in build.extras if each.name not in own)]
    safeguards = {
        APPROVAL: bool(plan.interrupt_on) or build.rules.has("interrupt"),
        LIMITS: plan.limits is not None,
    }
    for entry in plan.profile.excluded_middleware:
        matched = [each for each in present if leaves_out(entry, each)]
        kinds = sorted({type(each).__qualname__ for each in matched})
        if len(kinds) > 1:
            raise ProfileError(
                f"excluded_middleware {entry!r} matched multiple distinct middleware of {plan.label}, "
                f"{kinds!r}; exclude the class that is meant"
            )
        name = entry if isinstance(entry, str) else entry.__name__
        if not matched and name not in build.slots:
            known = ", ".join(sorted(build.slots.union(build.overrides)))
            raise ProfileError(
                f"excluded_middleware {entry!r} matched no middleware of {plan.label}; there is {known}"
            )
        if name in safeguards and (matched or safeguards[name]):
            raise ProfileError(
                f"excluded_middleware {entry!r} would drop a safeguard that {plan.label} was given"
            )


def _check_restricted_tools(build: Build) -> None:
    """Refuse a tool that would replace one which permissions bind, or the only way to the subagents.

    The general-purpose agent has the tools of its caller, which were checked already. A profile's own tools
    are there on purpose.
    """
    plan = build.plan
    if plan.role == "general-purpose":
        return
    hidden = plan.profile.excluded_tools
    for owner, tools in _list_tools_by_owner(plan):
        for tool in sorted(names_of_tools(tools) - hidden):
            taken = f"{tool!r} of {owner} would replace the library's"
            if _is_restricted(build, tool):
                raise StackError(
                    f"{plan.label} has permissions, which do not bind this tool: {taken}; rename it"
                )
            if tool in _delegating_tools(build):
                raise StackError(f"the subagents of {plan.label} could not be reached: {taken}; rename it")


def _list_tools_by_owner(plan: AgentPlan) -> Iterator[tuple[str, Iterable[Any]]]:
    for each in plan.middleware:
        if each.name not in (FILES, SUBAGENTS, ASYNC_SUBAGENTS):
            yield each.name, getattr(each, "tools", ())
    yield "tools=", plan.tools


def _delegating_tools(build: Build) -> frozenset[str]:
    """Return the names of the tools that lead to subagents which the caller asked for."""
    if build.plan.role == "forked":
        return frozenset()
    declared = build.overrides.get(SUBAGENTS) or any(
        isinstance(each, Worker) or each.role != "general-purpose" for each in build.subagents
    )
    names = names_of_tools((TASK,) if declared else ())
    return names | _async_tools() if build.plan.async_subagents else names


def _async_tools() -> frozenset[str]:
    return names_of_tools(async_subagents.TOOLS, (async_subagents.WAIT,))


def _is_restricted(build: Build, tool: str) -> bool:
    """Return whether rules bind the file tool of this name, and the agent's backend can do what it does."""
    files = build.overrides.get(FILES)
    spec = specs_by_name(getattr(files, "tools", ())).get(tool)
    operation = spec.operation if spec else None
    if not spec or not operation or (spec.instead_of and not _is_edit_tool(build, spec)):
        return False
    if not (build.rules.has("deny", operation) or build.rules.has("interrupt", operation)):
        return False
    backend = files.backend if isinstance(files, FilesystemMiddleware) else build.plan.backend
    return spec.needs is None or (
        not is_factory(backend) and spec.is_possible(open_backend(backend).capabilities())
    )


def _is_edit_tool(build: Build, spec: ToolSpec) -> bool:
    """Return whether this is the form of edit that the agent has."""
    files = build.overrides.get(FILES)
    given = files.edit_form if isinstance(files, FilesystemMiddleware) else build.plan.profile.edit_form
    return EDIT_TOOLS[given or "replace"].name == spec.name


def _rare_tools() -> frozenset[str]:
    # Made when it is asked for: it loads all that has tools.
    return _async_tools() | {COMPACT_NAME, tool_search.SEARCH_TOOLS, _middleware.RUN_CODE}


def _check_interrupted_tools(build: Build) -> None:
    """Check that each tool in `interrupt_on` exists: a misspelt one would run without a question.

    Raises:
        ConfigError: with the nearest name, unless a tool of that name may still appear during a run.
    """
    plan, parent = build.plan, build.parent
    if not plan.interrupt_on or (parent and plan.interrupt_on == parent.plan.interrupt_on):
        return
    family = [plan, *build.below, *([parent.plan, *parent.below] if parent else [])]
    usual = names_of_tools(FILE_TOOLS, EDIT_TOOLS.values(), (WRITE_TODOS, READ_TODOS, TASK))
    known = usual.union(*(_tools_of(each) for each in family))
    asked = {name for name, entry in plan.interrupt_on.items() if entry is not False}
    if asked <= known:
        return
    known |= _rare_tools()
    unknown = sorted(name for name in asked - known if not _may_name_any(name, known, family))
    if not unknown:
        return
    problem = f"interrupt_on of {plan.label} names {unknown[0]!r}, and there is no tool of that name"
    of_servers = unknown[0].startswith("mcp__") and any(each.mcp is not None for each in family)
    brought = any(_may_bring_tools(each) for plan_ in family for each in plan_.middleware) or plan.skills
    if brought and not of_servers:
        # Packages name tools that come with the run. Only a name that looks misspelt is worth a warning.
        near = did_you_mean(unknown[0], known, _MISSPELT)
        tell: Callable[[str], None] = warn_caller if near else _log.info
        tell(f"{problem} yet{near}")
        return
    raise ConfigError(f"{problem}{did_you_mean(unknown[0], known)}")


def _may_name_any(name: str, known: frozenset[str], family: Iterable[AgentPlan]) -> bool:
    """Return whether a name or pattern can be that of a tool which a server brings, or fits a known one."""
    servers = (each.mcp for each in family if each.mcp is not None)
    return any(each.may_name_tool(name) for each in servers) or any(
        fnmatchcase(each, name) for each in known if is_pattern(name)
    )


def _warn_of_unasked_tools(build: Build, inherited: InterruptOn) -> None:
    """Warn when a subagent's own interrupt_on lets a tool run that waits for a person in its parent."""
    plan = build.plan
    if not inherited or plan.interrupt_on == inherited or build.overrides.get(APPROVAL):
        return
    unsaid = {name for name, entry in inherited.items() if entry is not False} - (
        plan.interrupt_on or {}
    ).keys()
    offered = (_tools_of(plan) | names_of_tools(FILE_TOOLS, (WRITE_TODOS, READ_TODOS))) - {
        spec.name for spec in FILE_TOOLS if spec.effect == "run"
    }
    if plan.mcp is not None:
        offered |= {name for name in unsaid if plan.mcp.may_name_tool(name)}
    if freed := sorted((unsaid & offered) - plan.profile.excluded_tools):
        warn_caller(
            f"interrupt_on of {plan.label} replaces the agent's, so {', '.join(map(repr, freed))} will run "
            "there without asking; name each of them in it, with False if that is meant"
        )


def _tools_of(plan: AgentPlan) -> frozenset[str]:
    extras = plan.profile.materialize_extra_middleware()
    return names_of_tools(plan.tools, *(getattr(each, "tools", ()) for each in (*plan.middleware, *extras)))


def _may_bring_tools(middleware: Middleware) -> bool:
    """Return whether middleware may offer further tools to the model during a run."""
    if isinstance(middleware, BaseMiddleware):
        # Ours offer their tools when they are made; only skills disclose more of them later.
        return isinstance(middleware, _middleware.SkillsMiddleware)
    kind = type(middleware)
    hooks = ("wrap_model_call", "awrap_model_call", "wrap_tool_call", "awrap_tool_call")
    return any(getattr(kind, hook) is not getattr(AgentMiddleware, hook) for hook in hooks)


def _warn_of_missing_directories(plan: AgentPlan) -> None:
    """Warn where files on disk are asked for that are not there, which is most often a misspelt path.

    Raises:
        ConfigError: for a root that is a file.
    """
    # Backends on a disk of this machine have a `cwd`; asking any other may cost a request.
    root: Any = getattr(plan.backend, "cwd", None)
    if not isinstance(root, Path):
        return
    if root.is_file():
        raise ConfigError(f"root_dir must be a directory, got {str(root)!r}, which is a file")
    if not root.is_dir():
        warn_caller(f"root_dir {str(root)!r} does not exist; it is created when the first file is written")
        return
    for source in plan.skills:
        path = source if isinstance(source, str) else source[0]
        if getattr(plan.backend, "virtual_mode", False) and not (root / path.lstrip("/")).is_dir():
            warn_caller(f"the skills directory {path!r} does not exist below {str(root)!r}")
