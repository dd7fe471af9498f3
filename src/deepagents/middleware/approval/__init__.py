"""Ask a person before a tool call runs."""

from deepagents.middleware.approval.remembered import (
    ApprovalConfig,
    RememberedDecision,
    RememberedDecisions,
)
from deepagents.middleware.approval.state import HELD

__all__ = ["HELD", "ApprovalConfig", "RememberedDecision", "RememberedDecisions"]
