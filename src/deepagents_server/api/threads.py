"""Serve threads: made, found, read, changed, copied."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from typing import Any, Final, cast

import sqlalchemy as sa
from langgraph.types import StateSnapshot
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from deepagents_server.api.bodies import (
    CheckpointBody,
    HistoryBody,
    MetadataBody,
    PruneBody,
    StateBody,
    ThreadBody,
    ThreadSearchBody,
    path_id,
    query_flag,
    query_number,
    read_body,
)
from deepagents_server.api.common import answer, answer_list, answer_search, nothing, select_fields, serving
from deepagents_server.cancel import cancel_runs
from deepagents_server.database.copying import copy_thread
from deepagents_server.database.engine import Row
from deepagents_server.database.filters import clean_metadata, contains
from deepagents_server.database.quotas import check_kept
from deepagents_server.database.tables import runs, server_time, threads
from deepagents_server.database.threads import (
    add_thread,
    find_labelled,
    get_thread,
    show_lifetime,
    show_thread,
)
from deepagents_server.errors import ApiError, not_found
from deepagents_server.keeping import prune, remove_thread
from deepagents_server.serialize import show_state
from deepagents_server.server import Server
from deepagents_server.state import open_graph, read_state, update_state

_STEPS: Final = re.compile(r"\.|(?=\[)")
_INDEX: Final = re.compile(r"\[-?[0-9]{1,9}\]")
_SORTED: Final = ("updated_at", "thread_id", "status", "created_at", "state_updated_at")


async def create(request: Request) -> Response:
    """Make a thread."""
    given = await read_body(request, ThreadBody, needed=True)
    server = serving(request)
    async with server.database.write() as connection:
        await check_kept(connection, server.database.owner)
        row = await add_thread(
            connection,
            given.thread_id,
            given.metadata,
            may_exist=given.if_exists == "do_nothing",
            lifetime=given.ttl.lifetime if given.ttl else None,
        )
    for step in given.supersteps or ():
        for update in step.updates:
            await update_state(server, row, update)
    return answer(show_thread(await _thread(request, row["thread_id"]) if given.supersteps else row))


async def _thread(request: Request, thread_id: str | None = None) -> Row:
    async with serving(request).database.read() as connection:
        return await get_thread(connection, thread_id or path_id(request, "thread_id"))


async def get(request: Request) -> Response:
    """Show a thread."""
    row = await _thread(request)
    names = request.query_params.get("include", "").split(",")
    included = {"ttl": show_lifetime(row)} if "ttl" in names else {}
    return answer({**show_thread(row), **included})


async def change(request: Request) -> Response:
    """Add to a thread's metadata, or let it live longer or shorter."""
    given = await read_body(request, MetadataBody)
    async with serving(request).database.write() as connection:
        row = await get_thread(connection, path_id(request, "thread_id"), changes=True)
        metadata = {**row["metadata"], **clean_metadata(given.metadata)}
        changed = {
            "metadata": metadata,
            "updated_at": server_time(),
            **(given.ttl.lifetime if given.ttl else {}),
        }
        updated = threads.update().where(threads.c.thread_id == row["thread_id"]).values(changed)
        row = dict((await connection.execute(updated.returning(threads))).mappings().one())
    if request.headers.get("prefer") == "return=minimal":
        return nothing()
    return answer(show_thread(row))


async def delete(request: Request) -> Response:
    """Remove a thread with all that it holds; its runs end first."""
    row = await _thread(request)
    await remove(serving(request), row["thread_id"])
    return nothing()


async def remove(server: Server, thread_id: str) -> None:
    """Remove a thread; its runs end first."""
    await cancel_runs(server, "interrupt", runs.c.thread_id == thread_id)
    await remove_thread(server, thread_id)
    # Who follows it may stop.
    server.events.wake(thread_id)


async def prune_many(request: Request) -> Response:
    """Remove threads that rest, or all of their states but the last."""
    given = await read_body(request, PruneBody)
    server = serving(request)
    query = sa.select(threads.c.thread_id).where(threads.c.thread_id.in_(given.thread_ids))
    found = [row["thread_id"] for row in await server.database.rows(query)]
    return answer({"pruned_count": await prune(server, found, given.strategy)})


async def _make_query(given: ThreadSearchBody, request: Request) -> sa.Select[Any]:
    query, server = sa.select(threads), serving(request)
    # Where handlers of `auth` say what may be seen, it need not be the owner's.
    if given.metadata and not server.scope.wanted:
        few = await find_labelled(server.database, given.metadata)
        query = query if few is None else query.where(threads.c.thread_id.in_(few))
    if given.ids:
        query = query.where(threads.c.thread_id.in_(given.ids))
    if given.status:
        query = query.where(threads.c.status == given.status)
    if given.metadata:
        query = query.where(contains(threads.c.metadata, given.metadata))
    if given.values:
        query = query.where(threads.c["values"].is_not(None), contains(threads.c["values"], given.values))
    return query


async def search(request: Request) -> Response:
    """Find threads."""
    given = await read_body(request, ThreadSearchBody)
    wanted = given.extract or {}
    inside = bool(wanted or any("." in name for name in given.select or ()))

    def show(row: Row) -> dict[str, Any]:
        shown = show_thread(row, parsed=inside)
        found = {name: _part(shown, place) for name, place in wanted.items()}
        return {**shown, "extracted": found} if wanted else shown

    if given.select and wanted:
        given.select.append("extracted")
    return await answer_search(request, await _make_query(given, request), threads, given, _SORTED, show)


