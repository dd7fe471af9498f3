"""Stream whole threads, and take the commands of the thread-centric protocol."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final, cast

import sqlalchemy as sa
from pydantic import BaseModel, Field, ValidationError
from starlette.responses import Response

from deepagents_server.api.bodies import Config, Metadata, Offset, describe
from deepagents_server.api.common import answer, event_stream
from deepagents_server.api.endpoint import STREAM, Endpoint
from deepagents_server.api.parameters import TEXTS, parse_id
from deepagents_server.api.runs import BEAT, CommandBody, MultitaskStrategy, after_event, frame, mode_of
from deepagents_server.api.threads import find_thread
from deepagents_server.create import create_run
from deepagents_server.database.runs import ACTIVE
from deepagents_server.database.tables import runs
from deepagents_server.database.threads import questions_of
from deepagents_server.errors import ApiError, cannot_be_kept
from deepagents_server.events import Event
from deepagents_server.protocol_events import CHANNELS, MODES, RunTeller, Subscription
from deepagents_server.serialize import dump
from deepagents_server.server import Server
from deepagents_server.state import open_graph
from deepagents_server.thread_events import follow_thread, read_end

Batches = AsyncGenerator[list[dict[str, Any]]]
"""Events as the protocol tells them."""
_THREAD_MODES: Final = ("run_modes", "lifecycle", "state_update")
_CODES: Final = {
    401: "permission_denied",
    403: "permission_denied",
    429: "permission_denied",
    500: "unknown_error",
}


class EventsBody(BaseModel):
    """What to tell of a thread."""

    channels: list[str] = Field(min_length=1, max_length=100)
    namespaces: list[list[str]] | None = Field(None, max_length=1000)
    depth: Offset | None = None
    since: Offset = 0


class _Start(BaseModel):
    assistant_id: str
    input: Any = None
    config: Config | None = None
    metadata: Metadata | None = None
    multitask_strategy: MultitaskStrategy | None = None


class _Answer(BaseModel):
    interrupt_id: str
    response: Any = None


class _Respond(CommandBody):
    interrupt_id: str | None = None
    response: Any = None
    responses: list[_Answer] | None = None
    config: Config | None = None
    metadata: Metadata | None = None


class _Refused(Exception):
    """A command is refused: a code of the protocol, and a sentence."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


async def stream_events(server: Server, given: EventsBody, *, thread_id: str) -> Response:
    """Tell what happens on a thread: messages in blocks, tools, graphs that begin and end, questions."""
    return event_stream(_write_frames(await open_events(server, [read_subscription(given)], thread_id)))


def read_subscription(given: EventsBody) -> Subscription:
    """Read what a client subscribes to.

    Raises:
        ApiError: if there is no such channel.
    """
    wrong = [name for name in given.channels if name not in CHANNELS and not name.startswith("custom:")]
    if wrong:
        raise ApiError(422, f"channels: {wrong[0]!r} is none of {', '.join(CHANNELS)}, custom:NAME.")
    return Subscription(**given.model_dump())


async def open_events(server: Server, wanted: Collection[Subscription], thread_id: str) -> Batches:
    """Begin to tell what happens on a thread, each event once; an empty list is a sign of life.

    Raises:
        ApiError: if there is no such thread.
    """
    await find_thread(server, thread_id)
    return _tell(server, thread_id, wanted)


async def _write_frames(batches: Batches) -> AsyncIterator[bytes]:
    # The client waits for the first bytes before it starts a run.
    yield frame(None, numbered=False)
    async with aclosing(batches) as opened:
        async for events in opened:
            written = (Event(each["seq"], each["method"], dump(each)) for each in events)
            yield b"".join(frame(each, numbered=True) for each in written) or frame(None, numbered=False)


