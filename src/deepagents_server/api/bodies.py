"""Check what requests may hold, once, where they come in."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Annotated, Any, Literal, TypeVar, cast
from uuid import UUID

import orjson
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message

from deepagents_server.config_file import Strategy
from deepagents_server.database.filters import clean_metadata
from deepagents_server.errors import ApiError
from deepagents_server.serialize import dump
from deepagents_server.server import Server, serving

Body = TypeVar("Body", bound=BaseModel)
_MAX_DEPTH = 200
_MAX_VALUES = 500_000
_VALUES = (b",", b"[", b"{")
"""What begins a further value, outside of strings."""
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)

Metadata = dict[str, Any]
Id = Annotated[str, BeforeValidator(lambda value: str(UUID(str(value))))]
Limit = Annotated[int, Field(ge=1, le=1000)]
Offset = Annotated[int, Field(ge=0, le=2**62)]
Ids = Annotated[list[Id], Field(max_length=1000)]
Names = list[str] | Literal["*"]
MultitaskStrategy = Literal["reject", "interrupt", "rollback", "enqueue", "steer"]
StreamMode = Literal[
    "values", "updates", "custom", "messages", "messages-tuple", "tasks", "checkpoints", "debug", "events"
]


_KINDS = {
    "configurable": (dict, "an object"),
    "metadata": (dict, "an object"),
    "tags": (list, "a list"),
    "recursion_limit": (int, "a whole number"),
    "max_concurrency": (int, "a whole number"),
    "run_name": (str, "text"),
}
"""What the fields of a configuration hold."""


def _check_config(given: dict[str, Any]) -> dict[str, Any]:
    for name, (kind, form) in _KINDS.items():
        if not isinstance(given.get(name), kind | None):
            raise ValueError(f"{name} must be {form}, not {given[name]!r:.100}")
    return given


def _check_checkpoint(given: dict[str, Any]) -> dict[str, Any]:
    inner = given.get("configurable")
    named = cast(dict[str, Any], inner) if isinstance(inner, dict) else given
    for name, kind in (("checkpoint_id", str), ("checkpoint_ns", str), ("checkpoint_map", dict)):
        if not isinstance(named.get(name), kind | None):
            raise ValueError(f"{name} has no such form")
    return named


Config = Annotated[dict[str, Any], AfterValidator(_check_config)]
Checkpoint = Annotated[dict[str, Any], AfterValidator(_check_checkpoint)]


class SendBody(BaseModel):
    """A node that gets an input of its own."""

    node: str
    input: Any = None


Update = dict[str, Any] | list[tuple[str, Any]]
Goto = str | SendBody | list[str | SendBody]


class CommandBody(BaseModel):
    """Where a graph is to go, what it is to change, and the answer that it waits for."""

    update: Update | None = None
    goto: Goto | None = None
    resume: Any = None


class RunBody(BaseModel):
    """A run to be made."""

    assistant_id: str
    input: Any = None
    command: CommandBody | None = None
    config: Config | None = None
    context: dict[str, Any] | None = None
    metadata: Metadata | None = None
    checkpoint: Checkpoint | None = None
    checkpoint_id: str | None = None
    stream_mode: StreamMode | list[StreamMode] | None = None
    stream_subgraphs: bool | None = None
    stream_resumable: bool | None = None
    interrupt_before: Names | None = None
    interrupt_after: Names | None = None
    webhook: Annotated[str, Field(min_length=1)] | None = None
    multitask_strategy: MultitaskStrategy | None = None
    if_not_exists: Literal["create", "reject"] | None = None
    on_completion: Literal["delete", "keep", "complete", "continue"] | None = None
    on_disconnect: Literal["cancel", "continue"] | None = None
    after_seconds: Annotated[float, Field(ge=0, le=10 * 365 * 86400)] | None = None
    durability: Literal["sync", "async", "exit"] | None = None
    feedback_keys: list[str] | None = None


class BatchRunBody(RunBody):
    """A run among others, perhaps on a thread."""

    thread_id: Id | None = None


Minutes = Annotated[float, Field(gt=0, le=10**8)]


class TtlBody(BaseModel):
    """How long a thread lives after its last change."""

    ttl: Minutes
    strategy: Strategy = "delete"

    @property
    def lifetime(self) -> dict[str, Any]:
        """Return this as columns."""
        return {"ttl_seconds": round(self.ttl * 60), "ttl_strategy": self.strategy}


def _as_ttl(given: Any) -> Any:
    return {"ttl": given} if isinstance(given, int | float) else given


Ttl = Annotated[TtlBody | None, BeforeValidator(_as_ttl)]


class StateBody(BaseModel):
    """A change of a thread's state."""

    values: Any = None
    as_node: str | None = None
    checkpoint: Checkpoint | None = None
    checkpoint_id: str | None = None


class Superstep(BaseModel):
    """Changes of a thread's state, one after the other."""

    updates: list[StateBody] = []


class ThreadBody(BaseModel):
    """A thread to be made."""

    thread_id: Id | None = None
    metadata: Metadata | None = None
    if_exists: Literal["raise", "do_nothing"] | None = None
    supersteps: list[Superstep] | None = None
    ttl: Ttl = None


class MetadataBody(BaseModel):
    """A change of metadata."""

    metadata: Metadata | None = None
    ttl: Ttl = None


class SearchBody(BaseModel):
    """What is common to searches."""

    metadata: Metadata | None = None
    limit: Limit = 10
    offset: Offset = 0
    sort_by: str | None = None
    sort_order: Literal["asc", "desc"] | None = None
    select: list[str] | None = None


