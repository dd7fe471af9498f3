"""Serve runs: made, waited for, streamed, listed, cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Final, Literal

import sqlalchemy as sa
from pydantic import BaseModel, Field, RootModel
from starlette.responses import Response

from deepagents_server.api.bodies import Checkpoint, Config, Id, Ids, Metadata
from deepagents_server.api.common import (
    Watched,
    answer,
    answer_list,
    event_stream,
    find_keys,
    nothing,
    read_rows,
    select_fields,
)
from deepagents_server.api.endpoint import DONE, STREAM, Answer, Endpoint
from deepagents_server.api.parameters import FLAG, LIMIT, OFFSET, TEXT, TEXTS, Parameter
from deepagents_server.api.threads import find_thread
from deepagents_server.cancel import cancel_runs
from deepagents_server.create import create_run, create_runs
from deepagents_server.database.engine import Row
from deepagents_server.database.runs import ACTIVE, delete_runs, show_run
from deepagents_server.database.tables import runs, threads
from deepagents_server.database.threads import questions_of
from deepagents_server.errors import ApiError, not_found
from deepagents_server.events import Event
from deepagents_server.runs.engine import Action
from deepagents_server.serialize import dump, load
from deepagents_server.server import Server
from deepagents_server.thread_events import is_over, read_end, read_run

BEAT: Final = 5.0
"""Seconds of silence after which a stream says that it is alive."""
_LOOK_AGAIN: Final = 15.0
"""Seconds after which who waits for a run asks the database, though nobody said that it is over."""
_ALWAYS: Final = ("metadata", "error")


Names = list[str] | Literal["*"]
MultitaskStrategy = Literal["reject", "interrupt", "rollback", "enqueue", "steer"]
StreamMode = Literal[
    "values", "updates", "custom", "messages", "messages-tuple", "tasks", "checkpoints", "debug", "events"
]


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


class CancelManyBody(BaseModel):
    """Runs that are to be cancelled."""

    thread_id: Id | None = None
    run_ids: Ids | None = None
    status: Literal["pending", "running", "all"] | None = None


class BatchBody(RootModel[list[BatchRunBody]]):
    """Several runs."""


async def create(server: Server, given: RunBody, *, thread_id: str | None = None) -> Response:
    """Make a run in the background."""
    row = await _create(server, given, thread_id)
    return answer(show_run(row), headers={"content-location": run_path(row)})


async def create_batch(server: Server, given: BatchBody) -> Response:
    """Make several runs, all or none."""
    asked = [(each.model_dump(exclude={"thread_id"}), each.thread_id) for each in given.root]
    made = await create_runs(server, asked)
    return answer([show_run(row) for row in made])


async def stream(server: Server, given: RunBody, *, thread_id: str | None = None) -> Response:
    """Make a run and stream what it does."""
    row = await _create(server, given, thread_id, streamed=True)
    return _stream(server, row, after=0, cancels=given.on_disconnect == "cancel")


async def wait(server: Server, given: RunBody, *, thread_id: str | None = None) -> Response:
    """Make a run and answer with the values that it leaves."""
    row = await _create(server, given, thread_id)
    return _join(server, row, cancels=given.on_disconnect == "cancel")


async def list_runs(
    server: Server,
    *,
    thread_id: str,
    limit: int = 10,
    offset: int = 0,
    status: str | None = None,
    select: Sequence[str] = (),
) -> Response:
    """List the runs of a thread, newest first."""
    await find_thread(server, thread_id)
    query = sa.select(runs).where(runs.c.thread_id == thread_id)
    if status:
        query = query.where(runs.c.status == status)
    query = query.order_by(runs.c.number.desc()).limit(limit).offset(offset)
    rows = read_rows(server.database, runs, await find_keys(server.database, query, runs))
    return await answer_list(select_fields(show_run(row), select) async for row in rows)


async def get(server: Server, *, thread_id: str, run_id: str) -> Response:
    """Show a run."""
    return answer(show_run(await _find_run(server, thread_id, run_id)))


async def delete(server: Server, *, thread_id: str, run_id: str) -> None:
    """Remove a run that is over."""
    row = await _find_run(server, thread_id, run_id)
    if row["status"] in ACTIVE:
        raise ApiError(409, "The run is not over; cancel it first.")
    async with server.database.write() as connection:
        await delete_runs(connection, [run_id])


async def join(
    server: Server, *, thread_id: str, run_id: str, cancel_on_disconnect: bool = False
) -> Response:
    """Wait for a run and answer with the values that it left."""
    return _join(server, await _find_run(server, thread_id, run_id), cancels=cancel_on_disconnect)


async def join_stream(
    server: Server,
    *,
    thread_id: str,
    run_id: str,
    stream_mode: Sequence[str] = (),
    cancel_on_disconnect: bool = False,
    last_event_id: str | None = None,
) -> Response:
    """Stream a run that is there: what it still does, or all since an event."""
    row = await _find_run(server, thread_id, run_id)
    modes = [mode for mode in stream_mode if mode]
    modes += _ALWAYS if modes else ()
    return _stream(server, row, after_event(last_event_id), cancels=cancel_on_disconnect, modes=modes)


async def cancel(
    server: Server, *, thread_id: str, run_id: str, wait: bool = False, action: Action = "interrupt"
) -> Response:
    """End a run early."""
    row = await _find_run(server, thread_id, run_id)
    if row["status"] not in ACTIVE:
        raise ApiError(404, "The run is over; there is nothing to cancel.")
    await server.engine.cancel(row, action)
    if wait:
        await wait_for(server, run_id)
    return nothing(204 if wait else 202)


async def cancel_many(server: Server, given: CancelManyBody, *, action: Action = "interrupt") -> None:
    """End the runs of a thread, or those that are named, early."""
    if not given.status and not (given.thread_id and given.run_ids):
        raise ApiError(422, "Name a status, or thread_id and run_ids.")
    chosen: list[sa.ColumnElement[bool]] = []
    if given.status not in (None, "all"):
        chosen.append(runs.c.status == given.status)
    if given.thread_id:
        chosen.append(runs.c.thread_id == given.thread_id)
    if given.run_ids:
        chosen.append(runs.c.run_id.in_(given.run_ids))
    if not await cancel_runs(server, action, *chosen):
        raise ApiError(404, "There are no such runs to cancel.")


async def _find_run(server: Server, thread_id: str, run_id: str) -> Row:
    query = sa.select(runs).where(runs.c.run_id == run_id, runs.c.thread_id == thread_id)
    row = await server.database.row(query)
    if row is None:
        raise not_found("run", run_id)
    return row


def run_path(row: Row) -> str:
    """Return the path of a run."""
    return f"/threads/{row['thread_id']}/runs/{row['run_id']}"


async def _create(server: Server, given: RunBody, thread_id: str | None, *, streamed: bool = False) -> Row:
    fields = {**given.model_dump(), "streamed": streamed or None}
    return await create_run(server, fields, thread_id)


@contextmanager
def end_with_client(server: Server, row: Row, *, cancels: bool = True) -> Generator[None]:
    """End a run early if its client goes before the block has ended, and the task of the block with it."""
    try:
        yield
    except BaseException:
        if cancels:
            server.engine.cancel_soon(row, "interrupt")
        raise


async def wait_for(server: Server, run_id: str) -> None:
    """Wait until a run is over."""
    await server.events.wait_for_end(run_id, lambda: is_over(server, run_id), _LOOK_AGAIN)


def _join(server: Server, row: Row, *, cancels: bool) -> Response:
    headers = {"content-location": run_path(row), "location": f"{run_path(row)}/join"}
    answered = _write_spaces(server, row, cancels=cancels)
    return Watched(answered, headers=headers, media_type="application/json")


async def _write_spaces(server: Server, row: Row, *, cancels: bool) -> AsyncIterator[bytes]:
    """Write spaces while a result is waited for: JSON may begin so, and the client sees us alive."""
    result = asyncio.ensure_future(final_values(server, row))
    try:
        with end_with_client(server, row, cancels=cancels):
            while not (await asyncio.wait([result], timeout=BEAT))[0]:
                yield b" "
        yield result.result()
    finally:
        result.cancel()


async def final_values(server: Server, row: Row) -> bytes:
    """Wait for a run and return its thread's values, or how it failed, as JSON."""
    await wait_for(server, row["run_id"])
    _, error = await read_end(server, row["run_id"])
    if error:
        return dump({"__error__": error})
    thread = await server.database.row(sa.select(threads).where(threads.c.thread_id == row["thread_id"]))
    values = load(thread["values"]) if thread else None
    asked = questions_of(thread) if thread else []
    return dump({**(values or {}), "__interrupt__": asked} if asked else values)


