"""Define typed events of runs: the one vocabulary that command line, servers and traces share.

An event's `agent` is `None` for the main agent, else the label of a subagent, unique within a thread;
`agent_name` is the subagent's own name, and `agent_call_id` the call of `task` that it works on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias, get_args

from deepagents._values import Frozen, field, frozenclass, valueclass
from deepagents.limits import Tokens

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Status = Literal["success", "error"]

VERSION: Final = 1
"""The version of the plain form: it grows when something changes its meaning, not when something is added."""


_WHOSE: Final = frozenset({"agent_name", "agent_call_id"})


@valueclass
class _Event(Frozen):
    type: ClassVar[str]

    def as_dict(self) -> dict[str, Any]:
        """Return the event as plain values; what says whose it is stands only with a subagent's."""
        plain = {"type": self.type, "version": VERSION, **asdict(self)}
        return {key: value for key, value in plain.items() if value is not None or key not in _WHOSE}


@valueclass
class _OfAgent(_Event):
    agent: str | None = field(default=None, kw_only=True)
    agent_name: str | None = field(default=None, kw_only=True)
    agent_call_id: str | None = field(default=None, kw_only=True)


@valueclass
class _OfCall(_OfAgent):
    call_id: str


@valueclass
class _OfLimit(_OfAgent):
    kind: str
    limit: float
    spent: float


@valueclass
class RunStarted(_Event):
    """A run begins, or goes on where an earlier one stopped."""

    type: ClassVar[str] = "run_started"
    thread: str
    task: str | None = None
    model: str | None = None
    directory: str | None = None
    resumed: bool = False


@valueclass
class Token(_OfAgent):
    """A piece of text as the model writes it."""

    type: ClassVar[str] = "token"
    text: str


@valueclass
class Reasoning(_OfAgent):
    """A piece of what the model thinks before it answers."""

    type: ClassVar[str] = "reasoning"
    text: str


@valueclass
class ModelFailed(_OfAgent):
    """A call of a model failed: its text so far does not count, and it may be asked again."""

    type: ClassVar[str] = "model_failed"
    error: str


@valueclass
class ModelRetry(_OfAgent):
    """A model that failed is asked again in so many seconds; `retry` counts from 1 to `retries`."""

    type: ClassVar[str] = "model_retry"
    reason: str
    seconds: float
    retry: int
    retries: int


@valueclass
class AnswerBroken(_OfAgent):
    """An answer of a model broke off, and none of its calls is run.

    `kind` is "length" at a limit of tokens, "filtered" by the provider or refused, "no_end" in a stream that
    stopped before its end, and "malformed" where the arguments of a call are not whole JSON.
    """

    type: ClassVar[str] = "answer_broken"
    kind: str


@valueclass
class ToolCalled(_OfAgent):
    """The model asks for a tool."""

    type: ClassVar[str] = "tool_called"
    name: str
    args: Mapping[str, Any]
    call_id: str


@valueclass
class CommandOutput(_OfCall):
    """A piece of what a command prints while it runs; of a long output not all pieces come.

    The pieces of a command in the background have its `command_id`, and come after its call has its result.
    """

    type: ClassVar[str] = "command_output"
    text: str
    stream: Literal["stdout", "stderr"] = "stdout"
    command_id: str | None = None


@valueclass
class ToolProgress(_OfCall):
    """A tool of an MCP server reports how far it is, at most ten times a second."""

    type: ClassVar[str] = "tool_progress"
    name: str
    progress: float
    total: float | None = None
    message: str | None = None


@valueclass
class HostRefused(_OfCall):
    """A command was kept from a host; `text` says from which, and by which rule."""

    type: ClassVar[str] = "host_refused"
    text: str
    command_id: str | None = None


@valueclass
class CommandEnded(_OfCall):
    """A command in the background has ended before its run."""

    type: ClassVar[str] = "command_ended"
    command_id: str
    command: str
    exit_code: int


@valueclass
class ToolFinished(_OfCall):
    """A tool call has its result; `code` is one of `errors.ErrorCode` where it failed.

    `error` is the type of the exception that the tool raised, if it did. A command that ended with another
    `exit_code` than 0 has failed too, without such a code. `saved_to` is the file that holds a result which
    was too large for the model; `text` is then what the model reads in its place.
    """

    type: ClassVar[str] = "tool_finished"
    name: str
    status: Status
    text: str
    code: str | None = None
    exit_code: int | None = None
    error: str | None = None
    saved_to: str | None = None


@frozenclass
class Todo:
    """One step of a plan."""

    content: str
    status: str


@valueclass
class PlanChanged(_OfAgent):
    """An agent wrote its plan anew."""

    type: ClassVar[str] = "plan_changed"
    todos: tuple[Todo, ...]


@valueclass
class SubagentStarted(_OfAgent):
    """An agent hands a task to a subagent, whose own events come under `label`."""

    type: ClassVar[str] = "subagent_started"
    name: str
    task: str
    call_id: str
    label: str = ""


@valueclass
class SubagentFinished(_OfAgent):
    """A subagent has reported back."""

    type: ClassVar[str] = "subagent_finished"
    name: str
    call_id: str
    status: Status
    text: str
    label: str = ""


@valueclass
class TaskChanged(_OfAgent):
    """A task that runs elsewhere, in parallel with the agent, has a new status."""

    type: ClassVar[str] = "task_changed"
    task_id: str
    name: str
    status: str


