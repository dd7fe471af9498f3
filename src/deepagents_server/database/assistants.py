"""Keep rows of assistants: one of each graph, and those that people configure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from deepagents_server.database.engine import Database, Row
from deepagents_server.database.owners import SHARED
from deepagents_server.database.runs import add
from deepagents_server.database.tables import assistant_versions, assistants
from deepagents_server.errors import ApiError
from deepagents_server.graphs import system_assistant_id
from deepagents_server.serialize import now

_VERSIONED = ("graph_id", "name", "description", "config", "context", "metadata")


async def add_system_assistants(
    database: Database, graph_ids: Iterable[str], descriptions: Mapping[str, str]
) -> None:
    """Give every graph its assistant."""
    stamp = now()
    async with database.write() as connection:
        for graph_id in graph_ids:
            row = {
                "assistant_id": system_assistant_id(graph_id),
                "owner": SHARED,
                "graph_id": graph_id,
                "name": graph_id,
                "description": descriptions.get(graph_id),
                "config": {},
                "context": {},
                "metadata": {"created_by": "system"},
                "version": 1,
                "created_at": stamp,
                "updated_at": stamp,
            }
            if not await add_assistant(connection, row):
                await _describe(connection, row)


async def _describe(connection: AsyncConnection, row: Row) -> None:
    """Describe an assistant, and its one version, as the file does now."""
    for table in (assistants, assistant_versions):
        described = table.update().where(table.c.assistant_id == row["assistant_id"])
        await connection.execute(described.values(description=row["description"]))


async def add_assistant(connection: AsyncConnection, row: Row) -> bool:
    """Insert an assistant and its first version; `False` if it is there."""
    if not await add(connection, assistants, row):
        return False
    await add_version(connection, row)
    return True


async def add_version(connection: AsyncConnection, row: Row) -> None:
    """Keep what an assistant is now under its version."""
    kept = {name: row[name] for name in ("assistant_id", "owner", "version", *_VERSIONED) if name in row}
    await add(connection, assistant_versions, {**kept, "created_at": now()})


async def get_assistant(connection: AsyncConnection, name: str) -> Row:
    """Return the assistant of an id, or of a graph's name.

    Raises:
        ApiError: if there is none that the caller may see.
    """
    query = sa.select(assistants).where(assistants.c.assistant_id.in_([name, system_assistant_id(name)]))
    row = (await connection.execute(query)).mappings().first()
    if row is None:
        raise ApiError(404, f"There is no assistant {name!r} here; POST /assistants/search lists them.")
    return dict(row)


def show_assistant(row: Mapping[str, Any]) -> dict[str, Any]:
    """Show an assistant as clients read it."""
    return {name: value for name, value in row.items() if name != "owner"}
