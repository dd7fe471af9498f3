"""Run a task: choose a subagent, run it on a state of its own, return its report and what it changed.

A `Worker` is a subagent as the tool sees it: its name, its description, and its runnable, made on first use.
"""

from __future__ import annotations

import json
import logging
from asyncio import CancelledError, current_task
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from threading import Lock
from typing import Any, Final, Literal, TypeAlias, cast

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, convert_to_messages
from langchain_core.runnables import Runnable
from pydantic import BaseModel, Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError, to_jsonable_python

from deepagents._async import IOCall, in_thread
from deepagents._state.channels import (
    InheritedChannel,
    InheritedMessagesChannel,
    LatestValue,
    ParentState,
    inherit_from,
    message_marks,
    placeholder_for,
)
from deepagents._state.runtime import channels_of, has_checkpointer, running_channels
from deepagents._state.schema import SHARED, Sharing
from deepagents._text import describe_exception
from deepagents._values import field, recordclass, valueclass
from deepagents.errors import ConfigError, ToolFailure
from deepagents.middleware._requests import TASK_NAME
from deepagents.middleware.approval import REMEMBERED, remembering_for
from deepagents.middleware.subagents.fork import FORKED, REFUSAL, make_forked_history
from deepagents.middleware.subagents.merge import diff_state, same
from deepagents.models.endings import Break, break_of, describe_break
from deepagents.tools._tool import Runtime, ToolOutput, ToolSpec

SUBAGENT_RESPONSE_FORMAT_CONFIG_KEY: Final = "__deepagents_subagent_response_format"
"""The key of a call's configuration for the format in which a subagent answers that call."""

_FILES: Final = "files"

TASK_TOOL_DESCRIPTION = """Delegate a task to a subagent, which works on its own and returns one report.

Agents:
{available_agents}

It starts blank: put all it needs, and what it should return, in description. The user does not see its \
report, so pass on what matters. Start independent tasks together in one turn."""

State: TypeAlias = Mapping[str, Any]
Mode: TypeAlias = Literal["isolated", "fork"]
Made: TypeAlias = Runnable[Any, Any]

_MAX_FORMATS: Final = 8
_log = logging.getLogger(__name__)


class TaskToolSchema(BaseModel):
    """The arguments of `task`; any other is refused by name, because it would be lost."""

    description: str = Field(description="The task, with all the context it needs.")
    subagent_type: str = Field(description="Name of the agent.")

    @model_validator(mode="before")
    @classmethod
    def _refuse_extras(cls, given: Any) -> Any:
        arguments = cast("dict[str, Any]", given) if isinstance(given, dict) else dict[str, Any]()
        extra = sorted(arguments.keys() - {"description", "subagent_type", "runtime"})
        if extra:
            refused = [_make_refusal(key, arguments[key]) for key in extra]
            raise ValidationError.from_exception_data(TASK_NAME, refused)
        return cast(Any, given)


def _make_refusal(key: str, value: Any) -> InitErrorDetails:
    text = "task takes description and subagent_type only; put everything else in description"
    return InitErrorDetails(type=PydanticCustomError("unexpected_argument", text), loc=(key,), input=value)


@recordclass
class Worker:
    """A subagent: its name, its description, and how to make its runnable for a response format.

    `make` is called with the format that a call asks for, `None` for the subagent's own. `compiled` marks a
    runnable that the caller made, which answers in no other format. A fork reads `addendum` before its task.
    """

    name: str
    description: str
    make: Callable[[Any], Made]
    mode: Mode = "isolated"
    compiled: bool = False
    addendum: str | None = None
    _made: list[tuple[Any, Made]] = field(default_factory=list[tuple[Any, Made]])
    _lock: Any = field(default_factory=Lock)

    def runnable(self, response_format: Any = None) -> Made:
        """Return the runnable for a response format, the same one at each call; the oldest may be forgotten.

        Raises:
            ToolFailure: for a format, where the caller compiled the subagent.
        """
        if self.compiled and response_format is not None:
            raise ToolFailure(
                "not_supported",
                f'response_schema cannot be used with compiled subagent "{self.name}"; call it without one, '
                "or choose another subagent",
            )
        # Parallel calls would each compile the graph.
        with self._lock:
            if made := self.find_made(response_format):
                return made
            # A copy, because the caller may change the format in place and means another one then.
            kept = (
                deepcopy(cast(Any, response_format)) if isinstance(response_format, dict) else response_format
            )
            made = self._build(kept)
            self._made = [(kept, made), *self._made[:_MAX_FORMATS]]
            return made

    def find_made(self, response_format: Any = None) -> Made | None:
        """Return the runnable for a response format if it was made already."""
        made = self._made
        return next((each for wanted, each in made if _equal(wanted, response_format)), None)

    def _build(self, response_format: Any) -> Made:
        try:
            return self.make(response_format)
        except ToolFailure:
            raise
        except Exception as error:
            _log.warning("the subagent %r cannot be built", self.name, exc_info=True)
            raise ToolFailure(
                "not_supported",
                f"the subagent {self.name!r} cannot be built: {describe_exception(error)}; each call of it "
                "will fail, so do the work another way",
            ) from error