@frozenclass
class ApprovalRequest:
    """One tool call that waits for a person; requests of one interrupt are answered together, in order."""

    interrupt_id: str
    name: str
    args: Mapping[str, Any]
    description: str = ""
    allowed: tuple[str, ...] = ("approve", "edit", "reject", "respond")
    tool_call_id: str | None = None


@valueclass
class ApprovalNeeded(_OfAgent):
    """The run has stopped until a person has decided about these calls."""

    type: ClassVar[str] = "approval_needed"
    requests: tuple[ApprovalRequest, ...]


@valueclass
class QuestionAsked(_OfAgent):
    """The run has stopped until somebody answers what a tool or a graph asked with `interrupt`."""

    type: ClassVar[str] = "question_asked"
    interrupt_id: str
    question: Any


@valueclass
class ApprovalGiven(_Event):
    """A person, or a standing order, has decided about one call."""

    type: ClassVar[str] = "approval_given"
    interrupt_id: str
    name: str
    decision: str
    message: str | None = None
    tool_call_id: str | None = None


@valueclass
class ContextCompacted(_OfAgent):
    """Older messages of an agent were replaced by a summary in what its model reads."""

    type: ClassVar[str] = "context_compacted"


@valueclass
class CacheBroken(_OfAgent):
    """A request does not begin with all of the one before, so a provider's cache serves less of it.

    `index` counts the tools, the blocks of the system prompt, or the messages. `reason` is "compaction",
    "clipping", "memory", "skills" or "tool_search", and `None` for what the library did not do. About
    `lost_tokens` of the request before are no longer of use.
    """

    type: ClassVar[str] = "cache_broken"
    region: Literal["tools", "system", "messages"]
    index: int
    reason: str | None
    lost_tokens: int


@valueclass
class LimitNear(_OfLimit):
    """A limit is nearly used up, and the model was warned."""

    type: ClassVar[str] = "limit_near"


@valueclass
class LimitReached(_OfLimit):
    """A limit is used up, and the agent stops with what it has."""

    type: ClassVar[str] = "limit_reached"


@valueclass
class Usage(_OfAgent):
    """What one model call used; input tokens hold the cached ones, output tokens the reasoning.

    `model` is the name that came with the answer, where one came.
    """

    type: ClassVar[str] = "usage"
    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    model: str | None = None

    @property
    def tokens(self) -> Tokens:
        """The counts that cost money."""
        return Tokens(self.input_tokens, self.output_tokens, self.cached_tokens, self.cache_write_tokens)


@valueclass
class Custom(_OfAgent):
    """What a tool or middleware wrote to the stream itself."""

    type: ClassVar[str] = "custom"
    data: Any


@valueclass
class FinalAnswer(_Event):
    """The main agent has answered; a structured answer stands next to its text, as plain data.

    An object of a `response_format`, such as a Pydantic model, is a dict here, for events are kept and sent.
    Make it again with `Model.model_validate(event.structured)`; `invoke` has it as it is.
    `broken` is the `kind` of an `AnswerBroken`, where this answer is not whole.
    """

    type: ClassVar[str] = "final_answer"
    text: str
    structured: Any = None
    broken: str | None = None


@valueclass
class RunStopped(_Event):
    """The run was stopped from outside and can be continued."""

    type: ClassVar[str] = "run_stopped"
    thread: str


@valueclass
class RunFailed(_Event):
    """The run ended with an error that no tool result can tell of."""

    type: ClassVar[str] = "run_failed"
    error: str
    text: str


_OfRuns: TypeAlias = RunStarted | RunStopped | RunFailed | FinalAnswer
_OfModels: TypeAlias = Token | Reasoning | ModelFailed | ModelRetry | AnswerBroken | Usage
_OfContexts: TypeAlias = ContextCompacted | CacheBroken | LimitNear | LimitReached
_OfTools: TypeAlias = ToolCalled | ToolProgress | ToolFinished | PlanChanged | Custom
_OfCommands: TypeAlias = CommandOutput | CommandEnded | HostRefused
_OfOthers: TypeAlias = SubagentStarted | SubagentFinished | TaskChanged
_OfPeople: TypeAlias = ApprovalNeeded | QuestionAsked | ApprovalGiven
Event: TypeAlias = _OfRuns | _OfModels | _OfContexts | _OfTools | _OfCommands | _OfOthers | _OfPeople
"""Any event of a run."""


def from_dict(plain: Mapping[str, Any]) -> Event:
    """Read an event from its plain form, as `as_dict` or JSON gave it; unknown fields are left out.

    Raises:
        ValueError: when the kind or the version is not known, or fields are missing or wrong.
    """
    rest = {key: value for key, value in plain.items() if key not in {"type", "version"}}
    kind, version = plain.get("type"), plain.get("version", VERSION)
    if not isinstance(version, int) or version > VERSION:
        raise ValueError(f"an event of version {version!r}; this library reads up to {VERSION}")
    known = {each.type: each for each in get_args(Event)}
    if not isinstance(kind, str) or kind not in known:
        raise ValueError(f"no event of type {kind!r}; there are {', '.join(known)}")
    return _reader(known[kind]).validate_python(rest)


# An adapter compiles its schema, which takes longer than reading an event.
@cache
def _reader(kind: type[Event]) -> TypeAdapter[Event]:
    # Loaded here: a program that shows events is to start at once, and reads none.
    return import_module("pydantic").TypeAdapter(kind)
