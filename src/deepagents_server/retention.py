"""Remove what is old enough, and threads when a client says so."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager
from typing import Any, Final

import sqlalchemy as sa
from langgraph.channels import DeltaChannel

from deepagents_server.background import in_background
from deepagents_server.cancel import cancel_runs
from deepagents_server.config import Ages, Strategy
from deepagents_server.database.engine import Row
from deepagents_server.database.removal import Remover, open_remover
from deepagents_server.database.tables import leases, runs, threads
from deepagents_server.rewinds import forget_files
from deepagents_server.server import Server
from deepagents_server.state import ThreadGraph, open_graph

_log: Final = logging.getLogger("deepagents.server")


@asynccontextmanager
async def removing_old(server: Server) -> AsyncGenerator[None]:
    """Remove what is old, again and again, until the block ends.

    With several servers on one database each does so; they find nothing to do after the first.
    """
    with open_remover(server.database.url) as remover:
        async with in_background(_watch(server, remover)):
            yield


async def _watch(server: Server, remover: Remover) -> None:
    ages = server.config.ages
    forgotten = set[tuple[str, str]]()
    while True:
        try:
            forgotten = await _forget_removed(server, forgotten)
            await asyncio.to_thread(remover.sweep, ages)
            forgotten = await _forget_removed(server, forgotten)
            await _thin_all(server, remover, ages)
        except Exception as error:  # noqa: BLE001
            # Whatever it was: without this loop nothing would go any more.
            server.database.log_failure("What is old cannot be removed now", error)
        await asyncio.sleep(ages.every)


async def _forget_removed(server: Server, forgotten: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Drop the files of threads that are gone, by whatever way; return which these are."""
    columns: list[sa.Column[Any]] = [leases.c.thread_id, leases.c.removed_at]
    query = sa.select(*columns).where(leases.c.removed_at.is_not(None))
    gone = {(row["thread_id"], row["removed_at"]) for row in await server.database.rows(query)}
    if new := gone - forgotten:
        await forget_files(server.graphs, [thread_id for thread_id, _ in new])
    return gone


async def _thin_all(server: Server, remover: Remover, ages: Ages) -> None:
    while found := await asyncio.to_thread(remover.find_expired, ages):
        for row in found:
            await _thin(server, remover, row)


async def remove_thread(server: Server, thread_id: str) -> None:
    """Remove a thread with all that it holds; its runs end first, and can write no more."""
    await cancel_runs(server, "interrupt", runs.c.thread_id == thread_id)
    with open_remover(server.database.url) as remover:
        await asyncio.to_thread(remover.remove_thread, thread_id)
    await forget_files(server.graphs, [thread_id])
    # Who follows it may stop.
    server.events.wake(thread_id)


async def prune(server: Server, thread_ids: Collection[str], strategy: Strategy) -> int:
    """Remove threads that rest, or their former states; return how many."""
    chosen = threads.c.thread_id.in_(thread_ids)
    with open_remover(server.database.url) as remover:
        if strategy == "delete":
            removed = await asyncio.to_thread(remover.remove_threads, chosen)
            left = await server.database.rows(sa.select(threads.c.thread_id).where(chosen))
            await forget_files(server.graphs, {*thread_ids} - {row["thread_id"] for row in left})
            return removed
        rows = await server.database.rows(sa.select(threads).where(chosen))
        return sum([await _thin(server, remover, row) for row in rows])


async def _thin(server: Server, remover: Remover, row: Row) -> bool:
    try:
        async with open_graph(server, row) as opened:
            kept = await _find_needed(opened) if opened else []
    except Exception as error:  # noqa: BLE001
        # Whatever makes a graph is code of the user; the thread stays whole, and the others have their turn.
        _log.warning("Old states of thread %s stay: %r", row["thread_id"], error)
        kept = []
    return await asyncio.to_thread(remover.thin, row["thread_id"], kept)


async def _find_needed(opened: ThreadGraph) -> list[str]:
    """Return the last checkpoint, and those before it without which it cannot be read.

    A channel that is saved as changes needs them back to the last checkpoint that holds its whole value.
    """
    saver: Any = opened.graph.checkpointer
    changes = {name for name, each in opened.graph.channels.items() if isinstance(each, DeltaChannel)}
    missing: set[str] = set()
    config: Any = opened.config({})
    needed: list[str] = []
    while config and (found := await saver.aget_tuple(config)):
        missing = missing if needed else changes & found.checkpoint["channel_versions"].keys()
        needed.append(found.checkpoint["id"])
        missing -= found.checkpoint["channel_values"].keys()
        config = found.parent_config if missing else None
    return needed
