"""How long and how large an answer may be: a server that drips holds no thread, one that pours no memory."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import httpx

T = TypeVar("T")

MOST_BYTES: Final = 32 * 2**20
_PLAIN: Final = "identity"
HEADERS: Final = {"Connection": "close", "Accept-Encoding": _PLAIN}
"""Questions are minutes apart: a connection that is kept is a dead one when it is needed, and leaks. Packed
answers could unfold to any size."""
_until: ContextVar[float | None] = ContextVar("deepagents_until", default=None)


class TooMuch(Exception):
    """An answer is larger than anybody has use for."""


def until(seconds: float, work: Callable[[], T]) -> T:
    """Do blocking work whose requests end when its time is over."""
    token = _until.set(time.monotonic() + seconds)
    try:
        return work()
    finally:
        _until.reset(token)


def bounded(client: Any) -> Any:
    """Bound what a blocking client waits for and takes in."""
    client.http.client.event_hooks = {"request": [_shorten], "response": [_bound]}
    return client


def bounded_async(client: Any) -> Any:
    """Bound what an awaiting client takes in; its time is bounded by who awaits it."""

    async def bound(response: httpx.Response) -> None:
        _bound(response)

    client.http.client.event_hooks = {"response": [bound]}
    return client


def _shorten(request: httpx.Request) -> None:
    end = _until.get()
    if end is not None:
        left = max(end - time.monotonic(), 0.001)
        request.extensions["timeout"] = dict.fromkeys(("connect", "read", "write", "pool"), left)


def _bound(response: httpx.Response) -> None:
    packed = response.headers.get("content-encoding", _PLAIN)
    if packed != _PLAIN:
        raise TooMuch(f"it is packed ({packed[:20]!r}), which was not asked for")
    response.stream = _Bounded(response.stream)


@dataclass
class _Bounded(httpx.SyncByteStream, httpx.AsyncByteStream):
    """The body of an answer, up to a size and, where there is one, up to a moment."""

    stream: Any
    taken: int = 0

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self.stream:
            yield self._counted(chunk)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self.stream:
            yield self._counted(chunk)

    def close(self) -> None:
        self.stream.close()

    async def aclose(self) -> None:
        await self.stream.aclose()

    def _counted(self, chunk: bytes) -> bytes:
        self.taken += len(chunk)
        if self.taken > MOST_BYTES:
            raise TooMuch(f"more than {MOST_BYTES // 2**20} MiB")
        end = _until.get()
        if end is not None and time.monotonic() > end:
            raise httpx.ReadTimeout("the answer took too long")
        return chunk
