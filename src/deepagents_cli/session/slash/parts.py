"""Describe what every slash command is, and what it can reach."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from deepagents_cli.project.commands import FileCommand
from deepagents_cli.protocol import Message, Mode
from deepagents_cli.session.changes import Changes
from deepagents_cli.session.proposal import Proposal
from deepagents_cli.session.session import Session
from deepagents_cli.session.steering import Steering
from deepagents_cli.session.usage import UsageCounter
from deepagents_cli.session.workplace import Workplace

Answer: TypeAlias = dict[str, Any]
"""Parts of a `protocol.Result`; `proposal` is the file that may be written with what `edit` shows."""


class Talk(Protocol):
    """The conversation, as commands see it."""

    thread: str
    name: str
    session: Session
    usage: UsageCounter
    steering: Steering
    changes: Changes
    proposed: dict[int, Proposal]
    made: dict[str, FileCommand]

    @property
    def workplace(self) -> Workplace: ...

    @property
    def mode(self) -> Mode: ...

    def say(self, kind: str, message: Message, /) -> None: ...

    def say_status(self) -> None: ...

    def set_mode(self, mode: Mode) -> None: ...

    def require_idle(self, what: str) -> None: ...

    async def enter(self, thread: str, *, resumed: bool) -> None: ...

    def make_agent(self) -> Any: ...


@dataclass(frozen=True)
class SlashCommand:
    """A slash command; `run` takes the conversation and what was typed behind the name."""

    name: str
    description: str
    arguments: str
    run: Callable[[Talk, str], Awaitable[Answer]]


def propose(proposal: Proposal, text: str) -> Answer:
    """Return the part of a result that shows a file before it is written."""
    there = proposal.before or b""
    replaces = not text.encode("utf-8", "replace").startswith(there.rstrip())
    shown = {"text": text, "path": str(proposal.path), "replaces": len(there) if replaces else 0}
    return {"edit": shown, "proposal": proposal}
