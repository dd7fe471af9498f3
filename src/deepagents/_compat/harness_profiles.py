"""Other ways to the registry of harness profiles, which other packages know."""

from __future__ import annotations

from typing import Final

from deepagents.profiles.harness.profile import HarnessProfile
from deepagents.profiles.harness.registry import harness_registry

HARNESS_PROFILES: Final[dict[str, HarnessProfile]] = harness_registry().profiles
"""What is registered, as it changes."""
