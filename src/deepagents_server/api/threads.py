"""Serve threads: made, found, read, changed, copied."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from typing import Annotated, Any, Final, Literal, cast

import sqlalchemy as sa
from langgraph.types import StateSnapshot
from pydantic import BaseModel, BeforeValidator, Field
from starlette.responses import Response

from deepagents_server.api.bodies import Checkpoint, Id, Ids, Metadata, Minutes, SearchBody, merge_metadata
from deepagents_server.api.common import answer, answer_list, answer_search, nothing, select_fields
from deepagents_server.api.endpoint import DONE, Endpoint
from deepagents_server.api.parameters import FLAG, LIMIT, TEXT, TEXTS, Parameter
from deepagents_server.config_file import Strategy
from deepagents_server.database.copying import copy_thread
from deepagents_server.database.engine import Row
from deepagents_server.database.filters import contains
from deepagents_server.database.quotas import check_kept
from deepagents_server.database.tables import server_time, threads
from deepagents_server.database.threads import (
    add_thread,
    find_labelled,
    get_thread,
    show_lifetime,
    show_thread,
)
from deepagents_server.errors import ApiError, not_found
from deepagents_server.retention import prune, remove_thread
from deepagents_server.rewinds import keep_points
from deepagents_server.serialize import show_state
from deepagents_server.server import Server
from deepagents_server.state import open_graph, read_state, update_state

_STEPS: Final = re.compile(r"\.|(?=\[)")
_INDEX: Final = re.compile(r"\[-?[0-9]{1,9}\]")
_SORTED: Final = ("updated_at", "thread_id", "status", "created_at", "state_updated_at")


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

    @property
    def place(self) -> dict[str, Any]:
        """Return the checkpoint that is changed."""
        return {
            **(self.checkpoint or {}),
            **({"checkpoint_id": self.checkpoint_id} if self.checkpoint_id else {}),
        }


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


Alias = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")]
Place = Annotated[str, Field(pattern=r"^(values|metadata|config|interrupts)([.\[]|$)", max_length=1000)]


class ThreadSearchBody(SearchBody):
    """Threads that are looked for."""

    ids: Ids | None = None
    values: dict[str, Any] | None = None
    status: Literal["idle", "busy", "interrupted", "error"] | None = None
    extract: Annotated[dict[Alias, Place], Field(max_length=10)] | None = None
    """Parts of each thread that are wanted by themselves, as `values.messages[-1].content`, by a name."""


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


async def create(server: Server, given: ThreadBody) -> Response:
    """Make a thread."""
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
            await update_state(server, row, update.values, update.as_node, update.place)
    return answer(show_thread(await find_thread(server, row["thread_id"]) if given.supersteps else row))


async def find_thread(server: Server, thread_id: str) -> Row:
    """Return a thread.

    Raises:
        ApiError: if there is none that the caller may see.
    """
    async with server.database.read() as connection:
        return await get_thread(connection, thread_id)


async def get(server: Server, *, thread_id: str, include: str = "") -> Response:
    """Show a thread."""
    row = await find_thread(server, thread_id)
    included = {"ttl": show_lifetime(row)} if "ttl" in include.split(",") else {}
    return answer({**show_thread(row), **included})


async def change(server: Server, given: MetadataBody, *, thread_id: str, prefer: str = "") -> Response:
    """Add to a thread's metadata, or let it live longer or shorter."""
    async with server.database.write() as connection:
        if given.metadata:
            await check_kept(connection, server.database.owner)
        row = await get_thread(connection, thread_id, changes=True)
        changed = {
            "metadata": merge_metadata(server, row["metadata"], given.metadata),
            "updated_at": server_time(),
            **(given.ttl.lifetime if given.ttl else {}),
        }
        updated = threads.update().where(threads.c.thread_id == row["thread_id"]).values(changed)
        row = dict((await connection.execute(updated.returning(threads))).mappings().one())
    return nothing() if prefer == "return=minimal" else answer(show_thread(row))


async def delete(server: Server, *, thread_id: str) -> None:
    """Remove a thread with all that it holds; its runs end first."""
    await find_thread(server, thread_id)
    await remove_thread(server, thread_id)


async def prune_many(server: Server, given: PruneBody) -> Response:
    """Remove threads that rest, or all of their states but the last."""
    query = sa.select(threads.c.thread_id).where(threads.c.thread_id.in_(given.thread_ids))
    found = [row["thread_id"] for row in await server.database.rows(query)]
    return answer({"pruned_count": await prune(server, found, given.strategy)})


async def _make_query(given: ThreadSearchBody, server: Server) -> sa.Select[Any]:
    query = sa.select(threads)
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