async def check_end(server: Server, run: Row) -> Row:
    """Return the thread of a run that has come to its end; it may ask a person.

    Raises:
        ApiError: if it failed, was ended early, or is gone.
    """
    status, error = await read_end(server, run["run_id"])
    if error:
        raise ApiError(500, f"The agent failed: {error['message']}")
    if status == "interrupted":
        raise ApiError(409, "The run was ended early.")
    return await find_thread(server, run["thread_id"])


def _stream(server: Server, row: Row, after: int, *, cancels: bool, modes: Sequence[str] = ()) -> Response:
    headers = {"content-location": run_path(row), "location": f"{run_path(row)}/stream"}
    return event_stream(_frames(server, row, after, cancels=cancels, modes=modes), headers)


async def _frames(
    server: Server, row: Row, after: int, *, cancels: bool, modes: Sequence[str]
) -> AsyncIterator[bytes]:
    resumable = bool(load(row["kwargs"]).get("stream_resumable"))
    with end_with_client(server, row, cancels=cancels):
        async with read_run(server, row["run_id"], after, BEAT) as events:
            wanted = (each async for each in events if not modes or each is None or mode_of(each) in modes)
            async for event in wanted:
                yield frame(event, numbered=resumable)


def frame(event: Event | None, *, numbered: bool) -> bytes:
    """Write an event as a client reads it from the stream; `None` is a sign of life."""
    if event is None:
        return b": heartbeat\r\n\r\n"
    number = f"id: {event.seq}\r\n" if numbered else ""
    return b"event: %s\r\ndata: %s\r\n%s\r\n" % (event.name.encode(), event.data, number.encode())


