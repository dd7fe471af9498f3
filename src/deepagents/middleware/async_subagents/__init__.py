"""Give tasks to agents that work in the background, on Agent Protocol servers or in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepagents._deprecation import legacy
from deepagents._lazy import lazy
from deepagents.middleware.async_subagents.spec import AsyncSubAgent, AsyncSubAgentState, AsyncTask, TaskEvent

if TYPE_CHECKING:
    from deepagents.middleware.async_subagents.middleware import AsyncSubAgentMiddleware
    from deepagents.middleware.async_subagents.tools import (
        ASYNC_TASK_TOOL_DESCRIPTION,
        CancelAsyncTaskSchema,
        CheckAsyncTaskSchema,
        ListAsyncTasksSchema,
        StartAsyncTaskSchema,
        UpdateAsyncTaskSchema,
    )
    from deepagents.middleware.async_subagents.tools import TOOLS as TOOLS
    from deepagents.middleware.async_subagents.tools import WAIT as WAIT

__all__ = [
    "ASYNC_TASK_TOOL_DESCRIPTION",
    "AsyncSubAgent",
    "AsyncSubAgentMiddleware",
    "AsyncSubAgentState",
    "AsyncTask",
    "CancelAsyncTaskSchema",
    "CheckAsyncTaskSchema",
    "ListAsyncTasksSchema",
    "StartAsyncTaskSchema",
    "TaskEvent",
    "UpdateAsyncTaskSchema",
]

# The specs are read for every agent; what else is here is for those that have such subagents.
_MODULES = {
    ".middleware": "AsyncSubAgentMiddleware",
    ".tools": "ASYNC_TASK_TOOL_DESCRIPTION CancelAsyncTaskSchema CheckAsyncTaskSchema "
    "ListAsyncTasksSchema StartAsyncTaskSchema TOOLS UpdateAsyncTaskSchema WAIT",
}

__getattr__ = legacy(__name__, lazy(__name__, _MODULES))