async def _tell(server: Server, thread_id: str, wanted: Collection[Subscription]) -> Batches:
    teller: RunTeller | None = None
    since = min((each.since for each in wanted), default=0)
    async with follow_thread(server, thread_id, since, whole=True, beat=BEAT) as events:
        async for followed in events:
            if followed is None:
                yield []
                continue
            run, event = followed
            if teller is None or teller.run_id != run["run_id"]:
                teller = RunTeller(run["run_id"], run["graph_id"])
            shown = teller.tell(event) if event else teller.tell_end(*await read_end(server, run["run_id"]))
            if shown := [each for each in shown if any(one.takes(each) for one in wanted)]:
                yield shown


async def join_stream(
    server: Server, *, thread_id: str, stream_mode: Sequence[str] = (), last_event_id: str | None = None
) -> Response:
    """Stream what the runs of a thread do from now on, or all since an event."""
    await find_thread(server, thread_id)
    modes = [mode for mode in stream_mode if mode] or ["run_modes"]
    wrong = [mode for mode in modes if mode not in _THREAD_MODES]
    if wrong:
        raise ApiError(422, f"stream_mode: {wrong[0]!r} is none of {', '.join(_THREAD_MODES)}.")
    since = None if last_event_id is None else after_event(last_event_id)
    return event_stream(_frames(server, thread_id, since, modes))


async def _frames(
    server: Server, thread_id: str, since: int | None, modes: Sequence[str]
) -> AsyncIterator[bytes]:
    yield frame(None, numbered=False)
    seen = since or 0
    async with follow_thread(server, thread_id, since, whole=False, beat=BEAT) as events:
        async for followed in events:
            if followed is None:
                yield frame(None, numbered=False)
                continue
            run, event = followed
            if event is None:
                ended = dump({"status": "run_done", "run_id": run["run_id"]})
                # It stands for the last event of the run, which clients do not see.
                event = Event(seen + 1, "metadata", ended)
            seen = event.seq
            if _is_wanted(event, modes):
                yield frame(event, numbered=True)


def _is_wanted(event: Event, modes: Sequence[str]) -> bool:
    mode = mode_of(event)
    if mode in ("metadata", "error"):
        return True
    return "run_modes" in modes or ("state_update" in modes and mode in ("values", "updates"))


async def command(server: Server, read: Any, *, thread_id: str) -> Response:
    """Take a command: start a run, answer a question, show the tree of graphs."""
    given = cast(dict[str, Any], read) if isinstance(read, dict) else {}
    number, method = given.get("id"), given.get("method")
    if not isinstance(number, int) or isinstance(number, bool) or not isinstance(method, str):
        refused = "Protocol commands must include an integer id and string method."
        return answer(failure(None, "invalid_argument", refused), 400)
    params: Any = given.get("params") or {}
    try:
        if method not in _COMMANDS:
            raise _Refused("unknown_command", f"Unknown protocol command: {method[:100]}")
        result = await _COMMANDS[method](server, parse_id("thread_id", thread_id), params)
    except _Refused as error:
        return answer(failure(number, error.code, str(error)))
    except ValidationError as error:
        return answer(failure(number, "invalid_argument", f"{method}: {describe(error, 'params')}"))
    except ApiError as error:
        return _refuse(number, error)
    except server.database.value_errors:
        return _refuse(number, cannot_be_kept())
    return answer(success(number, result))


def _refuse(number: int, error: ApiError) -> Response:
    # With its own status: clients and proxies look at what is forbidden, busy or too much.
    return answer(refusal(number, error), error.status, error.headers)


