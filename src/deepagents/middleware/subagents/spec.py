"""What a subagent is, as callers write it, and the checks that each spec passes once."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict, cast

from langchain.agents.middleware import InterruptOnConfig
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool

from deepagents._deprecation import warn_caller, warn_legacy
from deepagents.errors import ConfigError
from deepagents.middleware._base import Middleware
from deepagents.permissions import FilesystemPermission

ToolLike: TypeAlias = BaseTool | Callable[..., Any] | dict[str, Any]


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


_LATER = {"mode": "isolated"}
_KNOWN = {*SubAgent.__annotations__, *CompiledSubAgent.__annotations__, "prompt"}


def checked(specs: Sequence[Any]) -> list[dict[str, Any]]:
    """Check specs and bring older forms up to date; each is a copy.

    Raises:
        ConfigError: for a missing name or description, or a name used twice.
        NotImplementedError: for a key whose feature is not there yet, naming it.
    """
    current = [_checked(spec) for spec in specs]
    names = [spec["name"] for spec in current]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"subagents share the names {twice!r}; each needs its own")
    return current


def _checked(given: Any) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise ConfigError(f"a subagent is a mapping with name and description, got {given!r}")
    spec = dict(cast("Mapping[str, Any]", given))
    if "graph_id" in spec:
        raise NotImplementedError(
            "subagents with a graph_id (AsyncSubAgent) are not available in this version"
        )
    for key in ("name", "description"):
        if not isinstance(spec.get(key), str) or not spec[key]:
            raise ConfigError(f"subagent {spec.get('name', given)!r} needs a {key}")
    for key, default in _LATER.items():
        if spec.get(key, default) not in (default, None):
            raise NotImplementedError(
                f"subagent {spec['name']!r}: {key}={spec[key]!r} is not available in this version"
            )
    _report_unknown(spec)
    return _modern(spec)


def _report_unknown(spec: dict[str, Any]) -> None:
    for key in spec.keys() - _KNOWN:
        close = difflib.get_close_matches(key, _KNOWN, n=1)
        meant = f"; did you mean {close[0]!r}?" if close else ""
        warn_caller(f"subagent {spec['name']!r}: unknown key {key!r} is ignored{meant}")


def _modern(spec: dict[str, Any]) -> dict[str, Any]:
    if "prompt" in spec:
        warn_legacy(f"subagent {spec['name']!r}: the key 'prompt' is deprecated, write 'system_prompt'.")
        spec.setdefault("system_prompt", spec.pop("prompt"))
    return spec
