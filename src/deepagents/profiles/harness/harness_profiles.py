"""The longer import path of harness profiles."""

from __future__ import annotations

from deepagents.profiles.harness.config import HarnessProfileConfig
from deepagents.profiles.harness.profile import GeneralPurposeSubagentProfile, HarnessProfile
from deepagents.profiles.harness.registry import register_harness_profile

__all__ = [
    "GeneralPurposeSubagentProfile",
    "HarnessProfile",
    "HarnessProfileConfig",
    "register_harness_profile",
]
