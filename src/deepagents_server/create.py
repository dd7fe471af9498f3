"""Make runs: on a thread that is free, or by the rule for one that is busy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any, Final

import sqlalchemy as sa
from langgraph.checkpoint.base.id import uuid6
from sqlalchemy.ext.asyncio import AsyncConnection

from deepagents._values import field, valueclass
from deepagents_server.database.assistants import get_assistant
from deepagents_server.database.engine import Row
from deepagents_server.database.filters import clean_metadata
from deepagents_server.database.leftovers import tables_of_savers
from deepagents_server.database.notices import Notice
from deepagents_server.database.quotas import check_quota
from deepagents_server.database.runs import (
    AUTH,
    CHECKPOINT,
    STEER,
    Here,
    Taken,
    add_run,
    count_active,
    lock_leases,
    mark_cancelled,
    mark_steered,
    new_run,
    pass_on,
)
from deepagents_server.database.tables import runs, server_time, threads
from deepagents_server.database.threads import add_thread, get_thread
from deepagents_server.errors import ApiError, not_found
from deepagents_server.server import Server

_KEPT: Final = (
    "input", "command", "context", "stream_mode", "stream_subgraphs", "stream_resumable", "interrupt_before",
    "interrupt_after", "webhook", "durability", "feedback_keys", "streamed", "on_disconnect",
)  # fmt: skip
_TEMPORARY: Final = MappingProxyType({"ttl_seconds": 60, "ttl_strategy": "delete"})
"""A minute, in which clients that lost a stream can come back for its end."""
_REPLACES: Final = ("interrupt", "rollback")
"""By which the runs that are there end for a new one."""
_MOST_URGENT: Final = 10
_CONFIG: Final = ("tags", "metadata", "recursion_limit", "max_concurrency", "run_name")
"""What a client may configure; LangChain's other keys hold objects of Python."""


Asked = tuple[Mapping[str, Any], str | None]
"""The fields of the protocol, and the thread; without one, a run gets one of its own."""


async def create_run(server: Server, given: Mapping[str, Any], thread_id: str | None = None) -> Row:
    """Insert a run and let it start as soon as it may.

    Raises:
        ApiError: if assistant or thread are not there, or the thread is busy and the run does not wait.
    """
    return (await create_runs(server, [(given, thread_id)]))[0]


async def create_runs(server: Server, asked: Sequence[Asked]) -> list[Row]:
    """Insert runs, all or none, and let them start as soon as they may.

    Raises:
        ApiError: as `create_run`.
    """
    # A client that goes now must not leave runs that this process has taken and does not begin.
    return await asyncio.shield(_create_runs(server, asked))


async def _create_runs(server: Server, asked: Sequence[Asked]) -> list[Row]:
    async with creating(server) as new:
        await lock_leases(new.connection, [thread_id for _, thread_id in asked if thread_id])
        return [await new.add(given, thread_id) for given, thread_id in asked]


@asynccontextmanager
async def creating(server: Server) -> AsyncGenerator[NewRuns]:
    """Make runs in one transaction; when it has ended, they begin, or wait as their strategies say."""
    with server.engine.reserving() as here:
        async with server.engine.notices.write(server.database) as (connection, notices):
            yield (new := NewRuns(server, connection, notices, here))
        for taken in new.taken:
            server.engine.start(taken)


@valueclass
class NewRuns:
    """Runs of a transaction that has not ended."""

    server: Server
    connection: AsyncConnection
    notices: list[Notice]
    here: Here
    """This process, where runs may begin at once."""
    taken: list[Taken] = field(default_factory=list[Taken])

    async def add(self, given: Mapping[str, Any], thread_id: str | None = None) -> Row:
        """Insert a run, and take it for this process if it may begin at once.

        Raises:
            ApiError: as `create_run`.
        """
        server, connection = self.server, self.connection
        if server.config.http.get("disable_webhooks") is True:
            given = {**given, "webhook": None}
        if given.get("webhook"):
            server.webhooks.check(given["webhook"])
        assistant = await get_assistant(connection, given["assistant_id"])
        if assistant["graph_id"] not in server.graphs:
            raise ApiError(404, f"The graph {assistant['graph_id']!r} of this assistant is not served here.")
        thread = await _thread(connection, given, thread_id)
        if named := _checkpoint(given):
            await _check_checkpoint(connection, thread, named)
        busy = await count_active(connection, thread["thread_id"]) if thread_id else 0
        row = _row(assistant, thread, given, server)
        strategy = row["multitask_strategy"]
        if busy and strategy == "reject":
            raise ApiError(
                409, "The thread is busy with another run; wait for it, or choose a multitask_strategy."
            )
        await check_quota(connection, server.scope.owner, busy if strategy in _REPLACES else 0)
        row = await add_run(connection, row)
        await _mark_thread(connection, thread, assistant)
        self.notices.append(("begin", row["thread_id"]))
        if busy:
            self.notices.extend(await self._make_way(row))
        return await self._pass_on(row)

    async def _pass_on(self, row: Row) -> Row:
        """Let a run wait until it is due, or begin if its thread is free."""
        if row["due_at"]:
            # Not by what was returned: a file numbers runs after that.
            of_run = sa.select(runs).where(runs.c.run_id == row["run_id"])
            waiting = (await self.connection.execute(of_run)).mappings().one()
            await self.server.database.queue.add(self.connection, waiting)
        taken = await pass_on(self.connection, self.server.database.queue, row["thread_id"], self.here)
        self.taken.extend([taken] if taken else [])
        return taken[0] if taken and taken[0]["run_id"] == row["run_id"] else row

    async def _make_way(self, row: Row) -> list[Notice]:
        others = sa.and_(runs.c.thread_id == row["thread_id"], runs.c.run_id != row["run_id"])
        strategy = row["multitask_strategy"]
        if strategy in _REPLACES:
            return await mark_cancelled(self.connection, self.server.database.queue, others, strategy)
        return await mark_steered(self.connection, others) if strategy == STEER else []


