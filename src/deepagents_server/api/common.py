"""Share what every endpoint needs: the server behind it, the caller, and answers in JSON."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from itertools import accumulate, takewhile
from typing import Any, Final

import sqlalchemy as sa
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Send
from starlette.types import Scope as Asgi

from deepagents_server.api.bodies import SearchBody
from deepagents_server.database.engine import Database, Row
from deepagents_server.errors import ApiError
from deepagents_server.serialize import dump
from deepagents_server.server import SERVER as SERVER
from deepagents_server.server import Server
from deepagents_server.server import serving as serving

_KINDS: Final = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
ASKING: Final = {"www-authenticate": "Bearer"}
"""What an answer with 401 has to have."""
_COUNTED: Final = 1000
"""How many further rows are counted for the total of a search; to count all would grow with what is kept."""
_AT_ONCE: Final = 1_000_000
"""Bytes of a list that are read at once, if there is more than one item."""
SECURE: Final = {"x-content-type-options": "nosniff"}
_SSE: Final = {"cache-control": "no-store", "x-accel-buffering": "no"}


def answer(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Answer in JSON."""
    return Response(dump(content), status, {**SECURE, **(headers or {})}, "application/json")


def path_of(scope: Asgi) -> str:
    """Return the path of a request, as if there were no `mount_prefix`."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


def refuse(scope: Asgi, error: ApiError) -> Response:
    """Answer what a request is refused for; OpenAI's clients look for it elsewhere than others."""
    body = openai_error(error) if path_of(scope).startswith("/v1/") else {"detail": error.detail}
    known = ASKING if error.status == 401 else {}
    return answer(body, error.status, {**known, **error.headers})


def openai_error(error: ApiError) -> dict[str, Any]:
    """Describe an error as OpenAI does."""
    kind = _KINDS.get(error.status, "server_error" if error.status >= 500 else "invalid_request_error")
    code = "model_not_found" if error.status == 404 else None
    return {"error": {"message": error.detail, "type": kind, "param": None, "code": code}}


class Watched(StreamingResponse):
    """A stream that ends as soon as its client has gone, also while there is nothing to send."""

    def __init__(self, content: AsyncIterable[bytes], headers: Mapping[str, str], media_type: str) -> None:
        super().__init__(content, headers={**SECURE, **headers}, media_type=media_type)

    async def __call__(self, scope: Asgi, receive: Receive, send: Send) -> None:
        """Send, and listen for the end of the connection."""
        sending = asyncio.create_task(self.stream_response(send))
        leaving = asyncio.create_task(self.listen_for_disconnect(receive))
        try:
            await asyncio.wait([sending, leaving], return_when=asyncio.FIRST_COMPLETED)
        finally:
            sending.cancel()
            leaving.cancel()
            await asyncio.wait([sending, leaving])
        if not sending.cancelled() and (error := sending.exception()):
            raise error


def event_stream(frames: AsyncIterable[bytes], headers: Mapping[str, str] | None = None) -> Watched:
    """Answer with events as they come."""
    return Watched(frames, {**_SSE, **(headers or {})}, "text/event-stream")


def nothing(status: int = 204) -> Response:
    """Answer without a body."""
    return Response(status_code=status)


async def answer_search(
    server: Server,
    query: sa.Select[Any],
    table: sa.Table,
    given: SearchBody,
    allowed: Sequence[str],
    show: Callable[[Row], Mapping[str, Any]],
) -> Response:
    """Answer a page of what a query finds, and where the next one begins.

    It is sorted by the first column that is `allowed`, if the request names none.

    Raises:
        ApiError: if it is to be sorted by what is not `allowed`, or shown with a field that is none.
    """
    database = server.database
    name = given.sort_by or allowed[0]
    if name not in allowed:
        raise ApiError(422, f"sort_by: {name!r} is none of {', '.join(allowed)}.")
    order = table.c[name].asc() if given.sort_order == "asc" else table.c[name].desc()
    page = query.order_by(order, key_of(table)).limit(given.limit).offset(given.offset)
    keys = await find_keys(database, page, table)
    total = await database.count(query.limit(given.offset + given.limit + _COUNTED))
    following = given.offset + len(keys)
    headers = {"x-pagination-total": str(total)}
    if following < total and keys:
        headers["x-pagination-next"] = str(following)
    rows = read_rows(database, table, keys)
    return await answer_list((select_fields(show(row), given.select) async for row in rows), headers)


