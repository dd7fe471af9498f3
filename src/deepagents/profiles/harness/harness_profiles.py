"""Register harness profiles: that of `provider:model` lies over that of `provider`."""

from __future__ import annotations

import logging
from typing import Final, cast

from langchain_core.language_models import BaseChatModel

from deepagents.models.registry import ProfileRegistry
from deepagents.models.traits import model_identifier, model_provider
from deepagents.profiles.harness.builtin import BUILT_IN
from deepagents.profiles.harness.profile import (
    GeneralPurposeSubagentProfile,
    HarnessProfile,
    HarnessProfileConfig,
    merge_profiles,
)

__all__ = [
    "GeneralPurposeSubagentProfile",
    "HarnessProfile",
    "HarnessProfileConfig",
    "register_harness_profile",
]

_log = logging.getLogger(__name__)
_EMPTY: Final = HarnessProfile()
_REGISTRY: Final = ProfileRegistry("harness", BUILT_IN, merge_profiles)


def register_harness_profile(key: str, profile: HarnessProfile | HarnessProfileConfig) -> None:
    """Use a profile for `provider` or `provider:model`, over what is registered there.

    Raises:
        ProfileError: for a key that names nothing.
        TypeError: for what is not a profile; a mapping is read by `HarnessProfileConfig.from_dict`.
    """
    whole = profile.to_harness_profile() if isinstance(profile, HarnessProfileConfig) else profile
    if not isinstance(cast(object, whole), HarnessProfile):
        raise TypeError(f"a HarnessProfile or HarnessProfileConfig is registered for {key!r}, got {whole!r}")
    _REGISTRY.register(key, whole)


def get_harness_profile(spec: str) -> HarnessProfile | None:
    """Return the profile for `provider:model`, if there is one."""
    return _REGISTRY.find(spec)


def profile_for(model: BaseChatModel, spec: str | None = None) -> HarnessProfile:
    """Return the profile that fits a model best, or an empty one: for its name, then for its provider.

    The name that was given counts first, then what the model made from it tells; a given name without a
    colon says less than the model.
    """
    provider, identifier = model_provider(model), model_identifier(model)
    given = spec if spec and ":" in spec else None
    own = identifier if identifier and ":" in identifier else None
    full = f"{provider}:{identifier}" if provider and identifier else None
    whole = [name for name in (given, full, own) if name and _REGISTRY.holds(name)]
    for name in (*whole, given, provider or own):
        if name and (found := _REGISTRY.find(name)) is not None:
            return found
    _log.debug("No harness profile matched %r (%s)", spec or identifier, type(model).__name__)
    return _EMPTY
