"""Entries of `interrupt_on`: checked while building, their functions called safely and once for a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, Final, NotRequired, TypeAlias, cast, get_args

from langchain.agents.middleware import InterruptOnConfig
from langchain.agents.middleware.human_in_the_loop import DecisionType

from deepagents.errors import ConfigError


class ApprovalConfig(InterruptOnConfig):
    """LangChain's `InterruptOnConfig`, and whether a person's decision may be remembered in the thread."""

    remember: NotRequired[bool]


InterruptOn: TypeAlias = Mapping[str, bool | InterruptOnConfig | ApprovalConfig]

_KNOWN: Final = ", ".join(map(repr, get_args(DecisionType)))


class CallersError(Exception):
    """What a caller's own function raised while a request was made, be it a question of its own."""


def checked(interrupt_on: object) -> InterruptOn:
    """Return the entries, which are all of a form that can be asked by.

    Raises:
        ConfigError: for decisions that do not exist, or none.
        TypeError: for an entry that is neither a bool nor a dict.
    """
    if interrupt_on is None:
        return {}
    if not isinstance(interrupt_on, Mapping):
        raise TypeError(f"interrupt_on must be a dict from tool names to rules, got {interrupt_on!r}")
    given = cast("InterruptOn", interrupt_on)
    for tool, entry in given.items():
        _check(tool, entry)
    return given


def _check(tool: str, entry: Any) -> None:
    if isinstance(entry, bool):
        return
    if not isinstance(entry, Mapping):
        raise TypeError(
            f"interrupt_on of {tool!r} must be True, False or {{'allowed_decisions': [...]}}, got {entry!r}"
        )
    allowed = cast("Mapping[str, Any]", entry).get("allowed_decisions")
    if not allowed or not _all_known(allowed):
        raise ConfigError(f"allowed_decisions of {tool!r} must be some of {_KNOWN}, got {allowed!r}")
    remember = cast("Mapping[str, Any]", entry).get("remember", False)
    if not isinstance(remember, bool):
        raise TypeError(f"'remember' of {tool!r} must be True or False, got {remember!r}")


def _all_known(allowed: object) -> bool:
    listed = isinstance(allowed, list | tuple)
    return listed and all(each in get_args(DecisionType) for each in cast("Sequence[Any]", allowed))


def asked_once(config: InterruptOnConfig) -> InterruptOnConfig:
    """Return the entry with its functions called once for each call, their errors marked as the caller's.

    So they are not taken for a wrong answer, and are not called again for each answer there was.
    """
    own = {key: _once(each) for key, each in config.items() if callable(each)}
    return cast("InterruptOnConfig", {**config, **own})


def remembering(entries: Mapping[str, InterruptOnConfig]) -> Mapping[str, bool]:
    """Tell of each tool whether decisions about it may be remembered."""
    return {name: bool(cast("Mapping[str, Any]", entry).get("remember")) for name, entry in entries.items()}


def sparing(config: InterruptOnConfig, find: Callable[[Any], object | None] | None) -> InterruptOnConfig:
    """Return the entry from `asked_once` without the calls for which a remembered decision is found."""
    if find is None or not cast("Mapping[str, Any]", config).get("remember"):
        return config

    def when(request: Any) -> bool:
        call = getattr(request, "tool_call", request)
        return is_asked(config, request) and find(call) is None

    return cast("InterruptOnConfig", {**config, "when": when})


def is_asked(config: InterruptOnConfig, call: Any) -> bool:
    """Tell whether a call was found to wait by an entry from `asked_once`."""
    when: Callable[[Any], Any] | None = config.get("when")
    return when is None or bool(when(call))


def _once(function: Callable[..., Any]) -> Callable[..., Any]:
    known: dict[int, Any] = {}

    @wraps(function)
    def call(given: Any, *more: Any) -> Any:
        key = id(getattr(given, "tool_call", given))
        if key not in known:
            known[key] = _marked(function, given, *more)
        return known[key]

    return call


def _marked(function: Callable[..., Any], *args: Any) -> Any:
    """Call a caller's function; a question of its own passes like its errors, told from LangChain's."""
    try:
        return function(*args)
    except Exception as error:
        raise CallersError from error
