"""Define the specs of asynchronous subagents and validate them, and the state that is kept of their tasks."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal, NotRequired, TypeAlias, cast, get_args

from langchain.agents import AgentState
from langchain_core.runnables import Runnable
from pydantic import StringConstraints
from typing_extensions import TypedDict

from deepagents._deprecation import warn_beta, warn_unknown_keys
from deepagents._state.channels import SNAPSHOT_AFTER, GrowingChannel
from deepagents._state.schema import Sharing, merge_latest
from deepagents._values import field, frozenclass, replace, valueclass
from deepagents.errors import ConfigError

TASKS: Final = "async_tasks"
PARENT: Final = "deepagents_parent"
UNDER_WAY: Final = frozenset({"pending", "running"})
UNFINISHED: Final = UNDER_WAY | {"waiting"}
FINISHED: Final = frozenset({"success", "error", "timeout", "cancelled", "interrupted"})
PlainId: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,128}$")]
"""An id as it may stand in URLs and in text that the model reads."""

RunStatus: TypeAlias = Literal["pending", "running", "error", "success", "timeout", "interrupted", "lost"]
UpdateStrategy: TypeAlias = Literal["interrupt", "enqueue"]
Mode: TypeAlias = Literal["isolated", "fork"]


class AsyncSubAgent(TypedDict):
    """An agent on an Agent Protocol server that works in the background while the main agent goes on.

    Without `url` it is a graph of the server that runs the main agent, and the main agent has to be awaited.
    No server is needed for a `SubAgent` or `CompiledSubAgent` with `"background": True`.
    The key for `x-api-key` comes from `LANGGRAPH_API_KEY`, `LANGSMITH_API_KEY` or `LANGCHAIN_API_KEY`;
    `headers` holds any other way to sign in.
    """

    name: str
    description: str
    graph_id: str
    url: NotRequired[str]
    headers: NotRequired[dict[str, str]]
    webhook: NotRequired[str]
    update_strategy: NotRequired[UpdateStrategy]
    notify_parent: NotRequired[bool]
    mode: NotRequired[Mode]


class CompiledSubAgent(TypedDict):
    """A runnable of the caller's own that the main agent may delegate to; its state must have `messages`.

    With `background` it works while the main agent goes on; `update_strategy` says what new instructions do.
    """

    name: str
    description: str
    runnable: Runnable[Any, Any]
    mode: NotRequired[Mode]
    background: NotRequired[bool]
    update_strategy: NotRequired[UpdateStrategy]


@frozenclass
class AsyncAgent:
    """One validated spec. Fields that may hold secrets are kept out of its `repr`.

    `make` returns the runnable of an agent that works in this process, and needs no server.
    """

    name: str
    description: str
    graph_id: str = ""
    make: Callable[[], Runnable[Any, Any]] | None = field(default=None, repr=False)
    url: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    webhook: str | None = field(default=None, repr=False)
    update_strategy: UpdateStrategy = "interrupt"
    notify_parent: bool = True
    mode: Mode = "isolated"

    @property
    def server(self) -> tuple[str | None, tuple[tuple[str, str], ...]]:
        """The key under which clients and failures of a server are kept: address and headers."""
        return self.url, tuple(sorted(self.headers.items()))


class AsyncTask(TypedDict):
    """One task: where it runs and what was last known of it. Times are UTC, as `YYYY-MM-DDTHH:MM:SSZ`.

    `run_id` is empty while it is not known whether the task was begun.
    """

    task_id: str
    agent_name: str
    thread_id: str
    run_id: str
    superseded_run_ids: NotRequired[list[str]]
    status: str
    created_at: str
    last_checked_at: str
    last_updated_at: str


@valueclass
class TaskStatus:
    """The status and run of a task, with its result, its questions to a person, or its error."""

    status: str
    run_id: str
    values: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    interrupts: tuple[Mapping[str, Any], ...] = ()
    error: str = ""


class TaskEvent(TypedDict):
    """The task that a notification is about; stands in `additional_kwargs` of its message."""

    task_id: str
    agent_name: str
    status: str
    run_id: NotRequired[PlainId]


Tasks = Annotated[
    dict[str, AsyncTask],
    GrowingChannel(merge_latest, snapshot_frequency=SNAPSHOT_AFTER),
    Sharing(down=False),
]


class AsyncSubAgentState(AgentState[Any]):
    """The tasks by id. They stand outside the messages, so compaction does not forget them."""

    async_tasks: NotRequired[Tasks]


_KNOWN: Final = frozenset(AsyncSubAgent.__annotations__)
_KNOWN_LOCAL: Final = frozenset({"name", "description", "runnable", "background", "update_strategy", "mode"})
_OR: Final = {
    "graph_id": " of a server, or a runnable; create_deep_agent(subagents=...) also takes a SubAgent with "
    '"background": True'
}
_OPTIONAL: Final = ("graph_id", "url", "webhook", "update_strategy", "mode")
_CHOICES: Final = {"update_strategy": get_args(UpdateStrategy), "mode": get_args(Mode)}
_SCHEME: Final = "x-auth-scheme"


def is_async(spec: Any) -> bool:
    """Return whether a spec is one of an asynchronous subagent, on a server or in this process."""
    return is_remote(spec) or (isinstance(spec, Mapping) and cast("Any", spec).get("background") is True)


def is_remote(spec: Any) -> bool:
    """Return whether a spec is one of an agent on a server."""
    return isinstance(spec, Mapping) and "graph_id" in spec


def validate_specs(specs: Sequence[Any]) -> dict[str, AsyncAgent]:
    """Validate specs and return the agents by name.

    Raises:
        ConfigError: for no specs, a name used twice, or a spec that cannot work.
    """
    agents = [spec if isinstance(spec, AsyncAgent) else _validate_spec(spec) for spec in specs]
    if not agents:
        raise ConfigError("At least one async subagent is needed: async_subagents=[...]")
    names = [agent.name for agent in agents]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ConfigError(f"Duplicate async subagent names {twice!r}; each needs its own")
    if any(agent.mode == "fork" for agent in agents):
        warn_beta("forked async subagents")
    return {agent.name: agent for agent in agents}


def _validate_spec(given: Any) -> AsyncAgent:
    if not isinstance(given, Mapping):
        raise ConfigError(f"an async subagent is a mapping, not a {type(given).__name__}")
    spec = cast("Mapping[str, Any]", given)
    for key in ("name", "description", *(() if "runnable" in spec else ("graph_id",))):
        if not isinstance(spec.get(key), str) or not spec[key]:
            raise ConfigError(f"async subagent {spec.get('name')!r} needs a {key}{_OR.get(key, '')}")
    name: str = spec["name"]
    for key, allowed in _CHOICES.items():
        if spec.get(key) not in (None, *allowed):
            raise ConfigError(f"async subagent {name!r}: {key}={spec[key]!r} is none of {allowed!r}")
    url = spec.get("url")
    if url and not str(url).lower().startswith(("http://", "https://")):
        raise ConfigError(f"async subagent {name!r}: url begins with http:// or https://")
    make = _take_runnable(spec) if "runnable" in spec else None
    known = _KNOWN_LOCAL if make else _KNOWN
    warn_unknown_keys(f"async subagent {name!r}", spec.keys() - known, known)
    optional = {key: spec[key] for key in _OPTIONAL if spec.get(key)}
    headers, notifies = resolve_headers(name, spec.get("headers")), spec.get("notify_parent") is not False
    return AsyncAgent(
        name, spec["description"], make=make, headers=headers, notify_parent=notifies, **optional
    )


def make_local(spec: Mapping[str, Any], make: Callable[[], Runnable[Any, Any]]) -> AsyncAgent:
    """Make the agent of a spec that works in this process, from what makes its runnable on first use."""
    # Its other keys are those of a `SubAgent`, and were validated with these.
    own = {key: spec[key] for key in ("name", "description", "update_strategy", "mode") if key in spec}
    return replace(_validate_spec({**own, "graph_id": "local"}), graph_id="", make=make)


def _take_runnable(spec: Mapping[str, Any]) -> Callable[[], Runnable[Any, Any]]:
    runnable: Any = spec["runnable"]
    if is_remote(spec):
        raise ConfigError(
            f"async subagent {spec['name']!r} has a graph_id and a runnable; give it one of them"
        )
    if not (hasattr(runnable, "invoke") and hasattr(runnable, "with_config")):
        raise ConfigError(
            f"async subagent {spec['name']!r}: runnable must be a Runnable, such as a compiled graph, got "
            f"{runnable!r}"
        )
    return lambda: runnable


def resolve_headers(name: str, given: Any) -> dict[str, str]:
    """Validate the headers of a spec and add the default `x-auth-scheme`.

    Raises:
        ConfigError: for headers that cannot be sent; the message never holds a value.
    """
    headers = dict(cast("Mapping[Any, Any]", given)) if isinstance(given, Mapping) else dict[Any, Any]()
    if (given and not headers) or not all(isinstance(each, str) for pair in headers.items() for each in pair):
        raise ConfigError(f"async subagent {name!r}: headers is a mapping of text to text")
    lowered = {key.lower() for key in headers}
    if "x-api-key" in lowered:
        raise ConfigError(
            f"async subagent {name!r}: the header 'x-api-key' is set from LANGGRAPH_API_KEY, "
            "LANGSMITH_API_KEY or LANGCHAIN_API_KEY; leave it out, or sign in with another header"
        )
    return headers if _SCHEME in lowered else {_SCHEME: "langsmith", **headers}


def list_agents(agents: Mapping[str, AsyncAgent]) -> str:
    """List the agents for the model, one per line."""
    return "\n".join(f"- {agent.name}: {agent.description}" for agent in agents.values())


def as_mapping(value: object) -> Mapping[str, Any]:
    """Return a server's answer as a mapping, an empty one when it is something else."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else dict[str, Any]()


def new_task(agent_name: str, thread_id: str, run_id: str, status: str) -> AsyncTask:
    """Make the record of a task that starts now; its id is the id of its thread."""
    now = _now()
    return {
        "task_id": thread_id,
        "agent_name": agent_name,
        "thread_id": thread_id,
        "run_id": run_id,
        "status": status,
        "created_at": now,
        "last_checked_at": now,
        "last_updated_at": now,
    }


def update_task(task: AsyncTask, status: str, run_id: str) -> AsyncTask:
    """Return the record as checked now, and as updated now if its status or run is new."""
    now = _now()
    is_new = (status, run_id) != (task["status"], task["run_id"])
    updated = now if is_new else task["last_updated_at"]
    record: AsyncTask = {**task, "status": status, "run_id": run_id}
    return {**record, "last_checked_at": now, "last_updated_at": updated}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
