"""Ask a person before a tool call runs."""

from deepagents.middleware.approval.config import (
    ApprovalConfig,
    InterruptOn,
    validate_interrupt_on,
)
from deepagents.middleware.approval.memory import RememberedDecision, RememberedDecisions
from deepagents.middleware.approval.middleware import (
    ApprovalMiddleware,
    PassThroughApproval,
    wrap_langchain,
)
from deepagents.middleware.approval.path_rules import (
    ASKED,
    LINKS,
    find_links,
    link_of,
    named_path,
    was_asked,
)
from deepagents.middleware.approval.questions import executed_call
from deepagents.middleware.approval.state import HELD

__all__ = [
    "ASKED",
    "HELD",
    "LINKS",
    "ApprovalConfig",
    "ApprovalMiddleware",
    "InterruptOn",
    "PassThroughApproval",
    "RememberedDecision",
    "RememberedDecisions",
    "executed_call",
    "find_links",
    "link_of",
    "named_path",
    "validate_interrupt_on",
    "was_asked",
    "wrap_langchain",
]
