"""Typed run events: the one vocabulary that command line, servers and traces share.

An event's `agent` is `None` for the main agent, else the label of a subagent, unique within a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, TypeAlias

Status = Literal["success", "error"]


@dataclass(frozen=True, slots=True)
class _Event:
    type: ClassVar[str]

    def as_dict(self) -> dict[str, Any]:
        """Return the event as plain values, its kind under `type`."""
        return {"type": self.type, **asdict(self)}


@dataclass(frozen=True, slots=True)
class RunStarted(_Event):
    """A run begins, or goes on where an earlier one stopped."""

    type: ClassVar[str] = "run_started"
    thread: str
    task: str | None = None
    model: str | None = None
    directory: str | None = None
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class Token(_Event):
    """A piece of text as the model writes it."""

    type: ClassVar[str] = "token"
    text: str
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class ToolCalled(_Event):
    """The model asks for a tool."""

    type: ClassVar[str] = "tool_called"
    name: str
    args: Mapping[str, Any]
    call_id: str
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class ToolFinished(_Event):
    """A tool call has its result."""

    type: ClassVar[str] = "tool_finished"
    call_id: str
    name: str
    status: Status
    text: str
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class Todo:
    """One step of a plan."""

    content: str
    status: str


@dataclass(frozen=True, slots=True)
class PlanChanged(_Event):
    """An agent wrote its plan anew."""

    type: ClassVar[str] = "plan_changed"
    todos: tuple[Todo, ...]
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class SubagentStarted(_Event):
    """An agent hands a task to a subagent."""

    type: ClassVar[str] = "subagent_started"
    name: str
    task: str
    call_id: str
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class SubagentFinished(_Event):
    """A subagent has reported back."""

    type: ClassVar[str] = "subagent_finished"
    name: str
    call_id: str
    status: Status
    text: str
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """One tool call that waits for a person; requests of one interrupt are answered together, in order."""

    interrupt_id: str
    name: str
    args: Mapping[str, Any]
    description: str = ""
    allowed: tuple[str, ...] = ("approve", "edit", "reject", "respond")


@dataclass(frozen=True, slots=True)
class ApprovalNeeded(_Event):
    """The run has stopped until a person has decided about these calls."""

    type: ClassVar[str] = "approval_needed"
    requests: tuple[ApprovalRequest, ...]
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class ApprovalGiven(_Event):
    """A person, or a standing order, has decided about one call."""

    type: ClassVar[str] = "approval_given"
    interrupt_id: str
    name: str
    decision: str
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Usage(_Event):
    """What one model call used."""

    type: ClassVar[str] = "usage"
    input_tokens: int
    output_tokens: int
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class FinalAnswer(_Event):
    """The main agent has answered and calls no further tool."""

    type: ClassVar[str] = "final_answer"
    text: str


@dataclass(frozen=True, slots=True)
class RunStopped(_Event):
    """The run was stopped from outside and can be continued."""

    type: ClassVar[str] = "run_stopped"
    thread: str


@dataclass(frozen=True, slots=True)
class RunFailed(_Event):
    """The run ended with an error that no tool result can tell of."""

    type: ClassVar[str] = "run_failed"
    error: str
    text: str


Event: TypeAlias = (
    RunStarted
    | Token
    | ToolCalled
    | ToolFinished
    | PlanChanged
    | SubagentStarted
    | SubagentFinished
    | ApprovalNeeded
    | ApprovalGiven
    | Usage
    | FinalAnswer
    | RunStopped
    | RunFailed
)
