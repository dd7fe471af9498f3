"""Give tasks to agents that work in the background, on Agent Protocol servers or in this process."""

from deepagents._deprecation import legacy
from deepagents.middleware.async_subagents.middleware import AsyncSubAgentMiddleware
from deepagents.middleware.async_subagents.spec import AsyncSubAgent, AsyncSubAgentState, AsyncTask, TaskEvent
from deepagents.middleware.async_subagents.tools import (
    ASYNC_TASK_TOOL_DESCRIPTION,
    CancelAsyncTaskSchema,
    CheckAsyncTaskSchema,
    ListAsyncTasksSchema,
    StartAsyncTaskSchema,
    UpdateAsyncTaskSchema,
)

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

__getattr__ = legacy(__name__)
