"""Reach a server over HTTP: what it answers is bounded, and a refusal keeps its status."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, Final, cast

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from deepagents.mcp import wire
from deepagents.mcp.entries import ServerEntry

STATUS: Final = "http_status"
"""The key of an error's `data` that holds the status of the answer."""
_SECONDS: Final = 30.0
_LONGEST_REFUSAL: Final = 64 * 1024
_LONGEST_OTHER: Final = 2**20
_LONGEST_EVENT: Final = 1_000_000
"""Bytes of an event that the SDK takes over SSE, where that cannot be set."""


@asynccontextmanager
async def open_http(
    entry: ServerEntry,
    auth: httpx2.Auth | None,
    most: int,
    left_out: Callable[[str, str], None],
    ended: Callable[[str], None],
) -> AsyncGenerator[tuple[Any, Any]]:
    """Connect to a server; `ended` hears why, when it cannot be used any longer."""
    if entry.transport == "sse":
        bounds = _Bounds(min(most, _LONGEST_EVENT), left_out, ended)

        def make_client(
            headers: dict[str, str] | None = None,
            timeout: httpx2.Timeout | None = None,
            auth: httpx2.Auth | None = auth,
        ) -> httpx2.AsyncClient:
            return _make_client(entry, auth, bounds)

        async with sse_client(entry.url, httpx_client_factory=make_client) as streams:
            yield streams
        return
    bounds = _Bounds(most, left_out, None)
    async with (
        _make_client(entry, auth, bounds) as client,
        streamable_http_client(entry.url, http_client=client, max_sse_event_size=most + 1024) as streams,
    ):
        yield streams


def _make_client(entry: ServerEntry, auth: httpx2.Auth | None, bounds: _Bounds) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        # Compressed, a small answer can be a large message.
        headers={**entry.headers, "accept-encoding": "identity"},
        auth=auth,
        # How long an answer may take is up to the call; a stream may be silent for hours.
        timeout=httpx2.Timeout(_SECONDS, read=None),
        event_hooks={"response": [bounds.check]},
    )


class _Bounds:
    """Replaces answers that are too large or say no by errors of the protocol, before the SDK reads them."""

    def __init__(
        self, most: int, left_out: Callable[[str, str], None], refused: Callable[[str], None] | None
    ) -> None:
        self.most, self._left_out, self._refused = most, left_out, refused

    async def check(self, response: httpx2.Response) -> None:
        # By its beginning, as the SDK looks at it.
        kind = response.headers.get("content-type", "").lower()
        is_message, request = _read_request(response.request)
        is_error = response.status_code >= 400
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise httpx2.DecodingError("the server compresses its answers, though it was asked not to")
        if kind.startswith("text/event-stream") and not is_error:
            response.stream = _Events(response.stream, self, request)
        elif is_message and is_error:
            self._refuse(response, await _read_body(response, _LONGEST_REFUSAL), request)
        elif is_message and kind.startswith("application/json") and not response.has_redirect_location:
            body = await _read_body(response, self.most)
            _replace(response, self.mend(body, request) or b"")
        else:
            # Redirects, and what is read in order to sign in.
            response.stream = _Short(response.stream)

    def mend(self, body: bytes | None, request: Any, ends: bytes = b"") -> bytes | None:
        """Return a message as the SDK may read it; `None` for one that is too large and answers nothing."""
        if body is None:
            return wire.too_large(ends, self.most, request)
        return wire.mend_message(body, self._left_out)

    def _refuse(self, response: httpx2.Response, body: bytes | None, request: Any) -> None:
        reason = describe_status(response.status_code)
        if self._refused is not None:
            # Over SSE the answer to a message does not come with the answer to its POST.
            self._refused(reason)
        if not _is_error_message(body):
            body = wire.error_message(request, -32_603, reason, {STATUS: response.status_code})
        _replace(response, cast("bytes", body))


class _Short(httpx2.AsyncByteStream):
    """A body of bounded length."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > _LONGEST_OTHER:
                raise httpx2.DecodingError(f"the server sent more than {_LONGEST_OTHER} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Events(httpx2.AsyncByteStream):
    """A stream of events, each line of which is bounded."""

    def __init__(self, inner: Any, bounds: _Bounds, request: Any) -> None:
        self._inner, self._bounds, self._request = inner, bounds, request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        lines = wire.Lines(self._bounds.most)
        async for chunk in self._inner:
            for line, is_too_long in lines.feed(chunk):
                yield self._mend(line, is_too_long) + b"\n"

    def _mend(self, line: bytes, is_too_long: bool) -> bytes:
        if not line.startswith(b"data:"):
            return line if not is_too_long else b":"
        text = line[len(b"data:") :]
        mended = self._bounds.mend(None if is_too_long else text, self._request, text)
        if mended is text:
            return line
        return b":" if mended is None else b"data: " + mended

    async def aclose(self) -> None:
        await self._inner.aclose()


def describe_status(status: int) -> str:
    """Describe the status of an answer: `HTTP 401 Unauthorized`."""
    try:
        return f"HTTP {status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"HTTP {status}"


def _read_request(request: httpx2.Request) -> tuple[bool, Any]:
    """Return whether a request holds a message of the protocol, and its id; others are about signing in."""
    if request.method != "POST":
        return False, None
    try:
        given: Any = json.loads(request.content)
    except (ValueError, RecursionError, httpx2.RequestNotRead):
        return False, None
    message = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    return "jsonrpc" in message, message.get("id")


async def _read_body(response: httpx2.Response, most: int) -> bytes | None:
    """Read an answer; `None` for one that is longer."""
    body = bytearray()
    stream: Any = response.stream
    try:
        async for chunk in stream:
            body += chunk
            if len(body) > most:
                return None
    finally:
        await stream.aclose()
    return bytes(body)


def _replace(response: httpx2.Response, body: bytes) -> None:
    response.stream = httpx2.ByteStream(body)
    for name in ("content-length", "transfer-encoding"):
        response.headers.pop(name, None)
    response.headers["content-type"] = "application/json"


def _is_error_message(body: bytes | None) -> bool:
    try:
        given: Any = json.loads(body or b"")
    except (ValueError, RecursionError):
        return False
    return isinstance(given, dict) and isinstance(cast("dict[str, Any]", given).get("error"), dict)
