"""AgentPlan: all that one agent needs, resolved; the same for the main agent and each of its subagents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import filterfalse
from typing import Any, Literal, TypeAlias, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import SystemMessage
from langchain_core.tools import BaseTool

from deepagents import _models
from deepagents._deprecation import warn_caller
from deepagents._state.schema import DeepAgentState, continuing
from deepagents.backends._resolve import is_factory
from deepagents.backends.handle import open_backend
from deepagents.backends.protocol import BACKEND_TYPES
from deepagents.limits import Limits
from deepagents.middleware._base import Middleware, tool_name
from deepagents.middleware.approval import InterruptOn
from deepagents.middleware.async_subagents.spec import is_remote, refuse_shared_names
from deepagents.middleware.filesystem import FilesystemMiddleware
from deepagents.middleware.limits import limits_in
from deepagents.middleware.subagents.spec import (
    DEFAULT_GENERAL_PURPOSE_DESCRIPTION,
    GENERAL_PURPOSE,
    ToolLike,
    asks_itself,
    checked,
)
from deepagents.middleware.subagents.worker import Worker, ready_worker
from deepagents.models.failures import Recovery
from deepagents.permissions import FilesystemPermission
from deepagents.profiles.harness.profile import GeneralPurposeSubagentProfile, HarnessProfile
from deepagents.profiles.harness.registry import profile_for

GENERAL_PURPOSE_NOTE = (
    "You are working as a subagent: only your last message is returned, so put the whole answer in it."
)

Source: TypeAlias = str | tuple[str, str]
"""Where skills are found: a directory of the backend, or that and a label."""


@dataclass(frozen=True, slots=True)
class AgentPlan:
    """One agent, decided but not yet built."""

    role: Literal["main", "general-purpose", "declared", "forked"]
    model: BaseChatModel
    profile: HarnessProfile
    system_prompt: str | SystemMessage | None
    backend: BACKEND_TYPES
    base_prompt: str | None = None
    note: str | None = None
    addendum: str | None = None
    tools: Sequence[ToolLike] = ()
    middleware: Sequence[Middleware] = ()
    interrupt_on: InterruptOn | None = None
    permissions: Sequence[FilesystemPermission] = ()
    skills: Sequence[Source] = ()
    memory: Sequence[str] = ()
    response_format: Any = None
    state_schema: type[Any] = DeepAgentState
    name: str | None = None
    description: str = ""
    recovery: Recovery = field(default_factory=Recovery)
    limits: Limits | None = None
    subagents: Sequence[AgentPlan | Worker] = field(default_factory=tuple)
    async_subagents: Sequence[Any] = ()


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the caller asked of `create_deep_agent`, as given."""

    model: BaseChatModel
    spec: str | None
    tools: Sequence[ToolLike] | None
    system_prompt: str | SystemMessage | None
    middleware: Sequence[Middleware]
    subagents: Sequence[Any]
    backend: BACKEND_TYPES
    interrupt_on: InterruptOn | None
    permissions: Sequence[FilesystemPermission]
    skills: Sequence[Source]
    memory: Sequence[str]
    response_format: Any
    state_schema: type[Any]
    name: str | None
    recovery: Recovery
    limits: Limits | None = None


def plan_main(wishes: Wishes) -> AgentPlan:
    """Decide the main agent and every subagent that it may call."""
    profile = profile_for(wishes.model, wishes.spec)
    main = AgentPlan(
        role="main",
        model=wishes.model,
        profile=profile,
        system_prompt=wishes.system_prompt,
        base_prompt=profile.base_system_prompt,
        backend=wishes.backend,
        tools=described(wishes.tools or (), profile.tool_description_overrides),
        middleware=wishes.middleware,
        interrupt_on=wishes.interrupt_on,
        permissions=wishes.permissions,
        skills=wishes.skills,
        memory=wishes.memory,
        response_format=wishes.response_format,
        state_schema=wishes.state_schema,
        recovery=wishes.recovery,
        name=wishes.name,
        limits=wishes.limits,
        async_subagents=tuple(filter(is_remote, wishes.subagents)),
    )
    children = _plan_subagents(main, wishes)
    refuse_shared_names(main.async_subagents, [child.name or "" for child in children])
    bound = limits_in(main.middleware) or main.limits
    return replace(main, subagents=[_limited(child, bound) for child in children])


def _limited(child: AgentPlan | Worker, limits: Limits | None) -> AgentPlan | Worker:
    return replace(child, limits=limits) if isinstance(child, AgentPlan) else child


def _plan_subagents(main: AgentPlan, wishes: Wishes) -> tuple[AgentPlan | Worker, ...]:
    profile = main.profile
    declared = [
        _plan_child(spec, main, wishes) for spec in checked([*filterfalse(is_remote, wishes.subagents)])
    ]
    general = profile.general_purpose_subagent or GeneralPurposeSubagentProfile()
    if general.enabled is False or GENERAL_PURPOSE in [worker.name for worker in declared]:
        return tuple(declared)
    return (_plan_general_purpose(wishes, profile, general), *declared)