def mode_of(event: Event) -> str:
    """Name the mode of streaming to which an event belongs."""
    mode = event.name.split("|")[0]
    return "messages-tuple" if mode == "messages" else mode.split("/")[0]


def after_event(last: str | None) -> int:
    """Read the number of the last event that a client has; what is not a number begins at the start."""
    if last is None:
        return 0
    return int(last) if last.isascii() and last.isdigit() and len(last) < 17 else 0


_CREATE: Final = ("threads", "create_run")
_READ: Final = ("threads", "read")
_UPDATE: Final = ("threads", "update")
_DELETE: Final = ("threads", "delete")
_PAGE: Final = {"limit": LIMIT, "offset": OFFSET, "status": TEXT, "select": TEXTS}
_JOIN: Final = {"cancel_on_disconnect": FLAG}
_JOIN_STREAM: Final = {"stream_mode": TEXTS, **_JOIN}
_ACTION: Final = {"action": Parameter(Action)}
_CANCEL: Final = {"wait": FLAG, **_ACTION}
_CANCELLED: Final = Answer(status="2XX")
ENDPOINTS: Final = [
    Endpoint("/threads/{thread_id}/runs", "POST", create, _CREATE, body=RunBody),
    Endpoint("/threads/{thread_id}/runs", "GET", list_runs, _READ, query=_PAGE),
    Endpoint("/threads/{thread_id}/runs/stream", "POST", stream, _CREATE, body=RunBody, answer=STREAM),
    Endpoint("/threads/{thread_id}/runs/wait", "POST", wait, _CREATE, body=RunBody),
    Endpoint("/threads/{thread_id}/runs/{run_id}", "GET", get, _READ),
    Endpoint("/threads/{thread_id}/runs/{run_id}", "DELETE", delete, _DELETE, answer=DONE),
    Endpoint("/threads/{thread_id}/runs/{run_id}/join", "GET", join, _READ, query=_JOIN),
    Endpoint(
        "/threads/{thread_id}/runs/{run_id}/stream",
        "GET",
        join_stream,
        _READ,
        query=_JOIN_STREAM,
        header="last-event-id",
        answer=STREAM,
    ),
    Endpoint(
        "/threads/{thread_id}/runs/{run_id}/cancel", "POST", cancel, _UPDATE, query=_CANCEL, answer=_CANCELLED
    ),
    Endpoint("/runs", "POST", create, _CREATE, body=RunBody),
    Endpoint("/runs/stream", "POST", stream, _CREATE, body=RunBody, answer=STREAM),
    Endpoint("/runs/wait", "POST", wait, _CREATE, body=RunBody),
    Endpoint("/runs/batch", "POST", create_batch, _CREATE, body=BatchBody),
    Endpoint(
        "/runs/cancel", "POST", cancel_many, _UPDATE, body=CancelManyBody, query=_ACTION, answer=_CANCELLED
    ),
]
