"""How long a backend may take, so that one that never answers cannot hold up a run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from deepagents._async import IOCall, collect_threads, start_thread
from deepagents.errors import BackendError

T = TypeVar("T")
_MOST_LEFT_BEHIND = 4
_MOST_FOR_CANCELLING = 2.0


_Running = Future[Any] | asyncio.Future[Any]


@dataclass(frozen=True, slots=True)
class _Limit:
    """Which method is called, how long it may take, and which part of the backend it asks."""

    what: str
    seconds: float
    part: str


@dataclass(frozen=True, slots=True)
class Patience:
    """A bound on the time of each call, and on how many overdue calls may be left running at one time."""

    seconds: float | None = None
    _left_behind: dict[str, list[_Running]] = field(default_factory=dict[str, list[_Running]])

    def bounds(self, seconds: float | None = None) -> bool:
        """Tell whether there is a bound, for all calls or for this one."""
        return self.seconds is not None or seconds is not None

    def bound(self, call: IOCall[T], what: str, seconds: float | None = None, part: str = "/") -> IOCall[T]:
        """Make a call that raises `BackendError` with the code `timeout` when it takes too long.

        `seconds` goes before the bound that is set for all calls; without either, nothing is bounded. Calls
        that are left running count for one `part` of the backend.
        """
        most = self.seconds if seconds is None else seconds
        if most is None:
            return call
        limit = _Limit(what, most, part)
        return IOCall(lambda: self._block(call.block, limit), lambda: self._wait(call.wait, limit))

    def _block(self, work: Callable[[], T], limit: _Limit) -> T:
        self._check(limit)
        running = start_thread(work)
        try:
            return running.result(limit.seconds)
        except TimeoutError:
            if running.done():
                return running.result()
            raise self._overdue([running], limit) from None

    async def _wait(self, work: Callable[[], Awaitable[T]], limit: _Limit) -> T:
        self._check(limit)
        with collect_threads() as threads:
            running = asyncio.ensure_future(work())
        try:
            await asyncio.wait({running}, timeout=limit.seconds)
        except asyncio.CancelledError:
            running.cancel()
            running.add_done_callback(_looked_at)
            await asyncio.wait({running}, timeout=min(limit.seconds, _MOST_FOR_CANCELLING))
            raise
        if not running.done():
            running.cancel()
            running.add_done_callback(_looked_at)
            raise self._overdue([each for each in threads if not each.done()] or [running], limit)
        return running.result()

    def _check(self, limit: _Limit) -> None:
        hanging = [each for each in self._left_behind.pop(limit.part, ()) if not each.done()]
        if hanging:
            self._left_behind[limit.part] = hanging
        if len(hanging) >= _MOST_LEFT_BEHIND:
            raise BackendError(
                "timeout",
                f"{limit.what} was not tried: too many calls are already running. {len(hanging)} earlier "
                "calls to the backend of these files have not come back. Go on without these files.",
            )

    def _overdue(self, running: Sequence[_Running], limit: _Limit) -> BackendError:
        self._left_behind.setdefault(limit.part, []).extend(running)
        for each in running:
            each.add_done_callback(_looked_at)
        return BackendError(
            "timeout",
            f"{limit.what} timed out after {limit.seconds:g}s. It may still take effect: look before you "
            "try it again, and ask for less.",
        )


def _looked_at(running: _Running) -> None:
    """Take note of how a call ended that nobody waits for, so that asyncio does not log it."""
    if not running.cancelled():
        running.exception()
