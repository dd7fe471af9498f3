"""Delegate to subagents."""

from deepagents._deprecation import legacy as older_names
from deepagents.middleware.subagents.middleware import SUBAGENT_PROMPT as TASK_SYSTEM_PROMPT
from deepagents.middleware.subagents.middleware import SubAgentMiddleware, create_sub_agent
from deepagents.middleware.subagents.spec import (
    DEFAULT_GENERAL_PURPOSE_DESCRIPTION,
    DEFAULT_SUBAGENT_PROMPT,
    GENERAL_PURPOSE_SUBAGENT,
    CompiledSubAgent,
    SubAgent,
)
from deepagents.middleware.subagents.task import (
    SUBAGENT_RESPONSE_FORMAT_CONFIG_KEY,
    TASK_TOOL_DESCRIPTION,
    TaskToolSchema,
)

__all__ = [
    "DEFAULT_GENERAL_PURPOSE_DESCRIPTION",
    "DEFAULT_SUBAGENT_PROMPT",
    "GENERAL_PURPOSE_SUBAGENT",
    "SUBAGENT_RESPONSE_FORMAT_CONFIG_KEY",
    "TASK_SYSTEM_PROMPT",
    "TASK_TOOL_DESCRIPTION",
    "CompiledSubAgent",
    "SubAgent",
    "SubAgentMiddleware",
    "TaskToolSchema",
    "create_sub_agent",
]

__getattr__ = older_names(__name__)
