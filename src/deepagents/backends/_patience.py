"""How long a backend may take, so that one that never answers cannot hold up a run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from deepagents._flow import Call, aside
from deepagents.errors import BackendError

T = TypeVar("T")
_MOST_LEFT_BEHIND = 4
_MOST_FOR_CANCELLING = 2.0


@dataclass(frozen=True, slots=True)
class Patience:
    """A bound on the time of each call, and on how many overdue calls may be left running at one time."""

    seconds: float | None = None
    _left_behind: list[Future[Any] | asyncio.Future[Any]] = field(default_factory=list[Any])

    def bound(self, call: Call[T], what: str, seconds: float | None = None) -> Call[T]:
        """Make a call that raises `BackendError` with the code `timeout` when it takes too long.

        `seconds` goes before the bound that is set for all calls; without either, nothing is bounded.
        """
        most = self.seconds if seconds is None else seconds
        if most is None:
            return call
        return Call(lambda: self._block(call.block, what, most), lambda: self._wait(call.wait, what, most))

    def _block(self, work: Callable[[], T], what: str, seconds: float) -> T:
        self._check(what)
        running = aside(work)
        try:
            return running.result(seconds)
        except TimeoutError:
            if running.done():
                return running.result()
            raise self._overdue(running, what, seconds) from None

    async def _wait(self, work: Callable[[], Awaitable[T]], what: str, seconds: float) -> T:
        self._check(what)
        running = asyncio.ensure_future(work())
        try:
            await asyncio.wait({running}, timeout=seconds)
        except asyncio.CancelledError:
            running.cancel()
            running.add_done_callback(_looked_at)
            await asyncio.wait({running}, timeout=min(seconds, _MOST_FOR_CANCELLING))
            raise
        if not running.done():
            raise self._overdue(running, what, seconds)
        return running.result()

    def _check(self, what: str) -> None:
        self._left_behind[:] = [each for each in self._left_behind if not each.done()]
        if len(self._left_behind) >= _MOST_LEFT_BEHIND:
            raise BackendError(
                "timeout",
                f"{what} was not tried: too many {what} calls are already running. {len(self._left_behind)} "
                "earlier calls to this backend have not come back. Go on without these files.",
            )

    def _overdue(self, running: Future[Any] | asyncio.Future[Any], what: str, seconds: float) -> BackendError:
        self._left_behind.append(running)
        running.add_done_callback(_looked_at)
        return BackendError(
            "timeout",
            f"{what} timed out after {seconds:g}s. It may still take effect: look before you try it again, "
            "and ask for less.",
        )


def _looked_at(running: Future[Any] | asyncio.Future[Any]) -> None:
    """Take note of how a call ended that nobody waits for, so that asyncio does not log it."""
    if not running.cancelled():
        running.exception()
