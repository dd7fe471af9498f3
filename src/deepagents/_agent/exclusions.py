"""Whether what a harness profile leaves out is there to be left out, and may be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from deepagents._agent.slots import Building
from deepagents.errors import ProfileError
from deepagents.middleware._base import Middleware
from deepagents.profiles.harness.profile import leaves_out

APPROVAL: Final = "HumanInTheLoopMiddleware"
_LIMITS: Final = "LimitsMiddleware"


def check_exclusions(building: Building, asks: Callable[[], bool]) -> None:
    """Refuse exclusions that match nothing, too much, or what the caller asked for as a safeguard.

    A name of the library's own table counts as matched: whether its middleware stands in this agent
    depends on what the agent was given.

    Raises:
        ProfileError: naming the entry.
    """
    profile, who = building.plan.profile, building.who
    asked_for = {APPROVAL: asks, _LIMITS: lambda: building.plan.limits is not None}
    for entry in profile.excluded_middleware:
        matched = [each for each in _standing(building) if leaves_out(entry, each)]
        kinds = sorted({type(each).__qualname__ for each in matched})
        if len(kinds) > 1:
            raise ProfileError(
                f"excluded_middleware {entry!r} matched multiple distinct middleware of {who}, {kinds!r}; "
                "exclude the class that is meant"
            )
        name = entry if isinstance(entry, str) else entry.__name__
        if not matched and name not in building.slots:
            raise ProfileError(
                f"excluded_middleware {entry!r} matched no middleware of {who}; there is {_listed(building)}"
            )
        if name in asked_for and (matched or asked_for[name]()):
            raise ProfileError(f"excluded_middleware {entry!r} would drop a safeguard that {who} was given")


def _standing(building: Building) -> list[Middleware]:
    own = list(building.plan.middleware)
    names = {each.name for each in own}
    return [*own, *(each for each in building.extras if each.name not in names)]


def _listed(building: Building) -> str:
    return ", ".join(sorted(building.slots.union(each.name for each in building.brought)))
