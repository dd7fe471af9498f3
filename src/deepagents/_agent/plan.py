"""Describe one agent by a plan: everything it needs, resolved; the same type for main agent and subagents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import filterfalse
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import SystemMessage

from deepagents import _models
from deepagents._agent import arguments
from deepagents._deprecation import warn_caller
from deepagents._state.schema import DeepAgentState, continuing
from deepagents._values import field, replace, valueclass
from deepagents.backends.foreign.forms import is_factory
from deepagents.backends.handle import open_backend
from deepagents.backends.protocol import BACKEND_TYPES
from deepagents.backends.state import StateBackend
from deepagents.errors import ConfigError
from deepagents.limits import Limits
from deepagents.middleware import tool_search as _tool_search
from deepagents.middleware._base import Middleware
from deepagents.middleware.approval import InterruptOn
from deepagents.middleware.async_subagents.spec import is_async, is_remote
from deepagents.middleware.filesystem import FilesystemMiddleware
from deepagents.middleware.limits import LimitsMiddleware
from deepagents.middleware.subagents.spec import (
    DEFAULT_GENERAL_PURPOSE_DESCRIPTION,
    GENERAL_PURPOSE,
    ToolLike,
    asks_itself,
    validate_specs,
)
from deepagents.middleware.subagents.task import Worker, ready_worker
from deepagents.permissions import FilesystemPermission
from deepagents.profiles.harness.harness_profiles import profile_for
from deepagents.profiles.harness.profile import GeneralPurposeSubagentProfile, HarnessProfile

if TYPE_CHECKING:
    from deepagents.mcp import MCPServers
    from deepagents.middleware.tool_search import ToolSearch
    from deepagents.undo import FileHistory

GENERAL_PURPOSE_NOTE = (
    "You are working as a subagent: only your last message is returned, so put the whole answer in it."
)

Source: TypeAlias = str | tuple[str, str]
"""A directory of skills on the backend, or a pair of directory and label."""


@valueclass
class AgentPlan:
    """One agent, decided but not yet built. `subagents` are specs as a caller gives them.

    `base_prompt` replaces that of the profile and of the library, `note` follows it, and `addendum` is what
    a fork reads before its task.
    """

    role: Literal["main", "general-purpose", "declared", "forked"]
    model: BaseChatModel
    profile: HarnessProfile
    tools: Sequence[ToolLike] = ()
    system_prompt: str | SystemMessage | None = None
    middleware: Sequence[Middleware] = ()
    subagents: Sequence[Any] = ()
    skills: Sequence[Source] = ()
    memory: Sequence[str] = ()
    permissions: Sequence[FilesystemPermission] = ()
    backend: BACKEND_TYPES = field(default_factory=StateBackend)
    interrupt_on: InterruptOn | None = None
    response_format: Any = None
    state_schema: type[Any] = DeepAgentState
    name: str | None = None
    limits: Limits | None = None
    model_retries: int = 0
    fallback_models: Sequence[BaseChatModel] = ()
    mcp: MCPServers | None = None
    tool_search: ToolSearch = "auto"
    file_history: FileHistory | None = None
    base_prompt: str | None = None
    note: str | None = None
    addendum: str | None = None
    description: str = ""

    def __post_init__(self) -> None:
        """Raises ConfigError for values of a wrong type, and keeps lists that can be read only once."""
        arguments.check_values(
            system_prompt=self.system_prompt,
            limits=self.limits,
            name=self.name,
            response_format=self.response_format,
        )
        arguments.check_backend(self.backend)
        if self.tool_search != "auto":
            _tool_search.check_tool_search(self.tool_search)
        lists = {
            "tools": arguments.check_tools(self.tools),
            "middleware": arguments.check_middleware(self.middleware),
            "subagents": arguments.check_list("subagents", self.subagents),
            "permissions": arguments.check_list("permissions", self.permissions),
        }
        for name, value in lists.items():
            object.__setattr__(self, name, value)

    @property
    def label(self) -> str:
        """What messages to people call the agent."""
        return "the agent" if self.role == "main" else f"subagent {self.name!r}"

    @property
    def async_subagents(self) -> tuple[Any, ...]:
        """The specs of subagents that work in the background, on a server or in this process."""
        return tuple(filter(is_async, self.subagents))

    @property
    def background(self) -> tuple[Any, ...]:
        """The specs of those that work in the background of this process."""
        return tuple(filterfalse(is_remote, self.async_subagents))


def plan_background(main: AgentPlan) -> list[AgentPlan | Worker]:
    """Plan each subagent that works in the background of this process.

    Raises:
        ConfigError: for a spec that cannot be, and for two of one name.
    """
    # One that begins with the conversation so far is an agent of its own all the same.
    about_tasks = ("background", "update_strategy", "mode")
    specs = [{key: spec[key] for key in spec if key not in about_tasks} for spec in main.background]
    return [_plan_subagent(spec, main) for spec in validate_specs(specs)]


def plan_subagents(main: AgentPlan) -> list[AgentPlan | Worker]:
    """Plan each subagent that the main agent may call; those that a caller compiled are workers already.

    Raises:
        ConfigError: for a spec that cannot be, and for two of one name.
    """
    specs = validate_specs([*filterfalse(is_async, main.subagents)])
    declared = [_plan_subagent(spec, main) for spec in specs]
    general = main.profile.general_purpose_subagent or GeneralPurposeSubagentProfile()
    if general.enabled is not False and GENERAL_PURPOSE not in [each.name for each in declared]:
        declared.insert(0, _plan_general_purpose(main, general))
    local = {each.name or "" for each in declared}
    if both := sorted(local.intersection(spec.get("name") for spec in main.async_subagents)):
        raise ConfigError(f"{both!r} name both subagents and async subagents; each needs a name of its own")
    return declared


def _below(main: AgentPlan, **changes: Any) -> AgentPlan:
    """Return the plan of a subagent: the main agent's, without what that one alone has."""
    without = {"subagents": (), "memory": (), "response_format": None}
    # The same object: by its identity a subagent knows that it spends from the budget of its parent.
    own = next((each for each in main.middleware if isinstance(each, LimitsMiddleware)), main)
    return replace(main, **{**without, "limits": own.limits, **changes})


