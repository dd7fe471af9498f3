"""Ask a person before a tool call runs."""

from deepagents.middleware.approval.remembered import (
    ApprovalConfig,
    RememberedDecision,
    RememberedDecisions,
)

__all__ = ["ApprovalConfig", "RememberedDecision", "RememberedDecisions"]
