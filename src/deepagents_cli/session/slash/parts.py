"""Describe what every slash command is, and what it can reach."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from deepagents_cli.project.commands import FileCommand
from deepagents_cli.protocol import Draft, Result
from deepagents_cli.session.asking import Say
from deepagents_cli.session.changes import Changes
from deepagents_cli.session.proposal import Proposal
from deepagents_cli.session.session import Session
from deepagents_cli.session.steering import Steering
from deepagents_cli.session.workplace import Workplace
from deepagents_cli.values import Mode


class Talk(Protocol):
    """The conversation, as commands see it."""

    workplace: Workplace
    thread: str
    name: str
    session: Session
    steering: Steering
    changes: Changes
    made: dict[str, FileCommand]
    say: Say

    @property
    def mode(self) -> Mode: ...

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
    run: Callable[[Talk, str], Awaitable[Result]]


def propose(talk: Talk, proposal: Proposal, text: str) -> Result:
    """Return a result that shows a file before it is written."""
    there = proposal.before or b""
    replaces = not text.encode("utf-8", "replace").startswith(there.rstrip())
    proposed = talk.workplace.proposed
    number = f"draft-{len(proposed) + 1}"
    proposed[number] = proposal
    return Result(draft=Draft(number, text, str(proposal.path), len(there) if replaces else 0))