Alias = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")]
Place = Annotated[str, Field(pattern=r"^(values|metadata|config|interrupts)([.\[]|$)", max_length=1000)]


class ThreadSearchBody(SearchBody):
    """Threads that are looked for."""

    ids: Ids | None = None
    values: dict[str, Any] | None = None
    status: Literal["idle", "busy", "interrupted", "error"] | None = None
    extract: Annotated[dict[Alias, Place], Field(max_length=10)] | None = None
    """Parts of each thread that are wanted by themselves, as `values.messages[-1].content`, by a name."""


class AssistantSearchBody(SearchBody):
    """Assistants that are looked for."""

    graph_id: str | None = None
    name: str | None = None


class PruneBody(BaseModel):
    """Threads that are no longer needed, or their history."""

    thread_ids: Ids
    strategy: Strategy = "delete"


class CheckpointBody(BaseModel):
    """A checkpoint that is asked for."""

    checkpoint: Checkpoint
    subgraphs: bool = False
    select: list[str] | None = None


class HistoryBody(BaseModel):
    """A part of a thread's history."""

    limit: Annotated[int, Field(ge=0, le=1000)] = 10
    before: str | Checkpoint | None = None
    metadata: Metadata | None = None
    checkpoint: Checkpoint | None = None
    select: list[str] | None = None


class AssistantBody(BaseModel):
    """An assistant to be made."""

    graph_id: str
    assistant_id: Id | None = None
    name: str | None = None
    description: str | None = None
    config: Config | None = None
    context: dict[str, Any] | None = None
    metadata: Metadata | None = None
    if_exists: Literal["raise", "do_nothing"] | None = None


class AssistantChangeBody(BaseModel):
    """A new version of an assistant."""

    graph_id: str | None = None
    name: str | None = None
    description: str | None = None
    config: Config | None = None
    context: dict[str, Any] | None = None
    metadata: Metadata | None = None


class VersionBody(BaseModel):
    """The version that an assistant is to have."""

    version: Annotated[int, Field(ge=1, le=2**31)]


class CancelManyBody(BaseModel):
    """Runs that are to be cancelled."""

    thread_id: Id | None = None
    run_ids: Ids | None = None
    status: Literal["pending", "running", "all"] | None = None


def check_body(model: type[Body], read: Any, *, needed: bool = False) -> Body:
    """Check what a body holds; nothing is an empty object, unless a body is `needed`.

    Raises:
        ApiError: if it is not what the endpoint takes.
    """
    if read is None and needed:
        raise ApiError(422, "The body is empty; send an object, such as {}.")
    try:
        return model.model_validate({} if read is None else read)
    except ValidationError as error:
        raise ApiError(422, describe(error, "the body")) from error


def describe(error: ValidationError, whole: str) -> str:
    """Say where the first thing that is wrong stands; `whole` is the name of all."""
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or whole}: {first['msg']}."


async def read_json(request: Request) -> Any:
    """Read the body of a request; nothing is `None`.

    Raises:
        ApiError: if it is too large, too deep, no JSON, or has too many values.
    """
    taken, most = bytearray(), serving(request).max_body
    try:
        async for chunk in request.stream():
            taken += chunk
            if len(taken) > most:
                raise ApiError(413, f"A body may have {most:,} bytes.")
    except ClientDisconnect as error:
        raise ApiError(400, "The request ended before its body.") from error
    if not taken:
        return None
    body = bytes(taken)
    if _has_many_values(body):
        raise ApiError(422, f"The body has more than {_MAX_VALUES:,} values.")
    try:
        read = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ApiError(422, f"The body is not JSON: {error.msg}.") from error
    if _is_deep(read):
        raise ApiError(422, f"The body is nested more than {_MAX_DEPTH} levels deep.")
    return read


def merge_metadata(server: Server, held: Mapping[str, Any], given: Metadata | None) -> dict[str, Any]:
    """Add to metadata; all of it together has the bound of a body.

    Raises:
        ApiError: if it is too large, or cannot be kept.
    """
    merged = {**held, **clean_metadata(given)}
    if len(dump(merged)) > server.max_body:
        raise ApiError(413, f"The metadata may have {server.max_body:,} bytes.")
    return merged


def replay(request: Request, body: bytes) -> Callable[[], Awaitable[Message]]:
    """Give a body that was read to who reads it again."""
    first = True

    async def receive() -> Message:
        nonlocal first
        if first:
            first = False
            return {"type": "http.request", "body": body, "more_body": False}
        return await request.receive()

    return receive


def _has_many_values(body: bytes) -> bool:
    """Tell whether JSON has so many values that others would wait for seconds while it is read."""
    if sum(map(body.count, _VALUES)) <= _MAX_VALUES:
        return False
    # Four for each value with a name. Texts are taken out only if there are few: that takes its time too.
    if body.count(b'"') - body.count(b'\\"') > 4 * _MAX_VALUES:
        return True
    return sum(map(_STRING.sub(b"", body).count, _VALUES)) > _MAX_VALUES


def _is_deep(value: Any) -> bool:
    """Tell whether a value has too many levels; what stores and shows it recurses."""
    level: list[Any] = [value]
    for _ in range(_MAX_DEPTH):
        level = [inner for each in level for inner in _inside(each) if isinstance(inner, dict | list)]
        if not level:
            return False
    return True


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return cast(dict[str, Any], value).values()
    return cast(list[Any], value) if isinstance(value, list) else ()
