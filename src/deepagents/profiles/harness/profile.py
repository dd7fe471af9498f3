"""HarnessProfile: how the agent around a kind of model is shaped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from deepagents.errors import ProfileError
from deepagents.middleware._base import Middleware
from deepagents.middleware.prompt_caching import PromptCachingMiddleware

REQUIRED = frozenset({"FilesystemMiddleware", "SubAgentMiddleware"})
"""Middleware that an agent cannot be without."""


@dataclass(frozen=True)
class GeneralPurposeSubagentProfile:
    """What to change about the general-purpose subagent; `None` leaves a field as it is."""

    enabled: bool | None = None
    description: str | None = None
    system_prompt: str | None = None


@dataclass(frozen=True)
class HarnessProfile:
    """Changes to an agent that suit one provider or model.

    Raises:
        ProfileError: when required middleware is excluded.
    """

    base_system_prompt: str | None = None
    system_prompt_suffix: str | None = None
    tool_description_overrides: Mapping[str, str] = field(default_factory=dict[str, str])
    excluded_tools: frozenset[str] = frozenset()
    excluded_middleware: frozenset[str | type] = frozenset()
    extra_middleware: Sequence[Middleware] | Callable[[], Sequence[Middleware]] = ()
    general_purpose_subagent: GeneralPurposeSubagentProfile | None = None

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "tool_description_overrides", MappingProxyType(dict(self.tool_description_overrides))
        )
        needed = sorted({_name(entry) for entry in self.excluded_middleware} & REQUIRED)
        if needed:
            raise ProfileError(
                f"excluded_middleware names {needed!r}, which are scaffolding that no agent can be without"
            )

    def materialize_extra_middleware(self) -> list[Middleware]:
        """Return the extra middleware for one more stack."""
        extra = self.extra_middleware
        return list(extra() if callable(extra) else extra)

    def excludes(self, middleware: Middleware) -> bool:
        """Tell whether this middleware is left out, by its name, its exact class or the one it stands for."""
        excluded = self.excluded_middleware
        if middleware.name in excluded or type(middleware) in excluded:
            return True
        stand_in = middleware if isinstance(middleware, PromptCachingMiddleware) else None
        return stand_in is not None and any(
            stand_in.stands_for(each) for each in excluded if not isinstance(each, str)
        )


def _name(entry: str | type) -> str:
    return entry if isinstance(entry, str) else entry.__name__
