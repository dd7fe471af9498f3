"""HarnessProfileConfig: a harness profile as it stands in a file, without anything that only code can say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from deepagents.errors import ProfileError
from deepagents.profiles.harness import checks
from deepagents.profiles.harness.profile import GeneralPurposeSubagentProfile, HarnessProfile


@dataclass(frozen=True)
class HarnessProfileConfig:
    """The part of a `HarnessProfile` that can be written to YAML or JSON.

    Args:
        base_system_prompt: replaces the built-in prompt; `""` leaves none.
        system_prompt_suffix: comes after it.
        tool_description_overrides: descriptions by the names of tools.
        excluded_tools: names of tools that the model is not offered.
        excluded_middleware: names of middleware that the agent goes without.
        general_purpose_subagent: changes to the general-purpose subagent.

    Raises:
        ProfileError: when excluded middleware is required, or named in a form that names nothing.
        TypeError: for values of a wrong type.
    """

    base_system_prompt: str | None = None
    system_prompt_suffix: str | None = None
    tool_description_overrides: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)
    excluded_tools: frozenset[str] = frozenset()
    excluded_middleware: frozenset[str] = frozenset()
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
            "excluded_middleware": checks.exclusions(self.excluded_middleware, classes=False),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def to_dict(self) -> dict[str, object]:
        """Return what is set, in types that YAML and JSON know; sets become sorted lists."""
        general = self.general_purpose_subagent
        found: dict[str, object] = {
            "base_system_prompt": self.base_system_prompt,
            "system_prompt_suffix": self.system_prompt_suffix,
            "tool_description_overrides": dict(self.tool_description_overrides) or None,
            "excluded_tools": sorted(self.excluded_tools) or None,
            "excluded_middleware": sorted(self.excluded_middleware) or None,
            "general_purpose_subagent": None if general is None else general.to_dict(),
        }
        return {key: value for key, value in found.items() if value is not None}

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> HarnessProfileConfig:
        """Read what `to_dict` returned, or what stands in a file.

        Raises:
            ProfileError: when excluded middleware is required, or named in a form that names nothing.
            TypeError: for unknown keys, and values of a wrong type.
        """
        found = checks.drop_empty_keys("a harness profile", data, cls.__annotations__)
        base, suffix = found.get("base_system_prompt"), found.get("system_prompt_suffix")
        checks.check_type("base_system_prompt", base, str)
        checks.check_type("system_prompt_suffix", suffix, str)
        general = found.get("general_purpose_subagent")
        named = checks.strings("excluded_middleware", found.get("excluded_middleware", ()))
        return cls(
            base_system_prompt=base if isinstance(base, str) else None,
            system_prompt_suffix=suffix if isinstance(suffix, str) else None,
            tool_description_overrides=checks.words(found.get("tool_description_overrides", {})),
            excluded_tools=checks.strings("excluded_tools", found.get("excluded_tools", ())),
            excluded_middleware=named,
            general_purpose_subagent=None if general is None else _general(general),
        )

    def to_harness_profile(self) -> HarnessProfile:
        """Return the profile that this stands for."""
        return HarnessProfile(
            base_system_prompt=self.base_system_prompt,
            system_prompt_suffix=self.system_prompt_suffix,
            tool_description_overrides=self.tool_description_overrides,
            excluded_tools=self.excluded_tools,
            excluded_middleware=frozenset[str | type](self.excluded_middleware),
            general_purpose_subagent=self.general_purpose_subagent,
        )

    @classmethod
    def from_harness_profile(cls, profile: HarnessProfile) -> HarnessProfileConfig:
        """Return the file form of a profile.

        Raises:
            ProfileError: when the profile holds what only code can say.
        """
        if profile.extra_middleware:
            raise ProfileError(
                f"extra_middleware cannot be written to a file, got {profile.extra_middleware!r}; register "
                "the profile in code"
            )
        return cls(
            base_system_prompt=profile.base_system_prompt,
            system_prompt_suffix=profile.system_prompt_suffix,
            tool_description_overrides=profile.tool_description_overrides,
            excluded_tools=profile.excluded_tools,
            excluded_middleware=frozenset(map(_write_entry, profile.excluded_middleware)),
            general_purpose_subagent=profile.general_purpose_subagent,
        )


def _general(given: object) -> GeneralPurposeSubagentProfile:
    return GeneralPurposeSubagentProfile.from_dict(cast("Mapping[str, object]", given))


def _write_entry(entry: str | type) -> str:
    if isinstance(entry, str):
        return entry
    alias: object = getattr(entry, "serialized_name", None)
    if not isinstance(alias, str):
        raise ProfileError(
            f"excluded_middleware holds the class {entry!r}, which has no serialized_name to be written by; "
            "exclude it by its name"
        )
    return alias