def ready_worker(spec: Mapping[str, Any]) -> Worker:
    """Make the worker of a compiled spec."""
    name: str = spec["name"]
    runnable: Made = spec["runnable"]
    mode: Mode = spec.get("mode") or "isolated"

    def make(_: Any) -> Made:
        # Its runs and its stream carry the subagent's name.
        return runnable.with_config({"metadata": {"lc_agent_name": name}, "run_name": name})

    return Worker(name, spec["description"], make, mode, compiled=True)


def _equal(one: Any, other: Any) -> bool:
    return one is other or (type(one) is type(other) and bool(one == other))


@valueclass
class Delegation:
    """The workers, the sharing of state keys and the caller's run that one call of `task` works with.

    `shown` returns the messages of a state as its agent's model sees them.
    """

    workers: Mapping[str, Worker]
    keys: Mapping[str, Sharing]
    shown: Callable[[State], Sequence[AnyMessage]]
    runtime: Runtime

    def get_worker(self, name: str) -> Worker:
        """Return the worker of this name.

        Raises:
            ToolFailure: where there is none, or this agent may not delegate.
        """
        if self.runtime.state.get(FORKED):
            raise ToolFailure("not_supported", REFUSAL)
        if not self.runtime.tool_call_id:
            raise ToolFailure("invalid_argument", "a call of task needs an id, and this one has none")
        if worker := self.workers.get(name):
            return worker
        names = ", ".join(f"`{each}`" for each in self.workers)
        raise ToolFailure("unknown_subagent", f"there is no subagent {name!r}; choose one of {names}")

    def sharing(self, key: str) -> Sharing:
        """Return how a state key is shared."""
        return self.keys.get(key, SHARED)

    def select_shared_state(self) -> dict[str, Any]:
        """Return the state that every subagent receives."""
        return {key: value for key, value in self.runtime.state.items() if self.sharing(key).down}

    def initial_state(self, worker: Worker, task: str) -> dict[str, Any]:
        """Return the state that a worker begins with."""
        shared, state = self.select_shared_state(), self.runtime.state
        call_id = str(self.runtime.tool_call_id)
        if worker.mode == "isolated":
            return {**shared, "messages": [HumanMessage(task)]}
        history = self.shown(state) if worker.compiled else state.get("messages", ())
        messages = make_forked_history(history, call_id, task, worker.addendum, compiled=worker.compiled)
        if worker.compiled:
            return {**shared, "messages": messages}
        private = {
            key: value
            for key, value in state.items()
            if self.sharing(key).forks and not self.sharing(key).down
        }
        return {**shared, FORKED: private, "messages": messages}


async def _task(context: Delegation, description: str, subagent_type: str) -> ToolOutput:
    worker = context.get_worker(subagent_type)
    wanted = context.runtime.config.get("configurable", {}).get(SUBAGENT_RESPONSE_FORMAT_CONFIG_KEY)
    runnable = worker.find_made(wanted)
    if runnable is None:
        # In a thread: to compile an agent would hold up all other tasks of the event loop.
        runnable = await in_thread(lambda: worker.runnable(wanted))
    state = context.initial_state(worker, description)
    with remembering_for(worker.name, context.runtime.state) as learned:
        result = await _run(runnable, worker.name, state, context.runtime)
    report = render_report(worker.name, result, given=state["messages"])
    returned = {key: value for key, value in result.items() if context.sharing(key).back}
    update = diff_state(
        context.select_shared_state(), returned, running_channels(), getattr(runnable, "channels", {})
    )
    report += _warn_of_conflicts(update, str(context.runtime.tool_call_id))
    if learned and REMEMBERED in running_channels():
        update = {**update, REMEMBERED: dict(learned)}
    if kind := _find_break(result):
        report += f"\n\n[This is not all of it: the answer of the subagent {describe_break(kind)}.]"
        return ToolOutput(report, update=update, code="incomplete_answer")
    return ToolOutput(report, update=update)


def _find_break(result: Mapping[str, Any]) -> Break | None:
    """Return how the last answer of a subagent broke off."""
    messages: Any = result.get("messages")
    last: Any = cast("list[Any]", messages)[-1] if messages and isinstance(messages, list) else None
    return break_of(last) if isinstance(last, BaseMessage) else None


def _warn_of_conflicts(update: Mapping[str, Any], call_id: str) -> str:
    """Warn of the keys without a reducer that another call of this step sets to another value."""
    channels = running_channels()
    keys: list[str] = []
    for key, value in update.items():
        channel = channels.get(key)
        if isinstance(channel, LatestValue):
            others = channel.announce(call_id, value)
            keys += [key] if not all(same(value, other) for other in others) else []
    named = ", ".join(map(repr, keys))
    return (
        f"\n\n[Another call of this turn also set {named}: the value of the last call stays.]" if keys else ""
    )