def _plan_general_purpose(main: AgentPlan, general: GeneralPurposeSubagentProfile) -> AgentPlan:
    prompt = general.system_prompt
    return _below(
        main,
        role="general-purpose",
        system_prompt=main.system_prompt if prompt is None else prompt,
        base_prompt=None if prompt is None else "",
        note=GENERAL_PURPOSE_NOTE if prompt is None else None,
        middleware=[each for each in main.middleware if each.name != "SubAgentMiddleware"],
        name=GENERAL_PURPOSE,
        description=general.description or DEFAULT_GENERAL_PURPOSE_DESCRIPTION,
    )


def _plan_subagent(spec: Mapping[str, Any], main: AgentPlan) -> AgentPlan | Worker:
    if "runnable" in spec:
        return ready_worker(spec)
    model, profile = main.model, main.profile
    if (own_model := spec.get("model")) is not None:
        model = _models.resolve_model(own_model)
        profile = profile_for(model, own_model if isinstance(own_model, str) else None)
    if "permissions" not in spec and spec.get("mode") != "fork":
        _warn_of_unbound_rules(spec, main)
    declared = _below(
        main,
        role="declared",
        model=model,
        profile=profile,
        system_prompt=spec.get("system_prompt"),
        # An empty list means no tools; only a spec without the key inherits.
        tools=spec["tools"] or () if "tools" in spec else main.tools,
        mcp=_servers_of(spec, main),
        middleware=tuple(spec.get("middleware") or ()),
        interrupt_on=spec.get("interrupt_on", None if asks_itself(spec) else main.interrupt_on),
        permissions=spec.get("permissions", main.permissions) or (),
        skills=tuple(spec.get("skills") or ()),
        response_format=spec.get("response_format"),
        name=spec["name"],
        description=spec["description"],
    )
    return _plan_fork(declared, main) if spec.get("mode") == "fork" else declared


def _servers_of(spec: Mapping[str, Any], main: AgentPlan) -> MCPServers | None:
    """Return the servers of a subagent: its own, or the main agent's unless it says which tools it has."""
    if "mcp" in spec:
        return arguments.open_mcp(spec["mcp"])
    return None if "tools" in spec else main.mcp


def _plan_fork(declared: AgentPlan, main: AgentPlan) -> AgentPlan:
    """Plan the main agent once more, with what the spec has of its own.

    Its system prompt stays the main agent's, so that a provider's cache serves the fork; the spec's own
    prompt comes with its task.
    """
    # A dict keeps the position of the first: prompts stay in the order that the provider has cached.
    own = {each.name: each for each in (*main.middleware, *declared.middleware)}
    return replace(
        declared,
        role="forked",
        system_prompt=main.system_prompt,
        addendum=cast("str | None", declared.system_prompt),
        middleware=tuple(own.values()),
        memory=main.memory,
        skills=main.skills,
        mcp=main.mcp,
        subagents=main.async_subagents,
        state_schema=continuing(main.state_schema),
    )


def _warn_of_unbound_rules(spec: Mapping[str, Any], main: AgentPlan) -> None:
    """Warn where rules of the agent's own middleware do not bind a subagent that works on the same files."""
    files = next((each for each in main.middleware if isinstance(each, FilesystemMiddleware)), None)
    if files is None or not files.permissions or main.permissions:
        return
    own = any(each.name == files.name for each in spec.get("middleware") or ())
    if not own and _are_same_files(files.backend, main.backend):
        warn_caller(
            f"the permissions of the agent's FilesystemMiddleware do not bind subagent {spec['name']!r}, "
            "which works on the same files; give them as permissions=, which binds both, or write "
            "'permissions' in the subagent, [] for none"
        )


def _are_same_files(one: BACKEND_TYPES, other: BACKEND_TYPES) -> bool:
    if one is other or is_factory(one) or is_factory(other):
        return one is other
    # Backends that keep files in state share those of the graph, though they are different objects.
    return all(open_backend(each).capabilities().state_files for each in (one, other))
