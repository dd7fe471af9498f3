"""What a subagent is, as callers write it, and the checks that each spec passes once."""

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NotRequired, TypeAlias, TypedDict, cast

from langchain.agents.middleware import InterruptOnConfig
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool

from deepagents._deprecation import warn_beta, warn_caller, warn_legacy
from deepagents.errors import ConfigError
from deepagents.middleware._base import Middleware
from deepagents.middleware.subagents.faults import LISTS, faults
from deepagents.permissions import FilesystemPermission

ToolLike: TypeAlias = BaseTool | Callable[..., Any] | dict[str, Any]

GENERAL_PURPOSE: Final = "general-purpose"
DEFAULT_GENERAL_PURPOSE_DESCRIPTION: Final = (
    "General agent with the same tools as you, for research, searching and any work of many steps."
)


class SubAgent(TypedDict):
    """An agent that the main agent may delegate to; what is not given is taken from the main agent."""

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


class CompiledSubAgent(TypedDict):
    """A runnable of the caller's own that the main agent may delegate to; its state must have `messages`."""

    name: str
    description: str
    runnable: Runnable[Any, Any]
    mode: NotRequired[Literal["isolated", "fork"]]


_KNOWN: Final = {*SubAgent.__annotations__, *CompiledSubAgent.__annotations__, "prompt"}
_OF_COMPILED: Final = {*CompiledSubAgent.__annotations__, "prompt"}


def checked(specs: Sequence[Any]) -> list[dict[str, Any]]:
    """Check specs and bring older forms up to date; each is a copy.

    Raises:
        ConfigError: for a missing name or description, a name used twice, a value that cannot be.
    """
    current = [_checked(spec) for spec in specs]
    names = [spec["name"] for spec in current]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"subagents share the names {twice!r}; each needs its own")
    if any(spec.get("mode") == "fork" for spec in current):
        warn_beta("forked subagents")
    return current


def _checked(given: Any) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise ConfigError(f"a subagent is a mapping with name and description, got {given!r}")
    spec = dict(cast("Mapping[str, Any]", given))
    if "graph_id" in spec:
        raise ConfigError(
            f"subagent {spec.get('name')!r} has a graph_id: give it to AsyncSubAgentMiddleware, or to "
            "subagents= of create_deep_agent"
        )
    for key in ("name", "description"):
        if not isinstance(spec.get(key), str) or not spec[key]:
            raise ConfigError(f"subagent {spec.get('name', given)!r} needs a {key}")
    _report_unknown(spec)
    spec = _lasting(_modern(spec))
    for said in faults(spec):
        raise ConfigError(f"subagent {spec['name']!r}: {said}")
    return spec


def check_complete(spec: Mapping[str, Any]) -> None:
    """Check a spec that nobody completes.

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
    if spec.get("skills"):
        raise ConfigError(
            f"subagent {name!r} has skills, for which only create_deep_agent knows a backend; put "
            "SkillsMiddleware(backend=..., sources=...) and FilesystemMiddleware(backend=...) in its "
            "middleware"
        )


def asks_itself(spec: Mapping[str, Any]) -> bool:
    """Tell whether a spec brings approval middleware of its own."""
    return any(each.name == "HumanInTheLoopMiddleware" for each in spec.get("middleware") or ())


def _report_unknown(spec: dict[str, Any]) -> None:
    if ignored := sorted(_KNOWN & spec.keys() - _OF_COMPILED) if "runnable" in spec else []:
        warn_caller(f"subagent {spec['name']!r} is compiled already: {ignored!r} have no effect")
    for key in spec.keys() - _KNOWN:
        close = difflib.get_close_matches(key, _KNOWN, n=1)
        meant = f"; did you mean {close[0]!r}?" if close else ""
        warn_caller(f"subagent {spec['name']!r}: unknown key {key!r} is ignored{meant}")


def _modern(spec: dict[str, Any]) -> dict[str, Any]:
    if "prompt" in spec:
        warn_legacy(f"subagent {spec['name']!r}: the key 'prompt' is deprecated, write 'system_prompt'.")
        spec.setdefault("system_prompt", spec.pop("prompt"))
    return spec


def _lasting(spec: dict[str, Any]) -> dict[str, Any]:
    """Keep what can be gone through only once: it is looked at here, and again by who compiles."""
    once = [key for key in LISTS if isinstance(spec.get(key), Iterator)]
    return {**spec, **{key: list(spec[key]) for key in once}}
