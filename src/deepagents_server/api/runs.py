"""Serve runs: made, waited for, streamed, listed, cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator, Sequence
from contextlib import aclosing, contextmanager
from typing import Any, Final

import sqlalchemy as sa
from pydantic import RootModel
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from deepagents_server.api.bodies import (
    BatchRunBody,
    CancelManyBody,
    RunBody,
    path_id,
    query_flag,
    query_number,
    read_body,
)
from deepagents_server.api.common import (
    Watched,
    answer,
    answer_list,
    find_keys,
    nothing,
    read_rows,
    select_fields,
    serving,
)
from deepagents_server.cancel import cancel_runs
from deepagents_server.create import create_run, create_runs
from deepagents_server.database.engine import Row
from deepagents_server.database.runs import ACTIVE, delete_runs, show_run
from deepagents_server.database.tables import runs, threads
from deepagents_server.database.threads import get_thread, questions_of
from deepagents_server.errors import ApiError, not_found
from deepagents_server.events import Event
from deepagents_server.follow import is_over
from deepagents_server.runs.engine import Action
from deepagents_server.serialize import dump, load
from deepagents_server.server import Server

BEAT: Final = 5.0
"""Seconds of silence after which a stream says that it is alive."""
_LOOK_AGAIN: Final = 15.0
"""Seconds after which who waits for a run asks the database, though nobody said that it is over."""
_ALWAYS: Final = ("metadata", "error")
SSE: Final = {"cache-control": "no-store", "x-accel-buffering": "no"}


class BatchBody(RootModel[list[BatchRunBody]]):
    """Several runs."""


async def create(request: Request) -> Response:
    """Make a run in the background."""
    row = await _create(request)
    return answer(show_run(row), headers={"content-location": run_path(row)})


async def create_batch(request: Request) -> Response:
    """Make several runs, all or none."""
    given = await read_body(request, BatchBody)
    asked = [(each.model_dump(exclude={"thread_id"}), each.thread_id) for each in given.root]
    made = await create_runs(serving(request), asked)
    return answer([show_run(row) for row in made])


async def stream(request: Request) -> Response:
    """Make a run and stream what it does."""
    row = await _create(request, streamed=True)
    return await _stream(request, row, after=0, cancels=_cancels(row))


async def wait(request: Request) -> Response:
    """Make a run and answer with the values that it leaves."""
    row = await _create(request)
    return await _join(request, row, cancels=_cancels(row))


async def list_runs(request: Request) -> Response:
    """List the runs of a thread, newest first."""
    server = serving(request)
    thread_id = path_id(request, "thread_id")
    async with server.database.read() as connection:
        await get_thread(connection, thread_id)
    query = sa.select(runs).where(runs.c.thread_id == thread_id)
    if status := request.query_params.get("status"):
        query = query.where(runs.c.status == status)
    query = query.order_by(runs.c.number.desc())
    limit, offset = query_number(request, "limit", 10), query_number(request, "offset", 0, 2**62)
    keys = await find_keys(server.database, query.limit(limit).offset(offset), runs)
    names = request.query_params.getlist("select")
    rows = read_rows(server.database, runs, keys)
    return await answer_list(select_fields(show_run(row), names) async for row in rows)


async def get(request: Request) -> Response:
    """Show a run."""
    return answer(show_run(await find_run(request)))


async def delete(request: Request) -> Response:
    """Remove a run that is over."""
    row = await find_run(request)
    if row["status"] in ACTIVE:
        raise ApiError(409, "The run is not over; cancel it first.")
    async with serving(request).database.write() as connection:
        await delete_runs(connection, [row["run_id"]])
    return nothing()


async def join(request: Request) -> Response:
    """Wait for a run and answer with the values that it left."""
    return await _join(request, await find_run(request), cancels=query_flag(request, "cancel_on_disconnect"))


async def join_stream(request: Request) -> Response:
    """Stream a run that is there: what it still does, or all since an event."""
    row = await find_run(request)
    last = request.headers.get("last-event-id")
    modes = [mode for mode in request.query_params.getlist("stream_mode") if mode]
    cancels = query_flag(request, "cancel_on_disconnect")
    return await _stream(request, row, after_event(last), cancels=cancels, modes=modes)


async def cancel(request: Request) -> Response:
    """End a run early."""
    row = await find_run(request)
    if row["status"] not in ACTIVE:
        raise ApiError(404, "The run is over; there is nothing to cancel.")
    server = serving(request)
    await server.engine.cancel(row, _action(request))
    if query_flag(request, "wait"):
        await wait_for(server, row["run_id"])
        return nothing()
    return nothing(202)


async def cancel_many(request: Request) -> Response:
    """End the runs of a thread, or those that are named, early."""
    given = await read_body(request, CancelManyBody)
    if not given.status and not (given.thread_id and given.run_ids):
        raise ApiError(422, "Name a status, or thread_id and run_ids.")
    chosen: list[sa.ColumnElement[bool]] = []
    if given.status not in (None, "all"):
        chosen.append(runs.c.status == given.status)
    if given.thread_id:
        chosen.append(runs.c.thread_id == given.thread_id)
    if given.run_ids:
        chosen.append(runs.c.run_id.in_(given.run_ids))
    if not await cancel_runs(serving(request), _action(request), *chosen):
        raise ApiError(404, "There are no such runs to cancel.")
    return nothing()


def _action(request: Request) -> Action:
    action = request.query_params.get("action", "interrupt")
    if action == "rollback":
        return "rollback"
    if action != "interrupt":
        raise ApiError(422, f"action: {action!r} is neither interrupt nor rollback.")
    return "interrupt"


async def find_run(request: Request) -> Row:
    """Return the run of a path.

    Raises:
        ApiError: if there is none that the caller may see.
    """
    run_id, thread_id = path_id(request, "run_id"), path_id(request, "thread_id")
    query = sa.select(runs).where(runs.c.run_id == run_id, runs.c.thread_id == thread_id)
    row = await serving(request).database.row(query)
    if row is None:
        raise not_found("run", run_id)
    return row


def run_path(row: Row) -> str:
    """Return the path of a run."""
    return f"/threads/{row['thread_id']}/runs/{row['run_id']}"


async def _create(request: Request, *, streamed: bool = False) -> Row:
    given = await read_body(request, RunBody)
    thread_id = path_id(request, "thread_id") if "thread_id" in request.path_params else None
    fields = {**given.model_dump(), "streamed": streamed or None}
    return await create_run(serving(request), fields, thread_id)


def _cancels(row: Row) -> bool:
    return load(row["kwargs"]).get("on_disconnect") == "cancel"


@contextmanager
def _end_with_client(server: Server, row: Row, *, cancels: bool) -> Generator[None]:
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


async def _join(request: Request, row: Row, *, cancels: bool) -> Response:
    headers = {"content-location": run_path(row), "location": f"{run_path(row)}/join"}
    answered = _write_spaces(serving(request), row, cancels=cancels)
    return Watched(answered, headers=headers, media_type="application/json")


async def _write_spaces(server: Server, row: Row, *, cancels: bool) -> AsyncIterator[bytes]:
    """Write spaces while a result is waited for: JSON may begin so, and the client sees us alive."""
    result = asyncio.ensure_future(final_values(server, row))
    try:
        with _end_with_client(server, row, cancels=cancels):
            while not (await asyncio.wait([result], timeout=BEAT))[0]:
                yield b" "
        yield result.result()
    finally:
        result.cancel()


async def final_values(server: Server, row: Row) -> bytes:
    """Wait for a run and return its thread's values, or how it failed, as JSON."""
    await wait_for(server, row["run_id"])
    run = await server.database.row(sa.select(runs).where(runs.c.run_id == row["run_id"]))
    if run and run["error"]:
        return dump({"__error__": load(run["error"])})
    thread = await server.database.row(sa.select(threads).where(threads.c.thread_id == row["thread_id"]))
    values = load(thread["values"]) if thread else None
    asked = questions_of(thread) if thread else []
    return dump({**(values or {}), "__interrupt__": asked} if asked else values)


