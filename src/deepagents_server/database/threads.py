"""Keep rows of threads."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import uuid4

import orjson
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from deepagents_server.database.engine import Database, Row
from deepagents_server.database.filters import clean_metadata
from deepagents_server.database.runs import add, lock_leases, make_lease
from deepagents_server.database.tables import server_time, thread_labels, threads
from deepagents_server.errors import ApiError, not_found
from deepagents_server.serialize import load

_LABEL: Final = 100
"""Signs of a text that `thread_labels` has."""
_FEW: Final = 500


async def get_thread(connection: AsyncConnection, thread_id: str, *, changes: bool = False) -> Row:
    """Return a thread; with `changes`, others who change it wait until this transaction ends.

    Raises:
        ApiError: if there is none that the caller may see.
    """
    query = sa.select(threads).where(threads.c.thread_id == thread_id)
    if changes:
        await lock_leases(connection, [thread_id])
        query = query.with_for_update()
    row = (await connection.execute(query)).mappings().first()
    if row is None:
        raise not_found("thread", thread_id)
    return dict(row)


def questions_of(thread: Row) -> list[dict[str, Any]]:
    """List what the runs of a thread ask a person: the `id` and the `value` of each question."""
    return [each for asked in load(thread["interrupts"]).values() for each in asked]


async def add_thread(
    connection: AsyncConnection,
    thread_id: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    *,
    may_exist: bool = False,
    lifetime: Mapping[str, Any] | None = None,
) -> Row:
    """Insert a thread; `lifetime` has the columns that say when it goes by itself.

    Raises:
        ApiError: if there is one with this id already.
    """
    stamp = server_time()
    row: dict[str, Any] = {
        "thread_id": thread_id or str(uuid4()),
        "status": "idle",
        "metadata": clean_metadata(metadata),
        "config": {},
        "values": None,
        "interrupts": "{}",
        "error": None,
        "created_at": stamp,
        "updated_at": stamp,
        "state_updated_at": stamp,
        **(lifetime or {}),
    }
    if added := await add(connection, threads, row):
        await make_lease(connection, row["thread_id"])
        return added
    if not may_exist:
        raise ApiError(409, f"There is a thread {row['thread_id']!r} already.")
    return await get_thread(connection, row["thread_id"], changes=True)


async def find_labelled(database: Database, wanted: Mapping[str, Any]) -> list[str] | None:
    """Return the threads with a text in their metadata that few have; `None` if no text is so rare.

    For a file, whose indexes cannot read JSON, and whose planner does not know what is rare.
    """
    if database.is_shared:
        return None
    for name, value in wanted.items():
        if isinstance(value, str):
            labelled = sa.select(thread_labels.c.thread_id).where(
                thread_labels.c.owner == database.owner,
                thread_labels.c.name == name,
                thread_labels.c.value == value[:_LABEL],
            )
            found = await database.rows(labelled.limit(_FEW + 1))
            if len(found) <= _FEW:
                return [row["thread_id"] for row in found]
    return None


def show_thread(row: Mapping[str, Any], *, parsed: bool = True) -> dict[str, Any]:
    """Show a thread as clients read it; without `parsed`, its values stay as they are kept."""
    plain = ("thread_id", "created_at", "updated_at", "state_updated_at", "metadata", "status", "config")
    shown = {name: row[name] for name in plain}
    values = load(row["values"]) if parsed or row["values"] is None else orjson.Fragment(row["values"])
    shown |= {"values": values, "interrupts": load(row["interrupts"]) or {}}
    return {**shown, "error": load(row["error"])} if row["error"] else shown


def show_lifetime(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Show when a thread goes by itself, if this one has a lifetime of its own."""
    if (seconds := row["ttl_seconds"]) is None:
        return None
    ends = datetime.fromisoformat(row["updated_at"]) + timedelta(seconds=seconds)
    expires = ends.isoformat(timespec="microseconds")
    return {"strategy": row["ttl_strategy"], "ttl_minutes": seconds / 60, "expires_at": expires}
