"""Reach the channels of a running graph: the only module that uses LangGraph's internals for that.

LangGraph has no public way for a tool to see its own pending writes, to write without returning, to take such
writes back, or to learn how a channel combines values. `tests/agents/test_channels.py` fails loudly when an
upgrade changes any of these.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import copy_context
from dataclasses import replace
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, cast

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config, merge_configs, var_child_runnable_config
from langgraph.channels.base import BaseChannel
from langgraph.channels.binop import BinaryOperatorAggregate
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.config import get_config, get_stream_writer
from langgraph.errors import GraphBubbleUp
from langgraph.graph import message as langgraph_message
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime, get_runtime

from deepagents._async import setting
from deepagents.errors import RunConfigError

_log = logging.getLogger(__name__)
Channel: TypeAlias = BaseChannel[Any, Any, Any]
Channels: TypeAlias = Mapping[str, Channel]

# Keys of the configurable that LangGraph (1.2) gives each task; its own are in
# `langgraph._internal._constants`, which is private as well and has moved before.
_READ = "__pregel_read"
_SEND = "__pregel_send"
_SAVER = "__pregel_checkpointer"
_SCRATCHPAD = "__pregel_scratchpad"
_STREAM = "__pregel_stream"
_NEWER_EVENTS = "__pregel_stream_messages_v2"
_MESSAGES = "langgraph.pregel._messages"
# What reads these may be gone before the run that writes to them.
_STREAMS = (_MESSAGES, "langchain_core.tracers.event_stream", "langchain_core.tracers.log_stream")
# What of a caller's configuration names the one run or its place.
_OF_ONE_RUN = frozenset(
    ("thread_id", "checkpoint_id", "checkpoint_ns", "checkpoint_map")
    + ("run_id", "assistant_id", "graph_id", "deepagents_parent")
)
MESSAGES_REDUCER: Callable[..., list[BaseMessage]] = vars(langgraph_message)["_messages_delta_reducer"]
"""What folds writes to the messages. Needed at import: an upgrade that drops it fails there, not in a run."""
_OUTSIDE = (
    "Files in state can only be reached inside a LangGraph graph execution. To start a run with files, "
    "pass them in: "
    'agent.invoke({"messages": [...], "files": {"/notes.md": {"content": "..."}}}).'
)


def read_channel(key: str) -> Any:
    """Return a channel's value as this task sees it, its own writes included; `None` without such a channel.

    Raises:
        RunConfigError: outside a graph run.
    """
    # LangGraph's own read copies and updates a channel also where this task wrote nothing to it.
    _, channels, _, task = _require(_READ).args
    channel: Channel | None = channels.get(key)
    # A list at once: parallel calls of one task write from other threads.
    written = [value for name, value in list(task.writes) if name == key]
    if channel is not None and written:
        channel = channel.copy()
        channel.update(written)
    return channel.get() if channel is not None and channel.is_available() else None


def read_state() -> Mapping[str, Any]:
    """Return all that the state of the running graph holds.

    Raises:
        RunConfigError: outside a graph run.
    """
    bound = _require(_READ)
    scratchpad, channels, managed, task = bound.args
    named = [key for key in channels if not key.startswith(("__", "branch:"))]
    return bound.func(scratchpad, channels, managed, task, named, False)


def write_channel(key: str, value: Any) -> None:
    """Queue a write to a channel, as if this task had returned it.

    Raises:
        RunConfigError: outside a graph run.
    """
    _require(_SEND)([(key, value)])


@contextmanager
def writes_undone_on_failure() -> Generator[None]:
    """Take back what this task wrote meanwhile if it fails: with writes of its own it would count as done."""
    written: deque[Any] = _require(_SEND).__self__ if in_graph() else deque[Any]()
    before = len(written)
    try:
        yield
    except BaseException as error:
        # A cancellation too. What asks a person has written the answers that it was given.
        while len(written) > before and not isinstance(error, GraphBubbleUp):
            written.pop()
        raise


def configurable() -> Mapping[str, Any]:
    """Return what configures the run that this code is part of; nothing outside of one."""
    try:
        return get_config().get("configurable", {})
    except RuntimeError:
        return {}


def configurable_in_graph() -> Mapping[str, Any]:
    """Return what configures the task of a graph that this code is part of; nothing outside of one."""
    given = configurable()
    return given if _READ in given else {}


def in_graph() -> bool:
    """Return whether this code runs inside a task of a graph."""
    return _READ in configurable()


def runtime_of_run() -> Runtime[Any] | None:
    """Return the runtime of the run that this code is part of."""
    try:
        return get_runtime()
    # LangGraph raises either of them outside a run, depending on what of a run there is.
    except (RuntimeError, KeyError):
        return None


def is_saved() -> bool:
    """Return whether a checkpointer keeps the running graph, its own or that of a graph around it."""
    return configurable().get(_SAVER) not in (None, False)


def running_saver() -> BaseCheckpointSaver[Any] | None:
    """Return what saves the running graph, `None` when nothing does."""
    saver: object = configurable_in_graph().get(_SAVER)
    return cast("BaseCheckpointSaver[Any]", saver) if isinstance(saver, BaseCheckpointSaver) else None


def is_saved_from_outside(config: RunnableConfig | None) -> bool:
    """Return whether a run with this config is part of another, which decides whether it is saved."""
    return _SAVER in ensure_config(config).get("configurable", {})


class Step(NamedTuple):
    """Where the saver of the running graph keeps the step that a task is part of."""

    saver: BaseCheckpointSaver[Any]
    place: RunnableConfig
    task: str


def step_under_way() -> Step | None:
    """Return the step that this task is part of, `None` when it is not saved."""
    given = configurable_in_graph()
    saver: object = given.get(_SAVER)
    # The last part of the namespace is the task; what stands before it names the graph that is saved.
    own, _, task = str(given.get("checkpoint_ns", "")).rpartition("|")
    steps: Mapping[str, str] = given.get("checkpoint_map") or {}
    if not isinstance(saver, BaseCheckpointSaver) or own not in steps:
        return None
    place = {"thread_id": given.get("thread_id"), "checkpoint_ns": own, "checkpoint_id": steps[own]}
    return Step(cast("BaseCheckpointSaver[Any]", saver), {"configurable": place}, task.rpartition(":")[2])


def place_of_agent() -> tuple[str | None, str]:
    """Return the thread of this run, if it has one, and the namespace of the running agent in it."""
    given = configurable_in_graph()
    return given.get("thread_id"), str(given.get("checkpoint_ns", "")).rpartition("|")[0]


@contextmanager
def answers_to_questions() -> Generator[Callable[[], object]]:
    """Yield what returns the answer to the question that this task asked last; `None` before the first."""
    config = get_config() if in_graph() else RunnableConfig()
    scratchpad: Any = config.get("configurable", {}).get(_SCRATCHPAD)
    asked: list[int] = []

    def count() -> int:
        asked.append(scratchpad.interrupt_counter())
        return asked[-1]

    # LangGraph numbers the questions of a task, whoever asks them, and does not show the number.
    own = scratchpad and replace(scratchpad, interrupt_counter=count)
    configurable = {**config.get("configurable", {}), _SCRATCHPAD: own}
    inside = {**config, "configurable": configurable} if own else config
    with setting(var_child_runnable_config, inside):
        yield lambda: scratchpad.resume[asked[-1]] if asked else None


def has_channel(key: str) -> bool:
    """Return whether the running graph has a channel of this name.

    Raises:
        RunConfigError: outside a graph run.
    """
    return key in _require(_READ).args[1]


def running_channel(key: str) -> BaseChannel[Any, Any, Any] | None:
    """Return a channel of the running graph itself, the same for all tasks of a run; `None` without one."""
    return _require(_READ).args[1].get(key) if in_graph() else None


def running_channels() -> Channels:
    """Return the channels of the running graph itself; none outside a run."""
    return _require(_READ).args[1] if in_graph() else {}


def channels_of(graph: object) -> Channels | None:
    """Return the channels of a compiled graph; `None` for other runnables."""
    # `vars` and not the attribute: a proxy around a graph answers for any name.
    return vars(graph)["channels"] if isinstance(graph, CompiledStateGraph) else None


def has_checkpointer(graph: object) -> bool:
    """Return whether a compiled graph saves its own steps, rather than through the graph around it."""
    return isinstance(graph, CompiledStateGraph) and vars(graph)["checkpointer"] not in (None, False)


def value_after_write(channel: Channel, held: Any, update: Any) -> Any:
    """Return what a channel like this one that holds a value would hold after a write."""
    trial = channel.from_checkpoint(held)
    trial.update([update])
    return trial.get()


def reducers_of(channels: Channels) -> Mapping[str, Callable[..., Any]]:
    """Return the reducer of each of these channels that has one."""
    return {
        key: channel.operator if isinstance(channel, BinaryOperatorAggregate) else channel.reducer
        for key, channel in channels.items()
        if isinstance(channel, BinaryOperatorAggregate | DeltaChannel)
    }


EmittedType: TypeAlias = Literal[
    "cache_broken",
    "command_ended",
    "command_output",
    "context_compacted",
    "host_refused",
    "limit_near",
    "limit_reached",
    "model_failed",
    "model_retry",
    "tool_progress",
]
"""The types of `deepagents.events` that the running graph writes itself."""


class Emit(Protocol):
    """Writes an event; `about` has the fields of its type."""

    def __call__(self, kind: EmittedType, /, **about: object) -> None: ...


class LibraryEvent(dict[str, Any]):
    """An event of the library in its plain form; a dict that a tool writes is never taken for one."""


def emit(kind: EmittedType, /, **about: object) -> None:
    """Write an event to the stream of mode `custom` of the running graph; outside of a run do nothing."""
    if in_graph():
        get_stream_writer()(LibraryEvent({"type": kind, **about}))


@contextmanager
def called_back(handler: BaseCallbackHandler) -> Generator[None]:
    """Let a callback hear of all that is called meanwhile."""
    config = ensure_config()
    callbacks = config.get("callbacks")
    if isinstance(callbacks, BaseCallbackManager):
        callbacks = callbacks.copy()
        # The first: where one raises, as at a limit, LangChain never awaits what stands behind it.
        callbacks.handlers.insert(0, handler)
    else:
        callbacks = [handler, *(callbacks or ())]
    with setting(var_child_runnable_config, {**config, "callbacks": callbacks}):
        yield


@contextmanager
def configured(config: RunnableConfig) -> Generator[None]:
    """Let all that is called meanwhile have these tags and metadata too."""
    with setting(var_child_runnable_config, merge_configs(ensure_config(), config)):
        yield


def emit_anywhere() -> Emit:
    """Return what does the same as `emit` here, and may be called in another thread."""
    # What writes asks the context whose step it belongs to, and other threads have none.
    context = copy_context()

    def emit_there(kind: EmittedType, /, **about: object) -> None:
        context.copy().run(emit, kind, **about)

    return emit_there


def has_newer_events(config: RunnableConfig | None) -> bool:
    """Return whether a run, or one around it, is followed through `stream_events(version="v3")`."""
    return bool(ensure_config(config).get("configurable", {}).get(_NEWER_EVENTS))


def stream_through(config: RunnableConfig | None, show: Callable[[str, Any], Any]) -> RunnableConfig | None:
    """Return the config of a run whose parts reach the stream of a surrounding graph as `show` returns them.

    A graph inside another one writes to the stream of that one itself, past its own `stream` method.
    """
    whole = ensure_config(config)
    outer: Any = whole.get("configurable", {}).get(_STREAM)
    if outer is None:
        return config

    def write(part: tuple[Any, str, Any]) -> None:
        namespace, mode, data = part
        outer((namespace, mode, show(mode, data)))

    # By the type of the one at hand: LangGraph does not export the class.
    configurable = {**whole.get("configurable", {}), _STREAM: type(outer)(write, outer.modes)}
    return {**whole, "configurable": configurable}


@contextmanager
def off_the_message_stream() -> Generator[None]:
    """Run graphs meanwhile whose messages are on no stream of the run.

    A tag keeps tokens off; whole messages come all the same, from the steps of a graph.
    """
    config = get_config() if in_graph() else RunnableConfig()
    quiet = {**config, "callbacks": _quiet(config.get("callbacks"))}
    with setting(var_child_runnable_config, quiet):
        yield


class RunningStream(NamedTuple):
    """A stream that also shows what runs inside its graph: how to write to it, and in which modes."""

    write: Callable[[tuple[Any, str, Any]], None]
    modes: Collection[str]


def running_stream() -> tuple[RunningStream | None, tuple[str, ...]]:
    """Return the stream that shows what runs here, if there is one, and the namespace of this task in it."""
    given = configurable_in_graph()
    outer: Any = given.get(_STREAM)
    namespace = tuple(str(given.get("checkpoint_ns") or "").split("|"))
    return (RunningStream(outer, outer.modes) if outer else None), namespace


def config_to_outlast() -> RunnableConfig:
    """Return the config of a run that outlasts this one: what the caller configured, no stream of ours."""
    given = get_config() if in_graph() else RunnableConfig()
    configured = {
        key: value
        for key, value in given.get("configurable", {}).items()
        if not key.startswith("__") and key not in _OF_ONE_RUN
    }
    return {"configurable": configured, "callbacks": _quiet(given.get("callbacks"), _STREAMS)}


def outside_of_runs() -> AbstractContextManager[None]:
    """Run graphs meanwhile as if no other ran around them."""
    return setting(var_child_runnable_config, None)


def _quiet(callbacks: Any, modules: Collection[str] = (_MESSAGES,)) -> Any:
    if not isinstance(callbacks, BaseCallbackManager):
        return callbacks
    # A copy: all else that runs in this task shares the manager.
    quiet = callbacks.copy()
    for handler in callbacks.handlers:
        if type(handler).__module__ in modules:
            quiet.remove_handler(handler)
    return quiet


def _require(key: str) -> Any:
    try:
        return configurable()[key]
    except KeyError as error:
        raise RunConfigError(_OUTSIDE) from error
