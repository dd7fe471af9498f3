"""Bound what servers send, before the SDK reads it: the length of messages, and lists with unfit tools."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, cast

from deepagents.mcp import offered

TOO_LARGE: Final = -32_019
"""Our code for a message that was too large, from the range that the protocol leaves to implementations."""
_EDGE: Final = 4_096
"""Bytes that are kept of each end of a message that is too large, to find out which answer it was."""
_ID: Final = rb'"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)'
_FIRST: Final = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?' + _ID)
_HALF: Final = re.compile("[\ud800-\udfff]")
_LAST: Final = re.compile(_ID + rb'\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')


class Lines:
    """Collects lines of no more than so many bytes; of a longer one it keeps the two ends."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._line = bytearray()
        self._head: bytes | None = None

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bool]]:
        """Yield each line that ends in this data, and whether it was too long."""
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self._add(data[start:end])
            yield self._take()
            start = end + 1
        self._add(data[start:])

    def _add(self, part: bytes) -> None:
        self._line += part
        if self._head is None and len(self._line) > self._most:
            self._head = bytes(self._line[:_EDGE])
        if self._head is not None:
            self._line = self._line[-_EDGE:]

    def _take(self) -> tuple[bytes, bool]:
        line, head = bytes(self._line), self._head
        self._line, self._head = bytearray(), None
        return (line, False) if head is None else (head + b"\n" + line, True)


def error_message(request: str | int | None, code: int, text: str, data: Any = None) -> bytes:
    """Return the message by which a server would answer a request with an error."""
    error = {"code": code, "message": text, **({} if data is None else {"data": data})}
    return json.dumps({"jsonrpc": "2.0", "id": request, "error": error}).encode()


def too_large(ends: bytes, most: int, request: str | int | None = None) -> bytes | None:
    """Return the error in place of a message that is too large; `None` where it answers no request."""
    if b'"method"' in ends[:_EDGE]:
        # A notice or a question of the server: no one waits for it.
        return None
    found = find_id(ends)
    request = request if found is None else found
    text = f"the server sent a message of more than {most} bytes, which was not read"
    return None if request is None else error_message(request, TOO_LARGE, text)


def find_id(ends: bytes) -> str | int | None:
    """Find the id of a message, of which only the ends may be left."""
    found = _FIRST.match(ends) or _LAST.search(ends)
    try:
        return None if found is None else json.loads(found[1])
    except ValueError:
        return None


def mend_halves(value: Any) -> Any:
    """Return a value of JSON with a replacement character for each half of one, which no message can hold."""
    # What is not JSON, such as a date in an argument, is the client's to write or to refuse.
    text = json.dumps(value, ensure_ascii=False, default=str)
    return json.loads(_HALF.sub("\ufffd", text)) if _HALF.search(text) else value


def _mend_text(message: bytes) -> bytes:
    text = message.decode(errors="replace")
    if b"\\ud" in message.lower():
        try:
            mended = mend_halves(value := json.loads(text))
        except (ValueError, RecursionError):
            return message
        # Most that is written so are two halves of one character, and stays as it came.
        text = text if mended is value else json.dumps(mended)
    found = text.encode()
    return message if found == message else found


def mend_message(message: bytes, left_out: Callable[[str, str], None]) -> bytes:
    """Return a message without what the SDK would refuse as a whole: halves of characters, and unfit tools.

    `left_out` hears of each tool, with its name and the reason.
    """
    message = _mend_text(message)
    # A name may be written in escapes, too.
    if b'"tools"' not in message and b"\\u" not in message:
        return message
    try:
        return _mend_list(message, left_out)
    # Python's parser ends at some 1,000 levels.
    except (ValueError, RecursionError):
        return error_message(find_id(message), -32_700, "the server sent a list of tools that cannot be read")


def _mend_list(message: bytes, left_out: Callable[[str, str], None]) -> bytes:
    given: Any = json.loads(message)
    result: Any = cast("dict[str, Any]", given).get("result") if isinstance(given, dict) else None
    tools: Any = cast("dict[str, Any]", result).get("tools") if isinstance(result, dict) else None
    if not isinstance(tools, list):
        return message
    kept: list[dict[str, Any]] = []
    for each in cast("list[Any]", tools)[: offered.MOST_TOOLS]:
        try:
            kept.append(offered.mend(each))
        except offered.Unfit as reason:
            left_out(_name_of(each), str(reason))
    for each in cast("list[Any]", tools)[offered.MOST_TOOLS :]:
        left_out(_name_of(each), f"there are more than {offered.MOST_TOOLS}")
    result["tools"] = kept
    return json.dumps(given).encode()


def _name_of(tool: Any) -> str:
    name: object = cast("dict[str, Any]", tool).get("name") if isinstance(tool, dict) else None
    return name if isinstance(name, str) else "?"


@asynccontextmanager
async def watch(
    transport: AbstractAsyncContextManager[tuple[Any, Any]], ended: Callable[[str], None]
) -> AsyncGenerator[tuple[Any, Any]]:
    """Open a transport; `ended` hears when nothing more comes from it, which the SDK does not say."""
    async with transport as (received, to_send):
        yield _Watched(received, ended), to_send


class _Watched:
    """A stream of messages, as the SDK reads it."""

    def __init__(self, inner: Any, ended: Callable[[str], None]) -> None:
        self._inner, self._ended = inner, ended

    @property
    def last_context(self) -> Any:
        return getattr(self._inner, "last_context", None)

    def __aiter__(self) -> _Watched:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._inner.__anext__()
        except StopAsyncIteration:
            self._ended("its connection ended")
            raise

    async def receive(self) -> Any:
        return await self._inner.receive()

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> _Watched:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
