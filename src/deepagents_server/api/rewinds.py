"""Serve what a thread's agent has changed on disk: what going back would do, and going back."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final

from pydantic import BaseModel, Field
from starlette.responses import Response

from deepagents_server.api.common import answer
from deepagents_server.api.endpoint import Endpoint
from deepagents_server.api.parameters import TEXT
from deepagents_server.api.threads import find_thread
from deepagents_server.rewinds import Choice, Wanted, open_files, rewind_thread
from deepagents_server.server import Server


class RewindBody(BaseModel):
    """Where a thread is to go back to, and what of it."""

    checkpoint_id: str
    rewind_id: str | None = None
    """Of a going back from that checkpoint, which is to be taken back."""
    files: bool = True
    conversation: bool = True
    conflicts: Choice | Annotated[dict[str, Choice], Field(max_length=100_000)] = "keep"
    plan: str | None = None
    """The `plan` of the dry run that was looked at; if it would be another one now, nothing happens."""


async def show_plan(
    server: Server, *, thread_id: str, checkpoint_id: str | None = None, rewind_id: str | None = None
) -> Response:
    """Show what going back to a checkpoint would do to files; nothing changes."""
    async with open_files(server, await find_thread(server, thread_id)) as opened:
        plan = await opened.plan(Wanted(checkpoint_id, rewind_id))
        return answer(await asyncio.to_thread(opened.show, plan))


async def rewind(server: Server, given: RewindBody, *, thread_id: str) -> Response:
    """Take files, conversation or both back to a checkpoint."""
    thread = await find_thread(server, thread_id)
    rest: dict[str, Any] = given.model_dump(exclude={"checkpoint_id", "rewind_id"})
    wanted = Wanted(given.checkpoint_id, given.rewind_id)
    # Whole, also if the client has gone: what has been taken back is to be shown by the thread.
    return answer(await asyncio.shield(rewind_thread(server, thread, wanted, **rest)))


_PLACE: Final = {"checkpoint_id": TEXT, "rewind_id": TEXT}
ENDPOINTS: Final = [
    Endpoint("/threads/{thread_id}/files", "GET", show_plan, ("threads", "read"), query=_PLACE),
    Endpoint(
        "/threads/{thread_id}/rewind", "POST", rewind, ("threads", "update"), body=RewindBody, needs_body=True
    ),
]
