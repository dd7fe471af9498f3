"""Define what is asked of an engine, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, runtime_checkable

from deepagents._values import valueclass


@valueclass
class Request:
    """One completion to make."""

    turns: tuple[Mapping[str, str], ...]
    grammar: str | None = None
    max_tokens: int = 1024
    temperature: float = 0.0
    seed: int | None = None
    stop: tuple[str, ...] = ()


@valueclass
class Delta:
    """Text that was just written."""

    text: str


@valueclass
class Finish:
    """The completion is over: why, and the tokens it took."""

    reason: str
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int


Event = Delta | Finish


@runtime_checkable
class Engine(Protocol):
    """Whatever completes a chat, one request at a time, and lets itself be stopped."""

    def complete(self, request: Request, emit: Callable[[Event], None], stopped: Callable[[], bool]) -> None:
        """Complete the chat, handing over each event, until done or `stopped()`."""
        ...
