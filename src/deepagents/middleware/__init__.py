"""Offer the middleware that a deep agent is made of; each also works with LangChain's `create_agent`.

Names load on first use: an agent has few of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepagents._lazy import lazy
from deepagents.permissions import FilesystemPermission

if TYPE_CHECKING:
    from deepagents.middleware._history import is_from_person
    from deepagents.middleware.async_subagents import (
        AsyncSubAgent,
        AsyncSubAgentMiddleware,
        AsyncSubAgentState,
        AsyncTask,
        TaskEvent,
    )
    from deepagents.middleware.async_subagents.notifier import (
        ParentNotifierMiddleware as ParentNotifierMiddleware,
    )
    from deepagents.middleware.code_mode import RUN_CODE as RUN_CODE
    from deepagents.middleware.code_mode import CodeModeMiddleware
    from deepagents.middleware.edit_checks import EditCheck, EditCheckMiddleware
    from deepagents.middleware.filesystem import FilesystemMiddleware
    from deepagents.middleware.finish_check import FinishCheckMiddleware
    from deepagents.middleware.mcp import MCPMiddleware as MCPMiddleware
    from deepagents.middleware.memory import MemoryMiddleware
    from deepagents.middleware.rubric import (
        GRADER_SYSTEM_PROMPT,
        RUBRIC_GRADER_MESSAGE_SOURCE,
        CriterionEval,
        CriterionFail,
        CriterionPass,
        GraderResponse,
        GraderVerdict,
        RubricEvaluation,
        RubricMiddleware,
        RubricResult,
        RubricState,
    )
    from deepagents.middleware.skills import SkillMetadata, SkillsMiddleware, SkillsState, SkillToolResolver
    from deepagents.middleware.skills.load import source_path as source_path
    from deepagents.middleware.subagents import CompiledSubAgent, SubAgent, SubAgentMiddleware
    from deepagents.middleware.summarization import (
        DEEPAGENTS_DEFAULT_SUMMARY_PROMPT,
        SummarizationMiddleware,
        SummarizationToolMiddleware,
        create_summarization_tool_middleware,
    )
    from deepagents.middleware.todos import TodoListMiddleware
    from deepagents.middleware.tool_search import ToolSearchMiddleware
    from deepagents.middleware.unsupported_content import UnsupportedContentMiddleware

__all__ = [
    "DEEPAGENTS_DEFAULT_SUMMARY_PROMPT",
    "GRADER_SYSTEM_PROMPT",
    "RUBRIC_GRADER_MESSAGE_SOURCE",
    "AsyncSubAgent",
    "AsyncSubAgentMiddleware",
    "AsyncSubAgentState",
    "AsyncTask",
    "CodeModeMiddleware",
    "CompiledSubAgent",
    "CriterionEval",
    "CriterionFail",
    "CriterionPass",
    "EditCheck",
    "EditCheckMiddleware",
    "FilesystemMiddleware",
    "FilesystemPermission",
    "FinishCheckMiddleware",
    "GraderResponse",
    "GraderVerdict",
    "MemoryMiddleware",
    "RubricEvaluation",
    "RubricMiddleware",
    "RubricResult",
    "RubricState",
    "SkillMetadata",
    "SkillToolResolver",
    "SkillsMiddleware",
    "SkillsState",
    "SubAgent",
    "SubAgentMiddleware",
    "SummarizationMiddleware",
    "SummarizationToolMiddleware",
    "TaskEvent",
    "TodoListMiddleware",
    "ToolSearchMiddleware",
    "UnsupportedContentMiddleware",
    "create_summarization_tool_middleware",
    "is_from_person",
]

__getattr__ = lazy(
    __name__,
    {
        "._history": "is_from_person",
        ".async_subagents": "AsyncSubAgent AsyncSubAgentMiddleware AsyncSubAgentState AsyncTask TaskEvent",
        ".async_subagents.notifier": "ParentNotifierMiddleware",
        ".code_mode": "CodeModeMiddleware RUN_CODE",
        ".edit_checks": "EditCheck EditCheckMiddleware",
        ".filesystem": "FilesystemMiddleware",
        ".finish_check": "FinishCheckMiddleware",
        ".mcp": "MCPMiddleware",
        ".memory": "MemoryMiddleware",
        ".rubric": "GRADER_SYSTEM_PROMPT RUBRIC_GRADER_MESSAGE_SOURCE CriterionEval CriterionFail "
        "CriterionPass GraderResponse GraderVerdict RubricEvaluation RubricMiddleware RubricResult "
        "RubricState",
        ".skills": "SkillMetadata SkillsMiddleware SkillsState SkillToolResolver",
        ".skills.load": "source_path",
        ".subagents": "CompiledSubAgent SubAgent SubAgentMiddleware",
        ".summarization": "DEEPAGENTS_DEFAULT_SUMMARY_PROMPT SummarizationMiddleware "
        "SummarizationToolMiddleware create_summarization_tool_middleware",
        ".todos": "TodoListMiddleware",
        ".tool_search": "ToolSearchMiddleware",
        ".unsupported_content": "UnsupportedContentMiddleware",
    },
)
