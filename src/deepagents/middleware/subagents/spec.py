"""Define the specs of subagents, validate each once, and bring older forms of them up to date."""

import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from typing import (
    Any,
    Final,
    Literal,
    NotRequired,
    TypeAlias,
    TypedDict,
    Union,
    cast,
    get_origin,
    get_type_hints,
)

from langchain.agents.middleware import AgentMiddleware, InterruptOnConfig
from langchain.agents.structured_output import AutoStrategy, ProviderStrategy, ToolStrategy
from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool
from pydantic import BaseModel

from deepagents import _models
from deepagents._deprecation import warn_beta, warn_caller, warn_legacy, warn_unknown_keys
from deepagents.errors import ConfigError
from deepagents.middleware._base import Middleware
from deepagents.middleware.approval import validate_interrupt_on
from deepagents.middleware.async_subagents.spec import CompiledSubAgent
from deepagents.permissions import FilesystemPermission

ToolLike: TypeAlias = BaseTool | Callable[..., Any] | dict[str, Any]

GENERAL_PURPOSE: Final = "general-purpose"
DEFAULT_GENERAL_PURPOSE_DESCRIPTION: Final = (
    "General agent with the same tools as you, for research, searching and any work of many steps."
)


class SubAgent(TypedDict):
    """An agent that the main agent may delegate to; what is not given is taken from the main agent.

    With `background` it works while the main agent goes on; `update_strategy` says what new instructions do.
    """

    name: str
    description: str
    system_prompt: NotRequired[str]
    tools: NotRequired[Sequence[ToolLike]]
    model: NotRequired[str | BaseChatModel]
    middleware: NotRequired[Sequence[Middleware]]
    interrupt_on: NotRequired[dict[str, bool | InterruptOnConfig]]
    response_format: NotRequired[Any]
    skills: NotRequired[Sequence[str | tuple[str, str]]]
    permissions: NotRequired[Sequence[FilesystemPermission] | None]
    mode: NotRequired[Literal["isolated", "fork"]]
    background: NotRequired[bool]
    update_strategy: NotRequired[Literal["interrupt", "enqueue"]]
    mcp: NotRequired[Any]


DEFAULT_SUBAGENT_PROMPT: Final = (
    "Do the task you are given with the tools you have. Only your last message is returned, so put "
    "the whole answer in it."
)

GENERAL_PURPOSE_SUBAGENT: Final[SubAgent] = {
    "name": GENERAL_PURPOSE,
    "description": DEFAULT_GENERAL_PURPOSE_DESCRIPTION,
    "system_prompt": DEFAULT_SUBAGENT_PROMPT,
}
"""The general-purpose agent of `SubAgentMiddleware`, still without model and tools."""

_KNOWN: Final = {*SubAgent.__annotations__, *CompiledSubAgent.__annotations__, "prompt"}
_OF_COMPILED: Final = {*CompiledSubAgent.__annotations__, "prompt"}
_LISTS: Final = ("tools", "middleware", "skills", "permissions")
_FORMATS: Final = (dict, AutoStrategy, ProviderStrategy, ToolStrategy)
_READABLE: Final = ("deepagents.", "langchain.")
_DEFAULTS = ("default_model", "default_tools", "default_middleware", "default_interrupt_on")
_OLDER = frozenset({*_DEFAULTS, "general_purpose_agent"})


def validate_specs(specs: Sequence[Any]) -> list[dict[str, Any]]:
    """Validate specs and bring older forms up to date; each is a copy.

    Raises:
        ConfigError: for a missing name or description, a name used twice, or a value of a wrong type.
    """
    current = [_validate(spec) for spec in specs]
    names = [spec["name"] for spec in current]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"subagents share the names {twice!r}; each needs its own")
    if any(spec.get("mode") == "fork" for spec in current):
        warn_beta("forked subagents")
    return current


