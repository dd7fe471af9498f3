"""The harness profiles that come with the library; data only."""

from __future__ import annotations

from deepagents.profiles.harness.builtin import claude, codex
from deepagents.profiles.harness.profile import HarnessProfile


def load_built_in() -> dict[str, HarnessProfile]:
    """Return the profiles by their keys."""
    return {
        **dict.fromkeys(claude.WITH_HABITS, claude.HABITS),
        claude.OPUS: claude.HABITS_OF_OPUS,
        **dict.fromkeys(codex.MODELS, codex.CODEX),
    }
