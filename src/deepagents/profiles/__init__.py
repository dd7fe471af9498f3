"""What is known about kinds of models and how to suit them."""

from deepagents.profiles.harness import (
    GeneralPurposeSubagentProfile,
    HarnessProfile,
    register_harness_profile,
)

__all__ = ["GeneralPurposeSubagentProfile", "HarnessProfile", "register_harness_profile"]