def _validate(given: Any) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise ConfigError(f"a subagent is a mapping with name and description, got {given!r}")
    spec = dict(cast("Mapping[str, Any]", given))
    if "graph_id" in spec:
        raise ConfigError(
            f"subagent {spec.get('name')!r} has a graph_id: give it to AsyncSubAgentMiddleware, or to "
            "subagents= of create_deep_agent"
        )
    if spec.get("background") is True:
        raise ConfigError(
            f"subagent {spec.get('name')!r} works in the background: give it to AsyncSubAgentMiddleware, or "
            "to subagents= of create_deep_agent"
        )
    for key in ("name", "description"):
        if not isinstance(spec.get(key), str) or not spec[key]:
            raise ConfigError(f"subagent {spec.get('name', given)!r} needs a {key}")
    _report_unknown(spec)
    if "prompt" in spec:
        warn_legacy(f"subagent {spec['name']!r}: the key 'prompt' is deprecated, write 'system_prompt'.")
        spec.setdefault("system_prompt", spec.pop("prompt"))
    # An iterator can be read once only: it is validated here, and read again when the subagent is compiled.
    spec |= {key: list(spec[key]) for key in _LISTS if isinstance(spec.get(key), Iterator)}
    for problem in _find_problems(spec):
        raise ConfigError(f"subagent {spec['name']!r}: {problem}")
    return spec


def check_complete(spec: Mapping[str, Any]) -> None:
    """Check a spec that no assembled agent completes.

    Raises:
        ConfigError: when it lacks its model or tools, asks for what only a whole agent has, or says twice
            which calls wait for a person.
    """
    name = spec["name"]
    for key, given in (("model", spec.get("model") is not None), ("tools", "tools" in spec)):
        if not given:
            raise ConfigError(f"subagent {name!r} must specify '{key}', or give default_{key}")
    if spec.get("interrupt_on") and asks_itself(spec):
        raise ConfigError(f"subagent {name!r} has interrupt_on and a HumanInTheLoopMiddleware; give it one")
    if spec.get("permissions"):
        raise ConfigError(
            f"subagent {name!r} has permissions, which only create_deep_agent gives to file tools; put "
            "FilesystemMiddleware(permissions=...) and its approval() in its middleware"
        )
    if spec.get("mcp"):
        raise ConfigError(
            f"subagent {name!r} has mcp, which only create_deep_agent gives to agents; put "
            "MCPMiddleware(MCPServers(...)) in its middleware"
        )
    if spec.get("skills"):
        raise ConfigError(
            f"subagent {name!r} has skills, for which only create_deep_agent knows a backend; put "
            "SkillsMiddleware(backend=..., sources=...) and FilesystemMiddleware(backend=...) in its "
            "middleware"
        )


def asks_itself(spec: Mapping[str, Any]) -> bool:
    """Return whether a spec brings approval middleware of its own."""
    return any(each.name == "HumanInTheLoopMiddleware" for each in spec.get("middleware") or ())


def _report_unknown(spec: dict[str, Any]) -> None:
    if ignored := sorted(_KNOWN & spec.keys() - _OF_COMPILED) if "runnable" in spec else []:
        warn_caller(f"subagent {spec['name']!r} is compiled already: {ignored!r} have no effect")
    warn_unknown_keys(f"subagent {spec['name']!r}", spec.keys() - _KNOWN, _KNOWN)


def _is_list(given: Any) -> bool:
    return isinstance(given, Iterable) and not isinstance(given, str | Mapping)


def _is_runnable(given: Any) -> bool:
    return hasattr(given, "invoke") and hasattr(given, "with_config")


def _is_format(given: Any) -> bool:
    if not isinstance(given, type):
        return isinstance(given, _FORMATS) or get_origin(given) in (Union, types.UnionType)
    kind: type[Any] = given
    return issubclass(kind, BaseModel) or is_dataclass(kind) or hasattr(kind, "__required_keys__")


_VALUES: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = types.MappingProxyType(
    {
        "mode": (lambda given: given in ("isolated", "fork"), "'isolated' or 'fork'"),
        "background": (lambda given: isinstance(given, bool), "True or False"),
        "system_prompt": (lambda given: isinstance(given, str), "text"),
        "runnable": (_is_runnable, "a Runnable, such as a compiled graph"),
        "response_format": (
            _is_format,
            "a pydantic model, a dataclass, a TypedDict, a JSON schema or a strategy of LangChain's",
        ),
        **dict.fromkeys(_LISTS, (_is_list, "a list")),
    }
)


