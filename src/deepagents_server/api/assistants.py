"""Serve assistants: a graph with a configuration, in versions."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any, Final, Literal
from uuid import uuid4

import sqlalchemy as sa
from pydantic import BaseModel, Field, TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError
from sqlalchemy.ext.asyncio import AsyncConnection
from starlette.responses import Response

from deepagents_server.api.access import ask_handlers
from deepagents_server.api.bodies import Config, Id, Metadata, SearchBody, merge_metadata
from deepagents_server.api.common import answer, answer_search
from deepagents_server.api.endpoint import DONE, Endpoint
from deepagents_server.api.parameters import FLAG, Parameter
from deepagents_server.database.assistants import (
    add_assistant,
    add_version,
    get_assistant,
    show_assistant,
)
from deepagents_server.database.engine import Row
from deepagents_server.database.filters import clean_metadata, contains
from deepagents_server.database.tables import assistant_versions, assistants, threads
from deepagents_server.errors import ApiError, not_found
from deepagents_server.graphs import Graph, system_assistant_id
from deepagents_server.retention import remove_thread
from deepagents_server.serialize import now
from deepagents_server.server import Server

_SORTED: Final = ("created_at", "assistant_id", "graph_id", "name", "updated_at")


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


class AssistantSearchBody(SearchBody):
    """Assistants that are looked for."""

    graph_id: str | None = None
    name: str | None = None


class VersionBody(BaseModel):
    """The version that an assistant is to have."""

    version: Annotated[int, Field(ge=1, le=2**31)]


async def _assistant(server: Server, assistant_id: str) -> Row:
    async with server.database.read() as connection:
        return await get_assistant(connection, assistant_id)


async def _own(connection: AsyncConnection, assistant_id: str) -> Row:
    """Return an assistant that the caller may change: none of those that the graphs have."""
    row = await get_assistant(connection, assistant_id)
    if row["metadata"].get("created_by") == "system":
        raise ApiError(
            403, f"The assistant of the graph {row['graph_id']!r} comes with it and cannot be changed."
        )
    return row


async def create(server: Server, given: AssistantBody) -> Response:
    """Make an assistant."""
    if given.graph_id not in server.graphs:
        raise not_found("graph", given.graph_id)
    stamp = now()
    row: dict[str, Any] = {
        "assistant_id": given.assistant_id or str(uuid4()),
        "graph_id": given.graph_id,
        "name": given.name or "Untitled",
        "description": given.description,
        "config": given.config or {},
        "context": given.context or {},
        "metadata": _metadata(given.metadata),
        "version": 1,
        "created_at": stamp,
        "updated_at": stamp,
    }
    async with server.database.write() as connection:
        if not await add_assistant(connection, row):
            if given.if_exists != "do_nothing":
                raise ApiError(409, f"There is an assistant {row['assistant_id']!r} already.")
            row = dict(await get_assistant(connection, row["assistant_id"]))
    return answer(show_assistant(row))


def _metadata(given: Any) -> dict[str, Any]:
    return {name: value for name, value in clean_metadata(given).items() if name != "created_by"}


async def get(server: Server, *, assistant_id: str) -> Response:
    """Show an assistant."""
    return answer(show_assistant(await _assistant(server, assistant_id)))


async def change(server: Server, given: AssistantChangeBody, *, assistant_id: str) -> Response:
    """Give an assistant a new version."""
    if given.graph_id is not None and given.graph_id not in server.graphs:
        raise not_found("graph", given.graph_id)
    async with server.database.write() as connection:
        row = await _own(connection, assistant_id)
        changes = {name: value for name, value in given.model_dump().items() if value is not None}
        if "metadata" in changes:
            changes["metadata"] = merge_metadata(server, row["metadata"], _metadata(changes["metadata"]))
        query = sa.select(sa.func.max(assistant_versions.c.version)).where(
            assistant_versions.c.assistant_id == row["assistant_id"]
        )
        latest = (await connection.execute(query)).scalar() or 0
        row = {**row, **changes, "version": latest + 1, "updated_at": now()}
        await add_version(connection, row)
        await _replace(connection, row)
    return answer(show_assistant(row))


async def _replace(connection: AsyncConnection, row: Row) -> None:
    changed = assistants.update().where(assistants.c.assistant_id == row["assistant_id"])
    await connection.execute(changed.values(dict(row)))


async def delete(server: Server, *, assistant_id: str, delete_threads: bool = False) -> None:
    """Remove an assistant with its versions, and with the threads that it worked on if the query says so."""
    if delete_threads:
        for permitted, thread_id in await _threads(server, assistant_id):
            await remove_thread(permitted, thread_id)
    async with server.database.write() as connection:
        row = await _own(connection, assistant_id)
        for table in (assistant_versions, assistants):
            await connection.execute(table.delete().where(table.c.assistant_id == row["assistant_id"]))


async def _threads(server: Server, assistant_id: str) -> list[tuple[Server, str]]:
    """Find the threads of an assistant that the caller may remove.

    Raises:
        ApiError: if the handlers keep the caller from removing one of them.
    """
    async with server.database.read() as connection:
        row = await _own(connection, assistant_id)
    of_assistant = contains(threads.c.metadata, {"assistant_id": row["assistant_id"]})
    found = await server.database.rows(sa.select(threads.c.thread_id).where(of_assistant))
    # Of all of them first: a refusal leaves every thread.
    asked = [
        (await ask_handlers(server, "threads", "delete", each, assistant_id=assistant_id), each["thread_id"])
        for each in found
    ]
    return [(permitted, thread_id) for (permitted, _), thread_id in asked]


def _make_query(given: AssistantSearchBody, server: Server) -> sa.Select[Any]:
    # A shared database may hold assistants of graphs that are served elsewhere.
    query = sa.select(assistants).where(assistants.c.graph_id.in_([*server.graphs]))
    if given.graph_id:
        query = query.where(assistants.c.graph_id == given.graph_id)
    if given.name:
        query = query.where(sa.func.lower(assistants.c.name).contains(given.name.lower(), autoescape=True))
    if given.metadata:
        query = query.where(contains(assistants.c.metadata, given.metadata))
    return query


async def search(server: Server, given: AssistantSearchBody) -> Response:
    """Find assistants."""
    return await answer_search(server, _make_query(given, server), assistants, given, _SORTED, show_assistant)


async def count(server: Server, given: AssistantSearchBody) -> Response:
    """Count assistants."""
    return answer(await server.database.count(_make_query(given, server)))


async def versions(server: Server, given: SearchBody, *, assistant_id: str) -> Response:
    """List the versions of an assistant, newest first."""
    row = await _assistant(server, assistant_id)
    query = sa.select(assistant_versions).where(assistant_versions.c.assistant_id == row["assistant_id"])
    if given.metadata:
        query = query.where(contains(assistant_versions.c.metadata, given.metadata))
    page = query.order_by(assistant_versions.c.version.desc()).limit(given.limit).offset(given.offset)
    return answer([show_assistant(each) for each in await server.database.rows(page)])


async def set_latest(server: Server, given: VersionBody, *, assistant_id: str) -> Response:
    """Make an assistant what it was in a version."""
    async with server.database.write() as connection:
        row = await _own(connection, assistant_id)
        query = sa.select(assistant_versions).where(
            assistant_versions.c.assistant_id == row["assistant_id"],
            assistant_versions.c.version == given.version,
        )
        kept = (await connection.execute(query)).mappings().first()
        if kept is None:
            raise not_found("version", given.version)
        row = {**row, **{name: kept[name] for name in kept if name in row and name != "created_at"}}
        row["updated_at"] = now()
        await _replace(connection, row)
    return answer(show_assistant(row))


async def of_graphs(server: Server) -> list[Row]:
    """Return the assistants that the graphs have."""
    ids = [system_assistant_id(name) for name in server.graphs]
    query = sa.select(assistants).where(assistants.c.assistant_id.in_(ids)).order_by(assistants.c.graph_id)
    return [*await server.database.rows(query)]


@asynccontextmanager
async def _graph(server: Server, assistant_id: str) -> AsyncGenerator[tuple[str, Graph]]:
    row = await _assistant(server, assistant_id)
    async with server.graphs.open(row["graph_id"], row["config"]) as graph:
        yield row["graph_id"], graph


async def schemas(server: Server, *, assistant_id: str) -> Response:
    """Describe what the graph of an assistant takes and gives."""
    async with _graph(server, assistant_id) as (graph_id, graph):
        return answer({"graph_id": graph_id, **_schemas(graph)})


def _schemas(graph: Graph) -> dict[str, Any]:
    state: Any = getattr(getattr(graph, "builder", None), "state_schema", None)
    return {
        "input_schema": json_schema(graph.get_input_jsonschema),
        "output_schema": json_schema(graph.get_output_jsonschema),
        "state_schema": json_schema(lambda: TypeAdapter(state).json_schema()) if state else None,
        # What a configuration may hold is the context, since LangGraph 1.0.
        "config_schema": json_schema(graph.get_context_jsonschema),
        "context_schema": json_schema(graph.get_context_jsonschema),
    }


def json_schema(make: Callable[[], Any]) -> Any:
    """Return what makes a schema, or `None` where there is none."""
    try:
        return make()
    except (PydanticUserError, PydanticInvalidForJsonSchema, TypeError, NameError, AttributeError):
        # A schema with a type that has no JSON: the assistant works all the same.
        return None


async def draw(server: Server, *, assistant_id: str, xray: bool | int = False) -> Response:
    """Draw the graph of an assistant as nodes and edges."""
    async with _graph(server, assistant_id) as (_, graph):
        return answer((await graph.aget_graph(xray=xray)).to_json())


async def subgraphs(
    server: Server, *, assistant_id: str, namespace: str | None = None, recurse: bool = False
) -> Response:
    """Describe the graphs inside the graph of an assistant."""
    async with _graph(server, assistant_id) as (_, graph):
        inner = [each async for each in graph.aget_subgraphs(namespace=namespace, recurse=recurse)]
    return answer({name: _schemas(each) for name, each in inner})


# A depth first: `1` is a number of levels.
_Depth = Annotated[Annotated[int, Field(ge=0, lt=1000)] | bool, Field(union_mode="left_to_right")]
_DEPTH: Final = {"xray": Parameter(_Depth)}
_RECURSE: Final = {"recurse": FLAG}
_THREADS: Final = {"delete_threads": FLAG}
_DELETE: Final = ("assistants", "delete")
_READ: Final = ("assistants", "read")
_SEARCH: Final = ("assistants", "search")
_UPDATE: Final = ("assistants", "update")
ENDPOINTS: Final = [
    Endpoint("/assistants", "POST", create, ("assistants", "create"), body=AssistantBody),
    Endpoint("/assistants/search", "POST", search, _SEARCH, body=AssistantSearchBody),
    Endpoint("/assistants/count", "POST", count, _SEARCH, body=AssistantSearchBody),
    Endpoint("/assistants/{assistant_id}", "GET", get, _READ),
    Endpoint("/assistants/{assistant_id}", "PATCH", change, _UPDATE, body=AssistantChangeBody),
    Endpoint("/assistants/{assistant_id}", "DELETE", delete, _DELETE, query=_THREADS, answer=DONE),
    Endpoint("/assistants/{assistant_id}/versions", "POST", versions, _READ, body=SearchBody),
    Endpoint("/assistants/{assistant_id}/latest", "POST", set_latest, _UPDATE, body=VersionBody),
    Endpoint("/assistants/{assistant_id}/schemas", "GET", schemas, _READ),
    Endpoint("/assistants/{assistant_id}/graph", "GET", draw, _READ, query=_DEPTH),
    Endpoint("/assistants/{assistant_id}/subgraphs", "GET", subgraphs, _READ, query=_RECURSE),
    Endpoint("/assistants/{assistant_id}/subgraphs/{namespace}", "GET", subgraphs, _READ, query=_RECURSE),
]