def _part(value: Any, place: str) -> Any:
    """Return a part of a value, such as `values.messages[-1].content`; `None` if there is none."""
    for step in _STEPS.split(place):
        match value:
            case dict():
                value = cast(dict[str, Any], value).get(step)
            case list():
                held = cast(list[Any], value)
                index = int(step[1:-1]) if _INDEX.fullmatch(step) else len(held)
                value = held[index] if -len(held) <= index < len(held) else None
            case _:
                return None
    return value


async def count(request: Request) -> Response:
    """Count threads."""
    given = await read_body(request, ThreadSearchBody)
    return answer(await serving(request).database.count(await _make_query(given, request)))


async def copy(request: Request) -> Response:
    """Make a thread with the same history."""
    made = await copy_thread(serving(request).database, await _thread(request))
    return answer(show_thread(made))


async def state(request: Request) -> Response:
    """Show the state of a thread, now or at a checkpoint."""
    checkpoint = (
        {"checkpoint_id": request.path_params["checkpoint_id"]}
        if "checkpoint_id" in request.path_params
        else {}
    )
    subgraphs = query_flag(request, "subgraphs")
    select = request.query_params.getlist("select")
    return await _state(request, checkpoint, subgraphs=subgraphs, select=select)


async def state_at(request: Request) -> Response:
    """Show the state of a thread at a checkpoint of the body."""
    given = await read_body(request, CheckpointBody)
    return await _state(request, given.checkpoint, subgraphs=given.subgraphs, select=given.select)


async def _state(
    request: Request, checkpoint: dict[str, Any], *, subgraphs: bool, select: list[str] | None
) -> Response:
    row = await _thread(request)
    async with open_graph(serving(request), row) as opened:
        if opened is None:
            return answer(select_fields(_empty_state(), select))
        config = opened.config(checkpoint)
        found = await read_state(opened, config, subgraphs=subgraphs)
    if checkpoint.get("checkpoint_id") and found.created_at is None:
        raise not_found("checkpoint", checkpoint["checkpoint_id"])
    return answer(select_fields(show_state(found), select))


def _empty_state() -> dict[str, Any]:
    empty: dict[str, Any] = {"values": {}, "next": [], "tasks": [], "metadata": {}, "interrupts": []}
    nothing_yet = ("created_at", "checkpoint", "parent_checkpoint", "checkpoint_id", "parent_checkpoint_id")
    return {**empty, **dict.fromkeys(nothing_yet)}


async def change_state(request: Request) -> Response:
    """Change the state of a thread, as if a node had done it."""
    given = await read_body(request, StateBody)
    row = await _thread(request)
    return answer(await update_state(serving(request), row, given))


async def history(request: Request) -> Response:
    """Show the states that a thread has had, newest first."""
    if request.method == "GET":
        given = HistoryBody(
            limit=query_number(request, "limit", 10), before=request.query_params.get("before")
        )
    else:
        given = await read_body(request, HistoryBody)
    states = _read_history(serving(request), await _thread(request), given)
    try:
        return await answer_list(select_fields(show_state(each), given.select) async for each in states)
    except ValueError as error:
        raise ApiError(422, f"metadata: {str(error)[:200]}") from error


async def _read_history(server: Server, thread: Row, given: HistoryBody) -> AsyncGenerator[StateSnapshot]:
    """Yield states, one by one: a saver reads all that it is asked for before others get their turn."""
    async with open_graph(server, thread) as opened:
        if opened is None:
            return
        from_where: Any = {"checkpoint_id": given.before} if isinstance(given.before, str) else given.before
        before = opened.config(from_where) if from_where else None
        for _ in range(given.limit):
            states = opened.graph.aget_state_history(
                cast(Any, opened.config(given.checkpoint or {})),
                limit=1,
                before=before,
                filter=given.metadata,
            )
            async with server.database.turn():
                found = [each async for each in states]
            for each in found:
                yield each
                before = each.config
            if not found:
                return


# The first route that fits is taken: literal paths come before `{thread_id}`.
ROUTES: Final = [
    Route("/threads", create, methods=["POST"]),
    Route("/threads/search", search, methods=["POST"]),
    Route("/threads/count", count, methods=["POST"]),
    Route("/threads/prune", prune_many, methods=["POST"]),
    Route("/threads/{thread_id}", get, methods=["GET"]),
    Route("/threads/{thread_id}", change, methods=["PATCH"]),
    Route("/threads/{thread_id}", delete, methods=["DELETE"]),
    Route("/threads/{thread_id}/copy", copy, methods=["POST"]),
    Route("/threads/{thread_id}/state", state, methods=["GET"]),
    Route("/threads/{thread_id}/state", change_state, methods=["POST"]),
    Route("/threads/{thread_id}/state/checkpoint", state_at, methods=["POST"]),
    Route("/threads/{thread_id}/state/{checkpoint_id}", state, methods=["GET"]),
    Route("/threads/{thread_id}/history", history, methods=["GET", "POST"]),
]
