"""Read and write messages, one a line; any other line is answered with an error, and ends nothing."""

from __future__ import annotations

import asyncio
import json
from asyncio import StreamReader, StreamWriter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, cast

LONGEST: Final = 64 << 20
"""Bytes of a line: pictures come in it."""
REQUEST: Final = "deepagents/request"
"""Where a prompt names the id of its request, and what cancels one alone names that."""
_PARSE_ERROR: Final = -32700
_INVALID_REQUEST: Final = -32600


class Wire:
    """The pipes to a client, as the package of the protocol wants them."""

    def __init__(self, reader: StreamReader, writer: StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, message: dict[str, Any]) -> None:
        """Write a message; a client that is gone gets none, and its lines end too."""
        # Half a character, as a model may give it, stays in its escape.
        self._writer.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        with suppress(ConnectionError):
            await self._writer.drain()

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message; `None` when there are no more lines."""
        while (line := await self._read_line()) is not None:
            if len(line) > LONGEST:
                await self._refuse(_INVALID_REQUEST, f"a line of more than {LONGEST:,} bytes")
                continue
            if not line.strip():
                continue
            try:
                message: object = json.loads(line)
            except (ValueError, RecursionError) as error:
                await self._refuse(_PARSE_ERROR, f"a line is not JSON: {error}")
                continue
            if not _is_message(message):
                await self._refuse(_INVALID_REQUEST, "a line is JSON, and not a message of JSON-RPC 2.0")
            elif (given := _translate(cast("dict[str, Any]", message))) is not None:
                return given
        return None

    async def close(self) -> None:
        """Write nothing more."""
        self._writer.close()

    async def _refuse(self, code: int, text: str) -> None:
        await self.send({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": text}})

    async def _read_line(self) -> bytes | None:
        """Return a line, of one that is too long only so much that this shows."""
        kept = b""
        while True:
            try:
                end = await self._reader.readuntil(b"\n")
            except asyncio.IncompleteReadError as error:
                # What no newline ends was cut off.
                return None if not error.partial else kept + error.partial
            except asyncio.LimitOverrunError as error:
                part = await self._reader.readexactly(error.consumed)
                kept = kept if len(kept) > LONGEST else kept + part
                continue
            return kept if len(kept) > LONGEST else kept + end


def _translate(message: dict[str, Any]) -> dict[str, Any] | None:
    """Return a message as the package knows it; `None` for one that may be passed over."""
    method, given = str(message.get("method")), message.get("params")
    params: Mapping[str, Any] = cast("Mapping[str, Any]", given) if isinstance(given, dict) else {}
    if method == "session/prompt" or "_meta" in params:
        # What a client adds for itself has no meaning here, and the package takes it for parameters.
        message = {**message, "params": {**params, "_meta": {REQUEST: message.get("id")}}}
    if "id" in message or not method.startswith("$/"):
        return message
    number = params.get("requestId")
    if method != "$/cancel_request" or not isinstance(number, str | int) or isinstance(number, bool):
        return None
    # The package passes over it. Of all requests, a prompt is the one that takes long.
    cancelled = {"sessionId": "", "_meta": {REQUEST: number}}
    return {"jsonrpc": "2.0", "method": "session/cancel", "params": cancelled}


def _is_message(message: object) -> bool:
    """Return whether this is a request, a notification or a response, as the package can take them."""
    if not isinstance(message, dict):
        return False
    given = cast("Mapping[str, Any]", message)
    if "method" in given:
        return isinstance(given["method"], str) and isinstance(given.get("id"), str | int | None)
    return isinstance(given.get("id"), str | int) and isinstance(given.get("error", {}), dict)