async def search(server: Server, given: ThreadSearchBody) -> Response:
    """Find threads."""
    wanted = given.extract or {}
    inside = bool(wanted or any("." in name for name in given.select or ()))

    def show(row: Row) -> dict[str, Any]:
        shown = show_thread(row, parsed=inside)
        found = {name: _part(shown, place) for name, place in wanted.items()}
        return {**shown, "extracted": found} if wanted else shown

    if given.select and wanted:
        given.select.append("extracted")
    return await answer_search(server, await _make_query(given, server), threads, given, _SORTED, show)


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


async def count(server: Server, given: ThreadSearchBody) -> Response:
    """Count threads."""
    return answer(await server.database.count(await _make_query(given, server)))


async def copy(server: Server, *, thread_id: str) -> Response:
    """Make a thread with the same history."""
    made = await copy_thread(server.database, await find_thread(server, thread_id))
    await keep_points(server, made)
    return answer(show_thread(made))


async def state(
    server: Server,
    *,
    thread_id: str,
    checkpoint_id: str | None = None,
    subgraphs: bool = False,
    select: Sequence[str] = (),
) -> Response:
    """Show the state of a thread, now or at a checkpoint."""
    given = CheckpointBody(checkpoint={"checkpoint_id": checkpoint_id}, subgraphs=subgraphs, select=[*select])
    return await state_at(server, given, thread_id=thread_id)


async def state_at(server: Server, given: CheckpointBody, *, thread_id: str) -> Response:
    """Show the state of a thread at a checkpoint of the body."""
    checkpoint, select = given.checkpoint, given.select
    async with open_graph(server, await find_thread(server, thread_id)) as opened:
        if opened is None:
            return answer(select_fields(_empty_state(), select))
        config = opened.config(checkpoint)
        found = await read_state(opened, config, subgraphs=given.subgraphs)
    if checkpoint.get("checkpoint_id") and found.created_at is None:
        raise not_found("checkpoint", checkpoint["checkpoint_id"])
    return answer(select_fields(show_state(found), select))


def _empty_state() -> dict[str, Any]:
    empty: dict[str, Any] = {"values": {}, "next": [], "tasks": [], "metadata": {}, "interrupts": []}
    nothing_yet = ("created_at", "checkpoint", "parent_checkpoint", "checkpoint_id", "parent_checkpoint_id")
    return {**empty, **dict.fromkeys(nothing_yet)}


async def change_state(server: Server, given: StateBody, *, thread_id: str) -> Response:
    """Change the state of a thread, as if a node had done it."""
    async with server.database.read() as connection:
        await check_kept(connection, server.database.owner)
        thread = await get_thread(connection, thread_id)
    return answer(await update_state(server, thread, given.values, given.as_node, given.place))


async def list_history(
    server: Server, *, thread_id: str, limit: int = 10, before: str | None = None
) -> Response:
    """Show the states that a thread has had, newest first."""
    return await history(server, HistoryBody(limit=limit, before=before), thread_id=thread_id)


async def history(server: Server, given: HistoryBody, *, thread_id: str) -> Response:
    """Show the states that a thread has had, newest first."""
    states = _read_history(server, await find_thread(server, thread_id), given)
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


_READ: Final = ("threads", "read")
_SEARCH: Final = ("threads", "search")
_UPDATE: Final = ("threads", "update")
_DELETE: Final = ("threads", "delete")
_TTL: Final = {"include": Parameter(Annotated[str, Field(json_schema_extra={"enum": ["ttl"]})])}
_PAGE: Final = {"limit": LIMIT, "before": TEXT}
_STATE: Final = {"subgraphs": FLAG, "select": TEXTS}
ENDPOINTS: Final = [
    Endpoint("/threads", "POST", create, ("threads", "create"), body=ThreadBody, needs_body=True),
    Endpoint("/threads/search", "POST", search, _SEARCH, body=ThreadSearchBody),
    Endpoint("/threads/count", "POST", count, _SEARCH, body=ThreadSearchBody),
    Endpoint("/threads/prune", "POST", prune_many, _DELETE, body=PruneBody),
    Endpoint("/threads/{thread_id}", "GET", get, _READ, query=_TTL),
    Endpoint("/threads/{thread_id}", "PATCH", change, _UPDATE, body=MetadataBody, header="prefer"),
    Endpoint("/threads/{thread_id}", "DELETE", delete, _DELETE, answer=DONE),
    Endpoint("/threads/{thread_id}/copy", "POST", copy, _READ, also_asks=("threads", "create")),
    Endpoint("/threads/{thread_id}/state", "GET", state, _READ, query=_STATE),
    Endpoint("/threads/{thread_id}/state", "POST", change_state, _UPDATE, body=StateBody),
    Endpoint("/threads/{thread_id}/state/checkpoint", "POST", state_at, _READ, body=CheckpointBody),
    Endpoint("/threads/{thread_id}/state/{checkpoint_id}", "GET", state, _READ, query=_STATE),
    Endpoint("/threads/{thread_id}/history", "GET", list_history, _READ, query=_PAGE),
    Endpoint("/threads/{thread_id}/history", "POST", history, _READ, body=HistoryBody),
]
