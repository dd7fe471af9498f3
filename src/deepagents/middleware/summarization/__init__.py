"""Compact a context: old messages go to an archive, and a summary replaces them in requests."""

from deepagents._deprecation import legacy
from deepagents.middleware.summarization.context import (
    SUMMARIZATION_EVENT_KEY,
    SUMMARIZATION_SESSION_ID_KEY,
    SummarizationEvent,
    SummarizationState,
)
from deepagents.middleware.summarization.middleware import (
    SummarizationMiddleware,
    compute_summarization_defaults,
    create_summarization_middleware,
)
from deepagents.middleware.summarization.policy import (
    SummarizationDefaults,
    TriggerClause,
    TruncateArgsSettings,
)
from deepagents.middleware.summarization.summarizer import DEEPAGENTS_DEFAULT_SUMMARY_PROMPT
from deepagents.middleware.summarization.tool import (
    CompactConversationSchema,
    SummarizationToolMiddleware,
    create_summarization_tool_middleware,
)

__all__ = [
    "DEEPAGENTS_DEFAULT_SUMMARY_PROMPT",
    "SUMMARIZATION_EVENT_KEY",
    "SUMMARIZATION_SESSION_ID_KEY",
    "CompactConversationSchema",
    "SummarizationDefaults",
    "SummarizationEvent",
    "SummarizationMiddleware",
    "SummarizationState",
    "SummarizationToolMiddleware",
    "TriggerClause",
    "TruncateArgsSettings",
    "compute_summarization_defaults",
    "create_summarization_middleware",
    "create_summarization_tool_middleware",
]

__getattr__ = legacy(__name__)