Sizes = Mapping[Any, int]
"""How many bytes each row of a page has about, by its key, in the order of the page."""


def key_of(table: sa.Table) -> sa.Column[Any]:
    """Return the column by which a row is found."""
    return next(iter(table.primary_key.columns))


async def find_keys(database: Database, page: sa.Select[Any], table: sa.Table) -> Sizes:
    """Return which rows are on a page, without reading what they hold."""
    key = key_of(table)
    texts = [each for each in table.c if isinstance(each.type, sa.Text | sa.JSON)]
    size = sum((sa.func.coalesce(sa.func.length(sa.cast(each, sa.Text)), 0) for each in texts), sa.literal(0))
    on_page = [row["key"] for row in await database.rows(page.with_only_columns(key.label("key")))]
    sized: Any = sa.select(key.label("key"), size.label("size")).where(key.in_(on_page))
    sizes = {row["key"]: row["size"] for row in await database.rows(sized)}
    return {each: sizes[each] for each in on_page if each in sizes}


async def read_rows(database: Database, table: sa.Table, sizes: Sizes) -> AsyncIterator[Row]:
    """Yield rows; of large ones, few are read at once."""
    key, left = key_of(table), [*sizes]
    while left:
        sums = accumulate(sizes[each] for each in left)
        together = max(1, len([*takewhile(lambda size: size <= _AT_ONCE, sums)]))
        batch, left = left[:together], left[together:]
        found = {row[key.name]: row for row in await database.rows(sa.select(table).where(key.in_(batch)))}
        for each in batch:
            # Another request may have removed it.
            if each in found:
                yield found[each]


async def answer_list(
    items: AsyncGenerator[Any],
    headers: Mapping[str, str] | None = None,
    around: tuple[bytes, bytes] = (b"", b""),
) -> Response:
    """Answer with a list; what is large is sent as it is read, and never in the memory as a whole.

    Raises:
        ApiError: as the first items do.
    """
    held, size = list[bytes](), 0
    async for item in items:
        held.append(dump(item))
        size += len(held[-1])
        if size > _AT_ONCE:
            return Watched(_write_list(held, items, around), headers or {}, "application/json")
    content = b"%s[%s]%s" % (around[0], b",".join(held), around[1])
    return Response(content, 200, {**SECURE, **(headers or {})}, "application/json")


async def _write_list(
    held: list[bytes], items: AsyncGenerator[Any], around: tuple[bytes, bytes]
) -> AsyncIterator[bytes]:
    async with aclosing(items):
        yield around[0] + b"[" + b",".join(held)
        held.clear()
        async for item in items:
            yield b"," + dump(item)
        yield b"]" + around[1]


def select_fields(row: Mapping[str, Any], names: Sequence[str] | None) -> dict[str, Any]:
    """Keep the fields that were asked for: `status`, or `values.messages` for a part of one.

    Raises:
        ApiError: for a name that is not a field.
    """
    if not names:
        return dict(row)
    chosen: dict[str, Any] = {}
    for name in names:
        field, _, part = name.partition(".")
        if field not in row:
            raise ApiError(422, f"select: {name!r} is none of {', '.join(row)}.")
        if part:
            inner, held = row[field], chosen.setdefault(field, {})
            if isinstance(inner, dict) and part in inner and isinstance(held, dict):
                held[part] = inner[part]
        else:
            chosen[field] = row[field]
    return chosen
