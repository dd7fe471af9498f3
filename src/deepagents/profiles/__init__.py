"""Profiles: how agents and models are made for a provider or a model."""

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
