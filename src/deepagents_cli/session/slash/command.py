"""Describe what every slash command is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from deepagents_cli.protocol import Result
from deepagents_cli.session.conversation.conversation import Conversation


@dataclass(frozen=True)
class SlashCommand:
    """A slash command; `run` takes the conversation and what was typed behind the name."""

    name: str
    description: str
    arguments: str
    run: Callable[[Conversation, str], Awaitable[Result]]
