"""What the model reads about the tools for tasks elsewhere, and what each takes."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import BaseModel, Field

ASYNC_TASK_TOOL_DESCRIPTION: Final = """Start a task on an agent that works in the background. Returns a \
task id at once, not the result.

Agents:
{available_agents}

It starts blank: put all it needs in description. Do not wait for it or poll it: go on, or end your turn; \
its result, failure or question arrives by itself as a notification. The id is internal: do not show it to \
the user. For new instructions use update_async_task. A task that is `waiting` belongs to the user."""
ASYNC_TASK_SYSTEM_PROMPT: Final = (
    "Hand long work that you need not wait for to an agent in the background with start_async_task, then go "
    "on. How it ends is announced to you; earlier statuses in this conversation may be stale."
)
CHECK: Final = (
    "Ask how a task stands now, and get its result if it is finished. Only when the user asks, or you cannot "
    "go on without: statuses seen earlier are stale, and ends are announced by themselves."
)
UPDATE: Final = (
    "Give new instructions to a task; its agent keeps what it has seen. By default this interrupts what it "
    "is doing. {queueing}"
)
CANCEL: Final = "Stop a task that is no longer needed."
LIST: Final = (
    "List the tasks of this conversation with their present status. Use it to find ids again; statuses seen "
    "earlier are stale."
)
_ID: Final = "The id, exactly as start_async_task returned it."

StatusFilter = Literal[
    "all", "pending", "running", "waiting", "success", "error", "timeout", "cancelled", "interrupted"
]


class StartAsyncTaskSchema(BaseModel):
    """What `start_async_task` takes."""

    description: str = Field(description="The task, with all the context it needs.")
    subagent_type: str = Field(description="Name of the agent.")


class CheckAsyncTaskSchema(BaseModel):
    """What `check_async_task` takes."""

    task_id: str = Field(description=_ID)


class UpdateAsyncTaskSchema(BaseModel):
    """What `update_async_task` takes."""

    task_id: str = Field(description=_ID)
    message: str = Field(description="The new instructions.")


class CancelAsyncTaskSchema(BaseModel):
    """What `cancel_async_task` takes."""

    task_id: str = Field(description=_ID)


class ListAsyncTasksSchema(BaseModel):
    """What `list_async_tasks` takes."""

    status_filter: StatusFilter | None = Field(default=None, description="Only tasks last known to be so.")
