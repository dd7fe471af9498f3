"""HarnessProfile: how the agent around a kind of model is shaped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Final

from deepagents.middleware._base import Middleware
from deepagents.profiles.harness import checks

_OURS: Final = "deepagents."
_STOOD_FOR: Final = ("deepagents.", "langchain.", "langchain_")


@dataclass(frozen=True)
class GeneralPurposeSubagentProfile:
    """What to change about the general-purpose subagent; `None` leaves a field as it is."""

    enabled: bool | None = None
    description: str | None = None
    system_prompt: str | None = None

    def to_dict(self) -> dict[str, object]:
        """Return what is set, for a file."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> GeneralPurposeSubagentProfile:
        """Read what `to_dict` returned.

        Raises:
            TypeError: for unknown keys, and values of a wrong type.
        """
        found = checks.drop_empty_keys("general_purpose_subagent", data, cls.__annotations__)
        checks.check_type("enabled", enabled := found.get("enabled"), bool)
        checks.check_type("description", description := found.get("description"), str)
        checks.check_type("system_prompt", system_prompt := found.get("system_prompt"), str)
        return cls(
            enabled=enabled if isinstance(enabled, bool) else None,
            description=description if isinstance(description, str) else None,
            system_prompt=system_prompt if isinstance(system_prompt, str) else None,
        )


@dataclass(frozen=True)
class HarnessProfile:
    """Changes to an agent that suit one provider or model.

    Args:
        base_system_prompt: replaces the built-in prompt; `""` leaves none.
        system_prompt_suffix: comes after it.
        tool_description_overrides: descriptions by the names of tools; `{available_agents}` in that of
            `task` becomes the list of subagents.
        excluded_tools: names of tools that the model is not offered. This is no security boundary.
        excluded_middleware: names of middleware, or exact classes, that the agent goes without.
        extra_middleware: further middleware, or a function that makes it anew for each agent.
        general_purpose_subagent: changes to the general-purpose subagent.

    Raises:
        ProfileError: when excluded middleware is required, or named in a form that names nothing.
        TypeError: for values of a wrong type.
    """

    base_system_prompt: str | None = None
    system_prompt_suffix: str | None = None
    tool_description_overrides: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)
    excluded_tools: frozenset[str] = frozenset()
    excluded_middleware: frozenset[str | type] = frozenset()
    extra_middleware: Sequence[Middleware] | Callable[[], Sequence[Middleware]] = ()
    general_purpose_subagent: GeneralPurposeSubagentProfile | None = None

    def __post_init__(self) -> None:
        checks.check_type("base_system_prompt", self.base_system_prompt, str)
        checks.check_type("system_prompt_suffix", self.system_prompt_suffix, str)
        checks.check_type(
            "general_purpose_subagent", self.general_purpose_subagent, GeneralPurposeSubagentProfile
        )
        checked = {
            "tool_description_overrides": checks.words(self.tool_description_overrides),
            "excluded_tools": checks.strings("excluded_tools", self.excluded_tools),
            "excluded_middleware": checks.exclusions(self.excluded_middleware, classes=True),
            "extra_middleware": checks.middleware(self.extra_middleware),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def materialize_extra_middleware(self) -> list[Middleware]:
        """Return the extra middleware for one more stack.

        Raises:
            ProfileError: when the function that makes it returns something else.
        """
        return list(checks.make(self.extra_middleware))

    def excludes(self, middleware: Middleware) -> bool:
        """Return whether this is left out, by its name, its exact class or the one it stands for."""
        return any(leaves_out(entry, middleware) for entry in self.excluded_middleware)


def leaves_out(entry: str | type, middleware: Middleware) -> bool:
    """Return whether an entry of `excluded_middleware` means this middleware."""
    if isinstance(entry, str):
        return middleware.name == entry
    kind = type(middleware)
    stands_in = kind.__module__.startswith(_OURS) and entry.__name__ == middleware.name
    return kind is entry or (stands_in and entry.__module__.startswith(_STOOD_FOR))
