"""Check that a person was asked about a call, as the approval of the agent noted it in its state."""

from __future__ import annotations

from typing import Any, Final

from deepagents.errors import ToolFailure

ASKED: Final = "file_calls_asked"
"""State key: the ids of the calls of the last turn that a person was asked about."""


def check_asked(question: str, runtime: Any) -> None:
    """Check that a person was asked, where there is a question about a call.

    Raises:
        ToolFailure: `permission_denied`, where none was, as in an agent that never asks.
    """
    asked = (runtime.state.get(ASKED) if runtime else None) or ()
    if question and not (asked and runtime.tool_call_id in asked):
        raise ToolFailure("permission_denied", f"{question}. No person can be asked about it here.")
