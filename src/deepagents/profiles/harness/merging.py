"""Two harness profiles for one model become one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias, TypeVar

from deepagents.middleware._base import Middleware
from deepagents.profiles.harness import checks
from deepagents.profiles.harness.profile import GeneralPurposeSubagentProfile, HarnessProfile

T = TypeVar("T")
Extra: TypeAlias = Sequence[Middleware] | Callable[[], Sequence[Middleware]]


def merge_profiles(base: HarnessProfile, override: HarnessProfile) -> HarnessProfile:
    """Lay a profile over another: what it sets wins, exclusions add up, middleware goes by class."""
    return HarnessProfile(
        base_system_prompt=_set(override.base_system_prompt, base.base_system_prompt),
        system_prompt_suffix=_set(override.system_prompt_suffix, base.system_prompt_suffix),
        tool_description_overrides={**base.tool_description_overrides, **override.tool_description_overrides},
        excluded_tools=base.excluded_tools | override.excluded_tools,
        excluded_middleware=base.excluded_middleware | override.excluded_middleware,
        extra_middleware=_both(base.extra_middleware, override.extra_middleware),
        general_purpose_subagent=_general(base.general_purpose_subagent, override.general_purpose_subagent),
    )


def _set(over: T | None, under: T | None) -> T | None:
    return under if over is None else over


def _general(
    base: GeneralPurposeSubagentProfile | None, override: GeneralPurposeSubagentProfile | None
) -> GeneralPurposeSubagentProfile | None:
    if base is None or override is None:
        return override or base
    return replace(base, **override.to_dict())


def _both(base: Extra, override: Extra) -> Extra:
    if not base or not override:
        return override or base
    # A function, so that each agent gets instances of its own.
    return lambda: _by_class(checks.make(base), checks.make(override))


def _by_class(base: Sequence[Middleware], override: Sequence[Middleware]) -> list[Middleware]:
    """Replace the first instance of each overriding one's exact class, or append it."""
    waiting = {type(each): each for each in override}
    kept: list[Middleware] = []
    for each in base:
        if type(each) in waiting:
            kept.append(waiting.pop(type(each)))
        elif type(each) not in {type(over) for over in override}:
            kept.append(each)
    return [*kept, *(each for each in override if waiting.get(type(each)) is each)]