def _plan_general_purpose(
    wishes: Wishes, profile: HarnessProfile, general: GeneralPurposeSubagentProfile
) -> AgentPlan:
    own = general.system_prompt
    return AgentPlan(
        role="general-purpose",
        model=wishes.model,
        profile=profile,
        system_prompt=wishes.system_prompt if own is None else own,
        base_prompt=profile.base_system_prompt if own is None else "",
        note=GENERAL_PURPOSE_NOTE if own is None else None,
        backend=wishes.backend,
        tools=described(wishes.tools or (), profile.tool_description_overrides),
        middleware=[each for each in wishes.middleware if each.name != "SubAgentMiddleware"],
        interrupt_on=wishes.interrupt_on,
        permissions=wishes.permissions,
        skills=wishes.skills,
        state_schema=wishes.state_schema,
        recovery=wishes.recovery,
        name=GENERAL_PURPOSE,
        description=general.description or DEFAULT_GENERAL_PURPOSE_DESCRIPTION,
    )


def _plan_child(spec: Mapping[str, Any], main: AgentPlan, wishes: Wishes) -> AgentPlan | Worker:
    if "runnable" in spec:
        return ready_worker(spec)
    declared = _plan_declared(spec, main, wishes)
    return _plan_forked(declared, main) if spec.get("mode") == "fork" else declared


def _plan_forked(declared: AgentPlan, main: AgentPlan) -> AgentPlan:
    """Plan the main agent once more, with what the spec has of its own; its prompt is said with its task."""
    brought = {each.name: each for each in (*main.middleware, *declared.middleware)}
    return replace(
        main,
        role="forked",
        model=declared.model,
        profile=declared.profile,
        base_prompt=declared.base_prompt,
        addendum=cast("str | None", declared.system_prompt),
        tools=declared.tools,
        middleware=tuple(brought.values()),
        interrupt_on=declared.interrupt_on,
        permissions=declared.permissions,
        response_format=declared.response_format,
        state_schema=continuing(main.state_schema),
        name=declared.name,
        description=declared.description,
    )


def _plan_declared(spec: Mapping[str, Any], main: AgentPlan, wishes: Wishes) -> AgentPlan:
    model, profile = main.model, main.profile
    if (own_model := spec.get("model")) is not None:
        model = _models.resolve_model(own_model)
        profile = profile_for(model, spec_of(own_model))
    if "permissions" not in spec and spec.get("mode") != "fork":
        _warn_of_rules_left_behind(spec, main)
    tools: Sequence[ToolLike] = spec["tools"] or () if "tools" in spec else wishes.tools or ()
    return AgentPlan(
        role="declared",
        model=model,
        profile=profile,
        system_prompt=spec.get("system_prompt"),
        base_prompt=profile.base_system_prompt,
        backend=wishes.backend,
        tools=described(tools, profile.tool_description_overrides),
        middleware=tuple(spec.get("middleware") or ()),
        interrupt_on=spec.get("interrupt_on", None if asks_itself(spec) else wishes.interrupt_on),
        permissions=spec.get("permissions", wishes.permissions) or (),
        skills=tuple(spec.get("skills") or ()),
        response_format=spec.get("response_format"),
        state_schema=wishes.state_schema,
        recovery=wishes.recovery,
        name=spec["name"],
        description=spec["description"],
    )


def _warn_of_rules_left_behind(spec: Mapping[str, Any], main: AgentPlan) -> None:
    """Warn where rules that middleware of the agent holds do not bind a subagent on the same files."""
    files = next((each for each in main.middleware if isinstance(each, FilesystemMiddleware)), None)
    if files is None or not files.permissions or main.permissions:
        return
    own = any(each.name == files.name for each in spec.get("middleware") or ())
    if not own and _same_files(files.backend, main.backend):
        warn_caller(
            f"the permissions of the agent's FilesystemMiddleware do not bind subagent {spec['name']!r}, "
            "which works on the same files; give them as permissions=, which binds both, or write "
            "'permissions' in the subagent, [] for none"
        )


def _same_files(one: BACKEND_TYPES, other: BACKEND_TYPES) -> bool:
    if one is other or is_factory(one) or is_factory(other):
        return one is other
    return all(open_backend(each).capabilities().state_files for each in (one, other))


def spec_of(model: object) -> str | None:
    """Return the name that a model was asked for by, if it was."""
    return model if isinstance(model, str) else None


def described(tools: Sequence[ToolLike], overrides: Mapping[str, str]) -> list[ToolLike]:
    """Return the tools, copies of those whose description is overridden; plain functions stay as they are."""
    return [_described(tool, overrides.get(tool_name(tool) or "")) for tool in tools]


def _described(tool: ToolLike, text: str | None) -> ToolLike:
    if text is None:
        return tool
    if isinstance(tool, BaseTool):
        return tool.model_copy(update={"description": text})
    if not isinstance(tool, dict):
        return tool
    inside: object = cast("dict[str, object]", tool).get("function")
    if not isinstance(inside, dict):
        return {**tool, "description": text}
    return {**tool, "function": {**cast("dict[str, Any]", inside), "description": text}}
