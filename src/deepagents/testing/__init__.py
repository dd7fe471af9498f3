"""Test agents: scripted models, checks of requests, and the suite that backends must pass."""

from deepagents.testing.histories import history_faults
from deepagents.testing.prefixes import (
    PrefixBreak,
    SharedPrefix,
    assert_prefix_kept,
    prefix_breaks,
    shared_prefix,
)
from deepagents.testing.scripted import (
    Asked,
    ScriptedModel,
    WindowedModel,
    call,
    calls,
    is_summary_request,
)

__all__ = [
    "Asked",
    "PrefixBreak",
    "ScriptedModel",
    "SharedPrefix",
    "WindowedModel",
    "assert_prefix_kept",
    "call",
    "calls",
    "history_faults",
    "is_summary_request",
    "prefix_breaks",
    "shared_prefix",
]
