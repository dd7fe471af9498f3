"""Turn keyword arguments that SubAgentMiddleware took in earlier versions into complete specs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from deepagents import _models
from deepagents._deprecation import warn_legacy
from deepagents.errors import ConfigError
from deepagents.middleware.subagents.spec import (
    DEFAULT_GENERAL_PURPOSE_DESCRIPTION,
    GENERAL_PURPOSE,
    SubAgent,
    asks_itself,
)

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

_DEFAULTS = ("default_model", "default_tools", "default_middleware", "default_interrupt_on")
_OLDER = frozenset({*_DEFAULTS, "general_purpose_agent"})


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
