"""Ask a person before a tool call runs.

`__all__` has what users import; the other names are for features that work with approval.
"""

from deepagents.decisions import RememberedDecision
from deepagents.middleware.approval.files import LINKS as LINKS
from deepagents.middleware.approval.files import find_links as find_links
from deepagents.middleware.approval.files import find_named_paths as find_named_paths
from deepagents.middleware.approval.files import links_of as links_of
from deepagents.middleware.approval.files import was_asked as was_asked
from deepagents.middleware.approval.memory import REMEMBERED as REMEMBERED
from deepagents.middleware.approval.memory import RememberedDecisions
from deepagents.middleware.approval.memory import remembering_for as remembering_for
from deepagents.middleware.approval.middleware import HELD as HELD
from deepagents.middleware.approval.middleware import ApprovalMiddleware as ApprovalMiddleware
from deepagents.middleware.approval.middleware import wrap_langchain as wrap_langchain
from deepagents.middleware.approval.questions import DECIDED as DECIDED
from deepagents.middleware.approval.questions import ApprovalConfig
from deepagents.middleware.approval.questions import InterruptOn as InterruptOn
from deepagents.middleware.approval.questions import find_executed_call as find_executed_call
from deepagents.middleware.approval.questions import is_pattern as is_pattern
from deepagents.middleware.approval.questions import validate_interrupt_on as validate_interrupt_on

__all__ = ["ApprovalConfig", "RememberedDecision", "RememberedDecisions"]
