"""Shape agents and models for a provider or a model, by profiles."""

from deepagents.profiles.harness import (
    GeneralPurposeSubagentProfile,
    HarnessProfile,
    HarnessProfileConfig,
    register_harness_profile,
)
from deepagents.profiles.provider import ProviderProfile, register_provider_profile

__all__ = [
    "GeneralPurposeSubagentProfile",
    "HarnessProfile",
    "HarnessProfileConfig",
    "ProviderProfile",
    "register_harness_profile",
    "register_provider_profile",
]