def _find_problems(spec: Mapping[str, Any]) -> Iterator[str]:
    for key, (is_right, expected) in _VALUES.items():
        value = spec.get(key)
        if (value is not None or (key == "runnable" and key in spec)) and not is_right(value):
            yield f"{key} must be {expected}, got {value!r}"
    if spec.get("mode") == "fork" and spec.get("skills"):
        yield "a fork has the skills of the agent that calls it, so it may not have skills of its own"
    try:
        validate_interrupt_on(spec.get("interrupt_on"))
    except (ConfigError, TypeError) as error:
        yield str(error)
    for each in spec.get("middleware") or ():
        yield from _find_middleware_problems(each)
    for each in spec.get("tools") or ():
        yield from _find_tool_problems(each)


def _find_middleware_problems(given: object) -> Iterator[str]:
    if not isinstance(given, AgentMiddleware):
        yield f"middleware must hold middleware objects, got {given!r}"
        return
    brought = cast("Middleware", given)
    schema = brought.state_schema
    if schema.__module__.startswith(_READABLE):
        return
    try:
        get_type_hints(schema, include_extras=True)
    except (AttributeError, NameError, SyntaxError, TypeError) as error:
        yield f"the state_schema of middleware {brought.name!r} cannot be read: {error}"


def _find_tool_problems(given: object) -> Iterator[str]:
    """Yield why a tool could not be described to a model; its schema is made later, on first use."""
    if isinstance(given, BaseTool | Mapping):
        return
    name = getattr(given, "__name__", None)
    if not callable(given) or name is None:
        yield f"tools must hold LangChain tools, functions or dicts, got {given!r}"
    elif not given.__doc__ and not isinstance(given, type):
        yield f"the function {name!r} in tools needs a docstring, which tells a model what it is for"


def with_defaults(subagents: Sequence[Any], older: Mapping[str, Any]) -> list[Any]:
    """Fill the gaps of each spec from the older arguments, and add the general-purpose agent they stood for.

    Raises:
        TypeError: for a keyword that no version knew.
    """
    unknown = sorted(older.keys() - _OLDER)
    if unknown:
        raise TypeError(f"SubAgentMiddleware got unexpected keyword arguments {unknown!r}")
    named = [key for key in _DEFAULTS if key in older]
    if older.get("default_model") is not None:
        older = {**older, "default_model": _models.resolve_model(older["default_model"])}
    if named:
        warn_legacy(
            f"SubAgentMiddleware({', '.join(named)}) is deprecated: give each subagent its own model and "
            f"tools."
        )
    filled = [_fill(spec, older) for spec in subagents]
    wanted = older.get("general_purpose_agent", bool(named))
    if wanted and GENERAL_PURPOSE not in [spec.get("name") for spec in filled]:
        filled.insert(0, _fill(_general_purpose(older), older))
    return filled


def _fill(given: Any, older: Mapping[str, Any]) -> Any:
    if not isinstance(given, dict) or "runnable" in given:
        return cast(Any, given)
    spec = dict(cast("Mapping[str, Any]", given))
    if spec.get("model") is None and older.get("default_model") is not None:
        spec["model"] = older["default_model"]
    if older.keys() & {"default_model", "default_tools"}:
        spec.setdefault("tools", older.get("default_tools") or [])
    if older.get("default_interrupt_on") and not asks_itself(spec):
        spec.setdefault("interrupt_on", older["default_interrupt_on"])
    spec["middleware"] = [*(older.get("default_middleware") or ()), *(spec.get("middleware") or ())]
    return spec


def _general_purpose(older: Mapping[str, Any]) -> dict[str, Any]:
    if older.get("default_model") is None:
        raise ConfigError(
            "general_purpose_agent=True needs default_model, or a subagent named 'general-purpose'"
        )
    return dict(GENERAL_PURPOSE_SUBAGENT)
