"""Another way to the registry of provider profiles, which other packages know."""

from __future__ import annotations

from typing import Final

from deepagents.models.provider_profiles import ProviderProfile, provider_registry

PROVIDER_PROFILES: Final[dict[str, ProviderProfile]] = provider_registry().profiles
"""What is registered, as it changes."""
