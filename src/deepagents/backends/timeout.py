"""Bound the time of backend calls, so that a backend that never answers cannot hold up a run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeAlias, TypeVar

from deepagents._async import Coro, IOCall, arun, collect_threads, run, start_thread
from deepagents._values import field, valueclass
from deepagents.backends.operations import Execute, Glob, Grep, Operation, Perform
from deepagents.errors import BackendError

T = TypeVar("T")
_MOST_OVERDUE = 4
# Seconds. A task that ignores its cancellation must not hold up the end of a run.
_MOST_FOR_CANCELLING = 2.0

_Running: TypeAlias = Future[Any] | asyncio.Future[Any]


@valueclass
class Overdue:
    """The calls of one backend that were given up and may still run, and those of each of its routes.

    Searches are counted by themselves: a few files that hang should not hide all others.
    """

    searches: list[_Running] = field(default_factory=list[_Running])
    others: list[_Running] = field(default_factory=list[_Running])
    routes: dict[str, Overdue] = field(default_factory=dict[str, "Overdue"])

    def on_route(self, prefix: str) -> Overdue:
        """Return the overdue calls of what serves a route, the same ones each time."""
        return self.routes.setdefault(prefix, Overdue())


@valueclass
class CallTimeout:
    """A bound on the time of each call of one backend, and on how many overdue calls may be left running.

    A call that is given up goes on: a thread cannot be stopped. So a backend with four of those is not called
    again until one has come back, or each try of the model would leave one more thread.
    """

    seconds: float | None
    takes_timeout: bool
    overdue: Overdue

    async def in_time(self, op: Operation, following: Perform) -> Any:
        """Perform an operation within the time that it, or else any operation, may take."""
        seconds = self.seconds if op.seconds is None else op.seconds
        if isinstance(op, Execute) and op.left is not None and not self.takes_timeout:
            # A backend without timeouts is not asked to end a command, so the call is given up instead.
            seconds = min(seconds or op.left, max(op.left, 1))
        if seconds is None:
            return await following(op)
        overdue = self.overdue.searches if isinstance(op, (Glob, Grep)) else self.overdue.others
        return await bound(partial(following, op), op.method, seconds, overdue)


@valueclass
class _Bound:
    """One call that must answer in time, and the earlier ones that have not."""

    what: str
    seconds: float
    overdue: list[_Running]

    def block(self, start: Callable[[], Coro[T]]) -> T:
        self._check()
        running = start_thread(partial(run, start()))
        try:
            return running.result(self.seconds)
        except TimeoutError:
            # The work may have raised a `TimeoutError` itself, which is not ours to replace.
            if running.done():
                return running.result()
            raise self._give_up([running]) from None

    async def wait(self, start: Callable[[], Coro[T]]) -> T:
        self._check()
        # Only around the start: the task copies its context there, and later threads of it are noted too.
        with collect_threads() as threads:
            running = asyncio.ensure_future(arun(start()))
        try:
            await asyncio.wait({running}, timeout=self.seconds)
        except asyncio.CancelledError:
            running.cancel()
            running.add_done_callback(_retrieve)
            await asyncio.wait({running}, timeout=min(self.seconds, _MOST_FOR_CANCELLING))
            raise
        if not running.done():
            running.cancel()
            running.add_done_callback(_retrieve)
            # Threads outlast the cancelled task, so they are what is counted.
            raise self._give_up([each for each in threads if not each.done()] or [running])
        return running.result()

    def _check(self) -> None:
        self.overdue[:] = [each for each in self.overdue if not each.done()]
        if len(self.overdue) >= _MOST_OVERDUE:
            raise BackendError(
                "timeout",
                f"{self.what} was not tried: too many calls are already running. {len(self.overdue)} earlier "
                "calls to the backend of these files have not come back. Go on without these files.",
            )

    def _give_up(self, running: Sequence[_Running]) -> BackendError:
        self.overdue.extend(running)
        for each in running:
            each.add_done_callback(_retrieve)
        return BackendError(
            "timeout",
            f"{self.what} timed out after {self.seconds:g}s. It may still take effect: look before you "
            "try it again, and ask for less.",
        )


def bound(start: Callable[[], Coro[T]], what: str, seconds: float, overdue: list[_Running]) -> IOCall[T]:
    """Make a call that runs code, and raises `BackendError` with the code `timeout` when it takes too long.

    It is not tried when too many calls are `overdue`, where it is put itself when it is given up.
    """
    bounded = _Bound(what, seconds, overdue)
    return IOCall(partial(bounded.block, start), partial(bounded.wait, start))


def _retrieve(running: _Running) -> None:
    """Retrieve the outcome of an abandoned call, or asyncio logs that it never was."""
    if not running.cancelled():
        running.exception()
