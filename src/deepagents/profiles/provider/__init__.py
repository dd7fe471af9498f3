"""Say what the models of a provider are made with."""

from deepagents.models.provider_profiles import (
    ProviderProfile,
    apply_provider_profile,
    get_provider_profile,
    register_provider_profile,
)

__all__ = [
    "ProviderProfile",
    "apply_provider_profile",
    "get_provider_profile",
    "register_provider_profile",
]
