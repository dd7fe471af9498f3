"""Tell a client what happens, in order; what it is too slow for is put together."""

from __future__ import annotations

import asyncio
from asyncio import Task
from contextlib import suppress

from acp import helpers, schema
from acp.interfaces import Client

from deepagents_cli.views.acp.updates import Update


class Outbox:
    """The updates of one session that are still to be sent."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._waiting: list[Update] = []
        self._more = asyncio.Event()
        self._sent = asyncio.Event()
        self._sent.set()
        self._task: Task[None] | None = None

    def start(self, session: str) -> None:
        """Send what waits, and what comes."""
        self._task = asyncio.create_task(self._send_all(session))

    def put(self, update: Update) -> None:
        """Add an update; one that only says more of what the last one says takes its place."""
        if self._waiting and (joined := _join(self._waiting[-1], update)):
            self._waiting[-1] = joined
        else:
            self._waiting.append(update)
        self._sent.clear()
        self._more.set()

    async def flush(self) -> None:
        """Wait until all is sent."""
        if self._task is not None and not self._task.done():
            await self._sent.wait()

    async def close(self) -> None:
        """Send nothing more."""
        if self._task is not None:
            self._task.cancel()
        self._sent.set()

    async def _send_all(self, session: str) -> None:
        # A client that is gone is told nothing more; the end of its lines ends the session.
        with suppress(ConnectionError):
            while await self._more.wait():
                self._more.clear()
                while self._waiting:
                    await self._client.session_update(session_id=session, update=self._waiting.pop(0))
                self._sent.set()
        self._sent.set()


def _join(last: Update, update: Update) -> Update | None:
    match last, update:
        case (
            schema.AgentMessageChunk(content=schema.TextContentBlock(text=one)),
            schema.AgentMessageChunk(content=schema.TextContentBlock(text=other)),
        ):
            return helpers.update_agent_message_text(one + other)
        case (
            schema.AgentThoughtChunk(content=schema.TextContentBlock(text=one)),
            schema.AgentThoughtChunk(content=schema.TextContentBlock(text=other)),
        ):
            return helpers.update_agent_thought_text(one + other)
        case schema.ToolCallProgress(status="in_progress") as one, schema.ToolCallProgress() as other:
            # What a command has printed so far is whole in each.
            is_same = one.tool_call_id == other.tool_call_id and other.content is not None
            return other if is_same and other.status == "in_progress" else None
        case _:
            return None