def _checkpoint(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the checkpoint that a run is to begin at, as a graph's configuration has it."""
    named: dict[str, Any] = {**(given.get("checkpoint") or {})}
    if given.get("checkpoint_id"):
        named["checkpoint_id"] = given["checkpoint_id"]
    return {name: named[name] for name in CHECKPOINT if name in named}


async def _check_checkpoint(connection: AsyncConnection, thread: Row, named: Mapping[str, Any]) -> None:
    """Refuse a checkpoint that a thread does not have: a graph would begin anew there.

    Raises:
        ApiError: if it has none of this name.
    """
    if not (checkpoint_id := named.get("checkpoint_id")):
        return
    table = tables_of_savers(is_file=connection.dialect.name == "sqlite")[0]
    query = sa.select(table.c.checkpoint_id).where(
        table.c.thread_id == thread["thread_id"],
        table.c.checkpoint_ns == (named.get("checkpoint_ns") or ""),
        table.c.checkpoint_id == checkpoint_id,
    )
    if (await connection.execute(query)).first() is None:
        raise not_found("checkpoint", checkpoint_id)


async def _thread(connection: AsyncConnection, given: Mapping[str, Any], thread_id: str | None) -> Row:
    if thread_id is None:
        kept = given.get("on_completion") in ("keep", "complete", "continue")
        lifetime = None if kept else _TEMPORARY
        return await add_thread(connection, None, given.get("metadata"), lifetime=lifetime)
    if given.get("if_not_exists") == "create":
        return await add_thread(connection, thread_id, given.get("metadata"), may_exist=True)
    return await get_thread(connection, thread_id, changes=True)


def _row(assistant: Row, thread: Row, given: Mapping[str, Any], server: Server) -> dict[str, Any]:
    metadata = {**assistant["metadata"], **thread["metadata"], **clean_metadata(given.get("metadata"))}
    metadata |= {"graph_id": assistant["graph_id"], "assistant_id": assistant["assistant_id"]}
    kwargs = {name: given[name] for name in _KEPT if given.get(name) is not None}
    # The headers last: a proxy may have set them, and a client cannot say otherwise.
    context: dict[str, Any] = {**assistant["context"], **(given.get("context") or {})}
    if context:
        kwargs["context"] = context
    # A graph, or a function that makes one, may know of the configuration only.
    config = merge_config({"configurable": context}, assistant["config"])
    config = merge_config(config, given.get("config"))
    config = merge_config(config, {"configurable": server.headers})
    kwargs["config"] = _with_user(config, server.scope.user)
    kwargs["checkpoint"] = _checkpoint(given)
    values = {
        "run_id": str(uuid6()),
        "owner": server.scope.owner,
        "thread_id": thread["thread_id"],
        "assistant_id": assistant["assistant_id"],
        "graph_id": assistant["graph_id"],
        "metadata": metadata,
        "multitask_strategy": given.get("multitask_strategy") or "enqueue",
        "version": server.engine.version,
        "priority": _priority(metadata),
    }
    if given.get("after_seconds"):
        values["due_at"] = server_time(given["after_seconds"])
    return new_run(values, kwargs)


def _priority(metadata: Mapping[str, Any]) -> int:
    value = metadata.get("priority", 0)
    if not isinstance(value, int) or not -_MOST_URGENT <= value <= _MOST_URGENT:
        raise ApiError(
            422, f"metadata.priority: {value!r} is not a whole number from -{_MOST_URGENT} to {_MOST_URGENT}."
        )
    return value


def merge_config(base: Mapping[str, Any], given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Put a run's configuration over its assistant's."""
    over = given or {}
    first: dict[str, Any] = base.get("configurable") or {}
    second: dict[str, Any] = over.get("configurable") or {}
    return {**base, **over, "configurable": {**first, **second}}


def _with_user(config: Mapping[str, Any], user: Mapping[str, Any] | None) -> dict[str, Any]:
    """Tell a run who asked for it, and keep callers from telling it that, or what only LangGraph may."""
    given: dict[str, Any] = config["configurable"]
    kept = {name: value for name, value in given.items() if not name.startswith((AUTH, "__"))}
    if user:
        kept |= {
            f"{AUTH}user": dict(user),
            f"{AUTH}user_id": user["identity"],
            f"{AUTH}permissions": user["permissions"],
        }
    return {**{name: config[name] for name in _CONFIG if name in config}, "configurable": kept}


async def _mark_thread(connection: AsyncConnection, thread: Row, assistant: Row) -> None:
    # Web clients look for threads by these two.
    named = {"graph_id": assistant["graph_id"], "assistant_id": assistant["assistant_id"]}
    changed = {"status": "busy", "metadata": {**thread["metadata"], **named}, "updated_at": server_time()}
    marked = threads.update().where(threads.c.thread_id == thread["thread_id"]).values(changed)
    if not (await connection.execute(marked)).rowcount:
        # It has just been removed.
        raise not_found("thread", thread["thread_id"])
