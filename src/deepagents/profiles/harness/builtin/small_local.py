"""The profile for the small model that runs in this process: few tools, few words, no commands."""

from __future__ import annotations

from deepagents.profiles.harness.profile import GeneralPurposeSubagentProfile, HarnessProfile

SMALL_LOCAL = HarnessProfile(
    base_system_prompt="You change files with tools. Do only what the task asks.",
    excluded_tools=frozenset({"execute", "task", "write_todos", "read_todos", "delete"}),
    excluded_middleware=frozenset({"TodoListMiddleware"}),
    general_purpose_subagent=GeneralPurposeSubagentProfile(enabled=False),
)