async def _run(runnable: Made, name: str, state: dict[str, Any], runtime: Runtime) -> dict[str, Any]:
    # The format is reset: what the subagent calls must not answer in that of this call.
    within = {"ls_agent_type": "subagent", SUBAGENT_RESPONSE_FORMAT_CONFIG_KEY: None}
    config: Any = {"configurable": within, **_lower_limit(runnable, runtime)}
    inherited = _common_start(state["messages"], runtime.state.get("messages", ()))
    parent = ParentState(str(runtime.tool_call_id), state.get(_FILES) or {}, inherited)
    given = _insert_placeholders(runnable, state, parent)

    def block() -> dict[str, Any]:
        with inherit_from(parent):
            return runnable.invoke(given, config)

    async def wait() -> dict[str, Any]:
        with inherit_from(parent):
            return await runnable.ainvoke(given, config)

    try:
        return await (IOCall(block, wait) if hasattr(runnable, "ainvoke") else in_thread(block))
    except CancelledError as error:
        if _is_cancelled():
            raise
        raise ToolFailure("cancelled", f"the subagent {name!r} was cancelled before it answered") from error


def _is_cancelled() -> bool:
    """Return whether the run itself is cancelled, rather than something inside a subagent."""
    try:
        running = current_task()
    except RuntimeError:
        return False
    # A subagent may raise the error by itself, for example out of a client that was closed.
    return running is not None and running.cancelling() > 0


def _insert_placeholders(runnable: Made, state: dict[str, Any], parent: ParentState) -> dict[str, Any]:
    """Replace files and messages of the parent by placeholders; the child does not save them again."""
    channels = channels_of(runnable)
    if channels is None:
        return state
    given = dict(state) if _FILES in channels else {key: state[key] for key in state if key != _FILES}
    # A graph that saves for itself may be resumed without its parent, so it is given the whole state.
    if has_checkpointer(runnable):
        return given
    if parent.value and isinstance(channels.get(_FILES), InheritedChannel):
        given[_FILES] = placeholder_for(parent)
    if parent.messages and isinstance(channels["messages"], InheritedMessagesChannel):
        # The id is in checkpoints of running threads, so it keeps its old form.
        mark = HumanMessage("", id=f"handed-{parent.name}", additional_kwargs=message_marks(parent))
        given["messages"] = [mark, *state["messages"][len(parent.messages) :]]
    return given


def _common_start(given: Sequence[AnyMessage], own: Sequence[AnyMessage]) -> Sequence[AnyMessage]:
    """Return the messages with which both begin."""
    pairs = enumerate(zip(given, own, strict=False))
    count = next((at for at, (one, other) in pairs if one is not other), min(len(given), len(own)))
    return own[:count]


def _lower_limit(runnable: Made, runtime: Runtime) -> dict[str, int]:
    bound: Any = getattr(runnable, "config", None) or {}
    own: int | None = bound.get("recursion_limit")
    parents = runtime.config.get("recursion_limit")
    return {"recursion_limit": min(own, parents)} if own and parents else {}


def render_report(name: str, result: Any, given: Sequence[BaseMessage] = ()) -> str:
    """Return the structured response as JSON if there is one, else the last text that the subagent wrote.

    `given` are the messages that it began with, which are none of its own.

    Raises:
        ConfigError: when the result is not a state, or has no `messages`.
    """
    if not isinstance(result, Mapping):
        raise ConfigError(
            f"CompiledSubAgent must return a state, such as {{'messages': [...]}}; {name!r} "
            f"returned {result!r}"
        )
    state = cast("Mapping[str, Any]", result)
    if state.get("structured_response") is not None:
        return _to_json(state["structured_response"])
    if "messages" not in state:
        raise ConfigError(
            f"CompiledSubAgent must return a state containing a 'messages' key; {name!r} returned "
            f"{sorted(state)!r}"
        )
    messages = state["messages"]
    if isinstance(messages, str) and messages.strip():
        return messages.rstrip()
    known = {each.id for each in given if each.id}
    for message in reversed(convert_to_messages(messages)):
        if isinstance(message, AIMessage) and message.id not in known and message.text.strip():
            return message.text.rstrip()
    return f"The subagent {name!r} finished without writing an answer."


def _to_json(value: Any) -> str:
    """Write a value as JSON; what JSON cannot hold as text, or as Python shows it."""
    with suppress(Exception):
        if isinstance(value, BaseModel):
            return value.model_dump_json()
        text = json.dumps(to_jsonable_python(value, serialize_unknown=True), ensure_ascii=False)
        # Half a surrogate pair could be neither sent nor saved.
        return text.encode().decode()
    return repr(value)


TASK = ToolSpec(TASK_NAME, TASK_TOOL_DESCRIPTION, TaskToolSchema, _task, shows_delegated_work=True)
