"""Validate `interrupt_on`, join it with rules about paths, and call its functions once for each call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, Final, NotRequired, TypeAlias, cast, get_args

from langchain.agents.middleware import InterruptOnConfig
from langchain.agents.middleware.human_in_the_loop import DecisionType

from deepagents.errors import ConfigError
from deepagents.middleware.approval.path_rules import Specs, waits
from deepagents.permissions import Rules
from deepagents.tools import specs_by_name


class ApprovalConfig(InterruptOnConfig):
    """LangChain's `InterruptOnConfig`, and whether a person's decision may be remembered in the thread."""

    remember: NotRequired[bool]


InterruptOn: TypeAlias = Mapping[str, bool | InterruptOnConfig | ApprovalConfig]

_DECISIONS: Final[tuple[DecisionType, ...]] = get_args(DecisionType)


class CallerError(Exception):
    """What a caller's own function raised while a request was made, be it a question of its own."""


def validate_interrupt_on(interrupt_on: object) -> InterruptOn:
    """Return the entries, once each is known to be of a form that can be asked by.

    Raises:
        ConfigError: for decisions that do not exist, or none.
        TypeError: for an entry that is neither a bool nor a dict.
    """
    if interrupt_on is None:
        return {}
    if not isinstance(interrupt_on, Mapping):
        raise TypeError(f"interrupt_on must be a dict from tool names to rules, got {interrupt_on!r}")
    for tool, entry in cast("Mapping[str, Any]", interrupt_on).items():
        _validate_entry(tool, entry)
    return cast("InterruptOn", interrupt_on)


def _validate_entry(tool: str, entry: Any) -> None:
    if isinstance(entry, bool):
        return
    if not isinstance(entry, Mapping):
        raise TypeError(
            f"interrupt_on of {tool!r} must be True, False or {{'allowed_decisions': [...]}}, got {entry!r}"
        )
    fields = cast("Mapping[str, Any]", entry)
    allowed = fields.get("allowed_decisions")
    listed = cast("Sequence[Any]", allowed) if isinstance(allowed, list | tuple) else ()
    if not listed or any(each not in _DECISIONS for each in listed):
        known = ", ".join(map(repr, _DECISIONS))
        raise ConfigError(f"allowed_decisions of {tool!r} must be some of {known}, got {allowed!r}")
    if not isinstance(remember := fields.get("remember", False), bool):
        raise TypeError(f"'remember' of {tool!r} must be True or False, got {remember!r}")


def add_path_rules(
    rules: Rules, interrupt_on: InterruptOn | None = None, specs: Specs | None = None
) -> dict[str, bool | InterruptOnConfig]:
    """Return the entries of a caller together with those for the tools that rules make wait.

    A caller's entry says how to ask, and for which further calls; none lifts what a rule makes wait.
    """
    known = specs_by_name() if specs is None else specs

    def waits_by_rule(request: Any) -> bool:
        return waits(rules, request.tool_call, request.state, known)

    merged = dict(interrupt_on or {})
    for tool, spec in known.items():
        if spec.operation is None or not rules.has("interrupt", spec.operation):
            continue
        given = merged.get(tool)
        if given is None or given is False:
            merged[tool] = InterruptOnConfig(allowed_decisions=[*_DECISIONS], when=waits_by_rule)
        elif isinstance(given, dict) and (own := given.get("when")) is not None:
            merged[tool] = cast("InterruptOnConfig", {**given, "when": _either(own, waits_by_rule)})
    return merged


def _either(one: Callable[[Any], bool], other: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda request: one(request) or other(request)


def call_once(config: InterruptOnConfig) -> InterruptOnConfig:
    """Return the entry with its functions called once for each call, their errors marked as the caller's.

    LangChain calls them again for each answer, and an error of theirs would look like a wrong answer.
    """
    own = {key: _once(each) for key, each in config.items() if callable(each)}
    return cast("InterruptOnConfig", {**config, **own})


def skip_decided(config: InterruptOnConfig, find: Callable[[Any], object | None]) -> InterruptOnConfig:
    """Return an entry from `call_once` that does not ask about calls for which `find` has a decision."""
    if not can_remember(config):
        return config

    def when(request: Any) -> bool:
        call = getattr(request, "tool_call", request)
        return asks_about(config, request) and find(call) is None

    return cast("InterruptOnConfig", {**config, "when": when})


def can_remember(config: Any) -> bool:
    """Return whether decisions about a tool may be remembered."""
    return bool(config.get("remember"))


def asks_about(config: InterruptOnConfig, call: Any) -> bool:
    """Return whether an entry from `call_once` makes a call wait."""
    when: Callable[[Any], Any] | None = config.get("when")
    return when is None or bool(when(call))


def _once(function: Callable[..., Any]) -> Callable[..., Any]:
    known: dict[int, Any] = {}

    @wraps(function)
    def call(given: Any, *more: Any) -> Any:
        # By identity: calls are dicts, which have no hash, and two equal calls are two questions.
        key = id(getattr(given, "tool_call", given))
        if key not in known:
            try:
                known[key] = function(given, *more)
            except Exception as error:
                raise CallerError from error
        return known[key]

    return call
