"""Describe what every slash command is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from deepagents_cli.protocol import Draft, Result
from deepagents_cli.session.conversation.conversation import Conversation
from deepagents_cli.session.workplace.proposal import Proposal


@dataclass(frozen=True)
class SlashCommand:
    """A slash command; `run` takes the conversation and what was typed behind the name."""

    name: str
    description: str
    arguments: str
    run: Callable[[Conversation, str], Awaitable[Result]]


def propose(talk: Conversation, proposal: Proposal, text: str) -> Result:
    """Return a result that shows a file before it is written."""
    there = proposal.before or b""
    replaces = not text.encode("utf-8", "replace").startswith(there.rstrip())
    proposed = talk.workplace.proposed
    number = f"draft-{len(proposed) + 1}"
    proposed[number] = proposal
    return Result(draft=Draft(number, text, str(proposal.path), len(there) if replaces else 0))
