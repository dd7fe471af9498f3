"""What an asynchronous subagent is, as callers write it, and the checks that each spec passes once."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NotRequired, TypeAlias, TypedDict, cast, get_args

from deepagents._beta import warn_beta
from deepagents._deprecation import warn_caller
from deepagents.errors import ConfigError

Strategy: TypeAlias = Literal["interrupt", "enqueue"]
Mode: TypeAlias = Literal["isolated", "fork"]


class AsyncSubAgent(TypedDict):
    """An agent on an Agent Protocol server, which works in the background while the main agent goes on.

    Without `url` it is a graph of the server that runs the main agent, reached in the process and only by an
    agent that is awaited. The key for `x-api-key` comes from `LANGGRAPH_API_KEY`, `LANGSMITH_API_KEY` or
    `LANGCHAIN_API_KEY`; `headers` holds any other way to sign in.
    """

    name: str
    description: str
    graph_id: str
    url: NotRequired[str]
    headers: NotRequired[dict[str, str]]
    webhook: NotRequired[str]
    update_strategy: NotRequired[Strategy]
    notify_parent: NotRequired[bool]
    mode: NotRequired[Mode]


@dataclass(frozen=True, slots=True)
class RemoteAgent:
    """One checked spec; what may hold secrets is in no representation."""

    name: str
    description: str
    graph_id: str
    url: str | None = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    webhook: str | None = field(repr=False)
    update_strategy: Strategy
    notify_parent: bool
    mode: Mode

    @property
    def server(self) -> tuple[str | None, tuple[tuple[str, str], ...]]:
        """What tells one way into a server from another."""
        return self.url, tuple(sorted(self.headers.items()))


_KNOWN: Final = frozenset(AsyncSubAgent.__annotations__)
_TEXTS: Final = ("name", "description", "graph_id")
_CHOICES: Final = {"update_strategy": get_args(Strategy), "mode": get_args(Mode)}
_SCHEME: Final = "x-auth-scheme"


def is_remote(spec: Any) -> bool:
    """Tell whether a spec is one for an asynchronous subagent."""
    return isinstance(spec, Mapping) and "graph_id" in spec


def checked(specs: Sequence[Any]) -> dict[str, RemoteAgent]:
    """Check specs; return the agents by name.

    Raises:
        ConfigError: for none at all, a name used twice, or a spec that cannot work.
    """
    agents = [_checked(spec) for spec in specs]
    if not agents:
        raise ConfigError("At least one async subagent is needed: async_subagents=[...]")
    names = [agent.name for agent in agents]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"Duplicate async subagent names {twice!r}; each needs its own")
    if any(agent.mode == "fork" for agent in agents):
        warn_beta("forked async subagents")
    return {agent.name: agent for agent in agents}


def refuse_shared_names(specs: Sequence[Any], others: Sequence[str]) -> None:
    """Refuse asynchronous subagents that are called like others.

    Raises:
        ConfigError: naming them.
    """
    both = sorted({each for spec in specs if (each := spec.get("name")) in others})
    if both:
        raise ConfigError(f"{both!r} name both subagents and async subagents; each needs a name of its own")


def _checked(given: Any) -> RemoteAgent:
    if not isinstance(given, Mapping):
        raise ConfigError(f"an async subagent is a mapping, not a {type(given).__name__}")
    spec = cast("Mapping[str, Any]", given)
    for key in _TEXTS:
        if not isinstance(spec.get(key), str) or not spec[key]:
            raise ConfigError(f"async subagent {spec.get('name')!r} needs a {key}")
    name: str = spec["name"]
    for key, allowed in _CHOICES.items():
        if spec.get(key) not in (None, *allowed):
            raise ConfigError(f"async subagent {name!r}: {key}={spec[key]!r} is none of {allowed!r}")
    _check_url(name, spec.get("url"))
    _report_unknown(name, spec)
    headers = with_scheme(name, spec.get("headers"))
    return RemoteAgent(
        name=name,
        description=spec["description"],
        graph_id=spec["graph_id"],
        url=spec.get("url") or None,
        headers=headers,
        webhook=spec.get("webhook") or None,
        update_strategy=spec.get("update_strategy") or "interrupt",
        notify_parent=spec.get("notify_parent", True) is not False,
        mode=spec.get("mode") or "isolated",
    )


def _check_url(name: str, url: Any) -> None:
    if url and not str(url).lower().startswith(("http://", "https://")):
        raise ConfigError(f"async subagent {name!r}: url begins with http:// or https://")


def _report_unknown(name: str, spec: Mapping[str, Any]) -> None:
    for key in spec.keys() - _KNOWN:
        close = difflib.get_close_matches(key, _KNOWN, n=1)
        meant = f"; did you mean {close[0]!r}?" if close else ""
        warn_caller(f"async subagent {name!r}: unknown key {key!r} is ignored{meant}")


def with_scheme(name: str, given: Any) -> dict[str, str]:
    """Check headers, and add the one that says how we sign in.

    Raises:
        ConfigError: for headers that cannot be, never saying what they hold.
    """
    headers = dict(cast("Mapping[Any, Any]", given)) if isinstance(given, Mapping) else dict[Any, Any]()
    if (given and not headers) or not all(isinstance(each, str) for pair in headers.items() for each in pair):
        raise ConfigError(f"async subagent {name!r}: headers is a mapping of text to text")
    if "x-api-key" in map(str.lower, headers):
        raise ConfigError(
            f"async subagent {name!r}: the header 'x-api-key' is set from LANGGRAPH_API_KEY, "
            "LANGSMITH_API_KEY or LANGCHAIN_API_KEY; leave it out, or sign in with another header"
        )
    scheme = {} if _SCHEME in map(str.lower, headers) else {_SCHEME: "langsmith"}
    return {**scheme, **headers}


def listed(agents: Mapping[str, RemoteAgent]) -> str:
    """List the agents for the model, one a line."""
    return "\n".join(f"- {agent.name}: {agent.description}" for agent in agents.values())