async def check_end(server: Server, run: Row) -> Row:
    """Return the thread of a run that has come to its end; it may ask a person.

    Raises:
        ApiError: if it failed, was ended early, or is gone.
    """
    query: Any = sa.select(runs.c.status, runs.c.error).where(runs.c.run_id == run["run_id"])
    ended = await server.database.row(query)
    if ended and ended["error"]:
        raise ApiError(500, f"The agent failed: {load(ended['error'])['message']}")
    if ended and ended["status"] == "interrupted":
        raise ApiError(409, "The run was ended early.")
    async with server.database.read() as connection:
        return await get_thread(connection, run["thread_id"])


async def _stream(
    request: Request, row: Row, after: int, *, cancels: bool, modes: Sequence[str] = ()
) -> Response:
    headers = {**SSE, "content-location": run_path(row), "location": f"{run_path(row)}/stream"}
    frames = _frames(serving(request), row, after, cancels=cancels, modes=modes)
    return Watched(frames, headers=headers, media_type="text/event-stream")


async def _frames(
    server: Server, row: Row, after: int, *, cancels: bool, modes: Sequence[str]
) -> AsyncIterator[bytes]:
    run_id = row["run_id"]
    resumable = bool(load(row["kwargs"]).get("stream_resumable"))
    events = server.events.read(run_id, after, lambda: is_over(server, run_id), BEAT)

    def chosen(event: Event | None) -> bool:
        return event is None or not modes or mode_of(event) in (*modes, *_ALWAYS)

    with _end_with_client(server, row, cancels=cancels):
        async with aclosing(events) as opened:
            async for written in (
                frame(event, numbered=resumable) async for event in opened if chosen(event)
            ):
                yield written


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
    """Read the number of the last event that a client has; what is no number begins at the start."""
    if last is None:
        return 0
    return int(last) if last.isascii() and last.isdigit() and len(last) < 17 else 0


ROUTES: Final = [
    Route("/threads/{thread_id}/runs", create, methods=["POST"]),
    Route("/threads/{thread_id}/runs", list_runs, methods=["GET"]),
    Route("/threads/{thread_id}/runs/stream", stream, methods=["POST"]),
    Route("/threads/{thread_id}/runs/wait", wait, methods=["POST"]),
    Route("/threads/{thread_id}/runs/{run_id}", get, methods=["GET"]),
    Route("/threads/{thread_id}/runs/{run_id}", delete, methods=["DELETE"]),
    Route("/threads/{thread_id}/runs/{run_id}/join", join, methods=["GET"]),
    Route("/threads/{thread_id}/runs/{run_id}/stream", join_stream, methods=["GET"]),
    Route("/threads/{thread_id}/runs/{run_id}/cancel", cancel, methods=["POST"]),
    Route("/runs", create, methods=["POST"]),
    Route("/runs/stream", stream, methods=["POST"]),
    Route("/runs/wait", wait, methods=["POST"]),
    Route("/runs/batch", create_batch, methods=["POST"]),
    Route("/runs/cancel", cancel_many, methods=["POST"]),
]
