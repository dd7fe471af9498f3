"""Describe what every slash command is."""

from __future__ import annotations

from asyncio import CancelledError, create_task, current_task
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from deepagents._values import valueclass
from deepagents_cli.errors import CommandError
from deepagents_cli.protocol import STOPPED, Result
from deepagents_cli.session.conversation.conversation import Conversation

T = TypeVar("T")


@valueclass
class SlashCommand:
    """A slash command; `run` takes the conversation and what was typed behind the name."""

    name: str
    description: str
    arguments: str
    run: Callable[[Conversation, str], Awaitable[Result]]


async def until_stopped(talk: Conversation, work: Coroutine[Any, Any, T]) -> T:
    """Return what this part of a command gives, unless the person stops it.

    Raises:
        CommandError: when they do.
    """
    task = create_task(work)
    talk.stop_command = task.cancel
    try:
        return await task
    except CancelledError:
        if (this := current_task()) and this.cancelling():
            raise
        raise CommandError(STOPPED) from None
