"""Harness profiles: how an agent is shaped for a kind of model."""

from deepagents.profiles.harness.config import HarnessProfileConfig
from deepagents.profiles.harness.profile import GeneralPurposeSubagentProfile, HarnessProfile
from deepagents.profiles.harness.registry import register_harness_profile

__all__ = [
    "GeneralPurposeSubagentProfile",
    "HarnessProfile",
    "HarnessProfileConfig",
    "register_harness_profile",
]
