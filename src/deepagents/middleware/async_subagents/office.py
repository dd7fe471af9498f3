"""What the tools for tasks elsewhere work with, and how their failures begin."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deepagents.errors import ToolFailure
from deepagents.middleware.async_subagents.client import MOST_SECONDS, Clients, Deadline, Remote
from deepagents.middleware.async_subagents.pace import Pace
from deepagents.middleware.async_subagents.spec import RemoteAgent
from deepagents.middleware.async_subagents.state import TASKS, AsyncTask
from deepagents.tools._tool import Runtime


@dataclass(frozen=True, slots=True)
class Office:
    """What the tools work with during one call."""

    agents: Mapping[str, RemoteAgent]
    clients: Clients
    pace: Pace
    runtime: Runtime
    seconds: float = MOST_SECONDS
    shown: Callable[[Mapping[str, Any]], Sequence[Any]] | None = None

    @property
    def tasks(self) -> Mapping[str, AsyncTask]:
        """The tasks of this conversation."""
        return self.runtime.state.get(TASKS) or {}

    def task(self, given: str) -> AsyncTask:
        """Find a task by its id.

        Raises:
            ToolFailure: when there is none.
        """
        task = self.tasks.get(given.strip())
        if task is None:
            raise ToolFailure(
                "invalid_argument", f"No tracked task found with id {given!r}. list_async_tasks lists them."
            )
        return task

    def deadline(self) -> Deadline:
        """Begin the time that one call of a tool has."""
        return Deadline(self.seconds)

    def remote(self, name: str, deadline: Deadline | None = None) -> Remote:
        """Open an agent by its name, for as long as a call has, or for what is left of that.

        Raises:
            ToolFailure: for a name that is not there.
        """
        agent = self.agents.get(name)
        if agent is None:
            names = ", ".join(f"`{each}`" for each in self.agents)
            raise ToolFailure(
                "unknown_subagent", f"Unknown async subagent type {name!r}; choose one of {names}"
            )
        return Remote(agent, self.clients, deadline or self.deadline())


def failed(saying: str, failure: ToolFailure) -> ToolFailure:
    """Say first what was tried."""
    return ToolFailure(failure.code, f"{saying}: {failure.text}")