def success(number: int, result: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a command."""
    # No event is applied before the answer: all come by the stream.
    return {"type": "success", "id": number, "result": result, "meta": {"applied_through_seq": 0}}


def failure(number: int | None, code: str, message: str) -> dict[str, Any]:
    """Refuse a command with a code of the protocol."""
    return {"type": "error", "id": number, "error": code, "message": message}


def refusal(number: int | None, error: ApiError) -> dict[str, Any]:
    """Refuse a command for what any request is refused for."""
    return failure(number, _CODES.get(error.status, "invalid_argument"), error.detail)


async def _start(server: Server, thread_id: str, params: Any) -> dict[str, Any]:
    return await _run(server, thread_id, _Start.model_validate(params).model_dump())


async def _run(server: Server, thread_id: str, given: Mapping[str, Any]) -> dict[str, Any]:
    streamed = {"stream_mode": list(MODES), "stream_subgraphs": True, "stream_resumable": True}
    fields = {**given, **streamed, "if_not_exists": "create", "streamed": True}
    row = await create_run(server, fields, thread_id)
    return {"run_id": row["run_id"]}


async def _respond(server: Server, thread_id: str, params: Any) -> dict[str, Any]:
    given = _Respond.model_validate(params)
    thread = await find_thread(server, thread_id)
    answers = given.responses or []
    if given.interrupt_id is not None:
        answers = [_Answer(interrupt_id=given.interrupt_id, response=given.response)]
    asked = {each["id"] for each in questions_of(thread)}
    if not answers:
        raise _Refused("invalid_argument", "input.respond requires an interrupt_id, or responses.")
    if unknown := [each.interrupt_id for each in answers if each.interrupt_id not in asked]:
        raise _Refused("no_such_interrupt", f"Unknown or already-consumed interrupt: {unknown[0][:100]}")
    resume = {each.interrupt_id: each.response for each in answers}
    command = {**given.model_dump(include={"update", "goto"}), "resume": resume}
    fields = {"assistant_id": thread["metadata"].get("assistant_id"), "command": command}
    return await _run(
        server, thread["thread_id"], {**fields, "config": given.config, "metadata": given.metadata}
    )


async def _tree(server: Server, thread_id: str, params: Any) -> dict[str, Any]:
    thread = await find_thread(server, thread_id)
    of_thread = sa.select(runs).where(runs.c.thread_id == thread["thread_id"], runs.c.status.in_(ACTIVE))
    run = await server.database.row(of_thread.order_by(runs.c.number))
    if run is None:
        raise _Refused("no_such_run", "No active run is bound to this thread.")
    root: dict[str, Any] = {"namespace": [], "status": "running", "graph_name": run["graph_id"]}
    async with open_graph(server, thread) as opened:
        if opened is None:
            return {"tree": root}
        state = await opened.graph.aget_state(cast(Any, opened.config({})), subgraphs=True)
    return {"tree": {**root, "children": _branches(state, [])}}


def _branches(state: Any, namespace: list[str]) -> list[dict[str, Any]]:
    """Return the graphs that work inside a graph now."""
    found: list[dict[str, Any]] = []
    for task in state.tasks:
        if hasattr(task.state, "tasks"):
            inner = [*namespace, f"{task.name}:{task.id}"]
            status = "interrupted" if task.interrupts else "running"
            named = {"namespace": inner, "status": status, "graph_name": task.name}
            found.append({**named, "children": _branches(task.state, inner)})
    return found


_COMMANDS: Final = {"run.start": _start, "input.respond": _respond, "agent.getTree": _tree}
_COMMAND: Final = {
    "type": "object",
    "properties": {
        "id": {"type": "integer", "minimum": 0},
        "method": {"enum": [*_COMMANDS]},
        "params": {"type": "object"},
    },
    "required": ["id", "method"],
}
_READ: Final = ("threads", "read")
_MODES: Final = {"stream_mode": TEXTS}
EVENTS: Final = Endpoint(
    "/threads/{thread_id}/stream/events", "POST", stream_events, _READ, body=EventsBody, answer=STREAM
)
COMMANDS: Final = Endpoint(
    "/threads/{thread_id}/commands", "POST", command, ("threads", "create_run"), body=_COMMAND
)
ENDPOINTS: Final = [
    Endpoint(
        "/threads/{thread_id}/stream",
        "GET",
        join_stream,
        _READ,
        query=_MODES,
        header="last-event-id",
        answer=STREAM,
    ),
    EVENTS,
    COMMANDS,
]
