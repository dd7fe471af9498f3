"""Serve the thread-centric protocol over a WebSocket: commands one way, events and answers the other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import aclosing, suppress
from typing import Any, Final, cast
from uuid import uuid4

from starlette.requests import Request
from starlette.types import Message
from starlette.websockets import WebSocket, WebSocketDisconnect

from deepagents_server.api.bodies import check_body, read_json
from deepagents_server.api.common import refuse, serving
from deepagents_server.api.endpoint import Endpoint
from deepagents_server.api.gate import CALLER
from deepagents_server.api.parameters import read_path
from deepagents_server.api.thread_streams import (
    COMMANDS,
    EVENTS,
    Batches,
    EventsBody,
    failure,
    open_events,
    read_subscription,
    refusal,
    success,
)
from deepagents_server.errors import ApiError, make_failure
from deepagents_server.protocol_events import Subscription
from deepagents_server.serialize import dump

_log: Final = logging.getLogger("deepagents.server")
_MOST: Final = 100
"""Subscriptions of one connection; each follows the thread by itself."""


async def converse(socket: WebSocket) -> None:
    """Take commands for a thread, and tell the events that a client subscribes to."""
    try:
        read_path(socket.path_params)
    except ApiError as error:
        await socket.send_denial_response(refuse(socket.scope, error))
        return
    # A browser gives up unless one of those that it offers is chosen.
    await socket.accept(next(iter(socket.scope["subprotocols"]), None))
    async with asyncio.TaskGroup() as group:
        conversation = _Conversation(socket, group)
        while (message := await socket.receive())["type"] != "websocket.disconnect":
            await conversation.take(message.get("bytes") or (message.get("text") or "").encode())
        conversation.end()


class _Conversation:
    """What a client has subscribed to on a connection."""

    def __init__(self, socket: WebSocket, group: asyncio.TaskGroup) -> None:
        self._socket, self._group = socket, group
        self._subscriptions: dict[str, Subscription] = {}
        self._telling: asyncio.Task[None] | None = None
        """One for all of them, so that a client hears no end of a run before what came before it."""
        self._sending = asyncio.Lock()
        """Held while an event is sent and noted as sent, which may wait for a slow client."""

    async def take(self, text: bytes) -> None:
        """Carry a command out and answer it."""
        number: Any = None
        try:
            # A key may have been revoked since the connection was opened.
            await self._socket.scope[CALLER]()
            given = await read_json(_request(self._socket, text))
            number = cast(dict[str, Any], given).get("id") if isinstance(given, dict) else None
            await self._carry_out(given, text)
        except ApiError as error:
            await self._refuse(number, error)
        except Exception:  # noqa: BLE001
            # As with a request: the log has the trace, and what else this connection does goes on.
            _log.exception("A command of %s failed", self._socket.url.path)
            await self._refuse(number, make_failure())

    async def _carry_out(self, given: Any, text: bytes) -> None:
        match given:
            case {"id": int() as number, "method": "subscription.subscribe"}:
                await self._subscribe(number, given.get("params") or {})
            case {"id": int() as number, "method": "subscription.unsubscribe"}:
                await self._unsubscribe(number, given.get("params"))
            case _:
                answered = await COMMANDS.respond(_request(self._socket, text))
                await self._send(bytes(answered.body))

    async def _subscribe(self, number: int, params: Any) -> None:
        if len(self._subscriptions) >= _MOST:
            raise ApiError(422, f"A connection has at most {_MOST} subscriptions; end one, or open another.")
        request, read = await EVENTS.permit(_request(self._socket, dump(params)))
        wanted = read_subscription(check_body(EventsBody, read))
        subscriptions = self._subscriptions.values()
        batches = await open_events(serving(request), subscriptions, **read_path(request.path_params))
        name = str(uuid4())
        async with self._sending:
            # First: what is told meanwhile would count as told to the new one.
            self.end()
            self._subscriptions[name] = wanted
            await self._send(dump(success(number, {"subscription_id": name})))
        self._telling = self._group.create_task(self._tell(batches))

    async def _unsubscribe(self, number: int, params: Any) -> None:
        name = cast(dict[str, Any], params).get("subscription_id") if isinstance(params, dict) else None
        if self._subscriptions.pop(str(name), None):
            await self._send(dump(success(number, {})))
        else:
            unknown = f"There is no subscription {str(name)[:100]!r}."
            await self._send(dump(failure(number, "no_such_subscription", unknown)))

    async def _tell(self, batches: Batches) -> None:
        async with aclosing(batches) as opened:
            async for events in opened:
                for event in events:
                    await self._show(event)
        # The thread has gone.
        self._subscriptions.clear()

    async def _show(self, event: Mapping[str, Any]) -> None:
        """Send an event, and note that it was sent to all subscriptions that there are."""
        async with self._sending:
            await self._send(dump(event))
            for each in self._subscriptions.values():
                each.since = max(each.since, event["seq"])

    async def _refuse(self, number: Any, error: ApiError) -> None:
        await self._send(dump(refusal(number, error)))

    async def _send(self, text: bytes) -> None:
        # A client that has gone is noticed by who reads from it.
        with suppress(WebSocketDisconnect):
            await self._socket.send_text(text.decode())

    def end(self) -> None:
        """Tell nothing more."""
        if self._telling:
            self._telling.cancel()


def _request(socket: WebSocket, body: bytes) -> Request:
    """Show a message as the request that says the same; so it is bounded, asked about and refused alike."""

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return Request({**socket.scope, "type": "http", "method": "POST"}, receive)


ENDPOINTS: Final = [Endpoint(EVENTS.path, "WEBSOCKET", converse, "itself")]
