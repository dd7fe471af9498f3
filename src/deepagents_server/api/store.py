"""Serve the store: what agents remember across threads."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Final, cast

from langgraph.store.base import NOT_PROVIDED, InvalidNamespaceError, Item, SearchItem
from pydantic import BaseModel
from starlette.responses import Response

from deepagents_server.api.bodies import Limit, Minutes, Offset
from deepagents_server.api.common import answer, answer_list
from deepagents_server.api.endpoint import DONE, Endpoint
from deepagents_server.api.parameters import FLAG, TEXT
from deepagents_server.database.quotas import check_kept
from deepagents_server.errors import ApiError
from deepagents_server.server import Server

_AT_ONCE: Final = 4


class PutBody(BaseModel):
    """A value to be kept."""

    namespace: list[str]
    key: str
    value: dict[str, Any]
    index: bool | list[str] | None = None
    ttl: Minutes | None = None


class KeyBody(BaseModel):
    """The place of a value."""

    namespace: list[str] = []
    key: str


class ItemSearchBody(BaseModel):
    """Values that are looked for."""

    namespace_prefix: list[str] = []
    filter: dict[str, Any] | None = None
    limit: Limit = 10
    offset: Offset = 0
    query: str | None = None
    refresh_ttl: bool | None = None


class NamespaceBody(BaseModel):
    """Namespaces that are looked for."""

    prefix: list[str] | None = None
    suffix: list[str] | None = None
    max_depth: Limit | None = None
    limit: Limit = 100
    offset: Offset = 0


def _labels(name: str, labels: list[str] | None) -> tuple[str, ...]:
    """Return labels as stores take them; none are the root.

    Raises:
        ApiError: for what is not a label.
    """
    if any(not label or "." in label or "\0" in label for label in labels or ()):
        raise ApiError(422, f"{name}: a label is not empty, and has no '.' or NUL in it.")
    return tuple(labels or ())


def _namespace(labels: list[str]) -> tuple[str, ...]:
    if not labels:
        raise ApiError(422, "namespace: give one or more labels.")
    return _labels("namespace", labels)


def _show(item: Item) -> dict[str, Any]:
    shown: dict[str, Any] = cast(Any, item).dict()
    return {**shown, "score": item.score} if isinstance(item, SearchItem) else shown


async def put(server: Server, given: PutBody) -> None:
    """Keep a value."""
    index: Any = None if given.index is True else given.index
    ttl = NOT_PROVIDED if given.ttl is None else given.ttl
    store = server.graphs.store
    async with server.database.read() as connection:
        await check_kept(connection, server.database.owner)
    try:
        await store.aput(_namespace(given.namespace), given.key, given.value, index, ttl=ttl)
    except InvalidNamespaceError as error:
        raise ApiError(422, f"namespace: {error}") from error


async def get(
    server: Server, *, namespace: str = "", key: str = "", refresh_ttl: bool | None = None
) -> Response:
    """Show a value, or `null`."""
    if not key:
        raise ApiError(422, "key: name the value.")
    store, labels = server.graphs.store, _namespace(namespace.split("."))
    found = await store.aget(labels, key, refresh_ttl=refresh_ttl)
    return answer(found and _show(found))


async def delete(server: Server, given: KeyBody) -> None:
    """Forget a value."""
    await server.graphs.store.adelete(_namespace(given.namespace), given.key)


async def search(server: Server, given: ItemSearchBody) -> Response:
    """Find values."""
    try:
        return await answer_list(_find(server, given), around=(b'{"items":', b"}"))
    except ValueError as error:
        raise ApiError(422, f"filter: {str(error)[:200]}") from error


async def _find(server: Server, given: ItemSearchBody) -> AsyncGenerator[dict[str, Any]]:
    """Yield values, of which few are in the memory at once; a search by meaning embeds its text only once."""
    prefix = _labels("namespace_prefix", given.namespace_prefix)
    at_once = _AT_ONCE if given.query is None else given.limit
    for begin in range(0, given.limit, at_once):
        wanted = min(at_once, given.limit - begin)
        async with server.database.turn():
            found = await server.graphs.store.asearch(
                prefix,
                query=given.query,
                filter=given.filter,
                limit=wanted,
                offset=given.offset + begin,
                refresh_ttl=given.refresh_ttl,
            )
        for item in found:
            yield _show(item)
        if len(found) < wanted:
            return


async def namespaces(server: Server, given: NamespaceBody) -> Response:
    """List namespaces."""
    async with server.database.turn():
        found = await server.graphs.store.alist_namespaces(
            prefix=_labels("prefix", given.prefix) or None,
            suffix=_labels("suffix", given.suffix) or None,
            max_depth=given.max_depth,
            limit=given.limit,
            offset=given.offset,
        )
    return answer({"namespaces": [list(each) for each in found]})


_PLACE: Final = {"namespace": TEXT, "key": TEXT, "refresh_ttl": FLAG}
ENDPOINTS: Final = [
    Endpoint("/store/items", "PUT", put, ("store", "put"), body=PutBody, answer=DONE),
    Endpoint("/store/items", "GET", get, ("store", "get"), query=_PLACE),
    Endpoint("/store/items", "DELETE", delete, ("store", "delete"), body=KeyBody, answer=DONE),
    Endpoint("/store/items/search", "POST", search, ("store", "search"), body=ItemSearchBody),
    Endpoint("/store/namespaces", "POST", namespaces, ("store", "list_namespaces"), body=NamespaceBody),
]
