"""Lock by key, for threads and for tasks alike: waiting for one does not stop an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

from deepagents._async import Coro, IOCall, running_loop
from deepagents.errors import BackendError

T = TypeVar("T")
_STILL = 2.0
"""Seconds after which an event loop that does not run is taken to be blocked."""


@dataclass(eq=False, slots=True)
class _Waiter:
    """One waiting caller in a queue; `loop` is the event loop of a waiting task."""

    loop: asyncio.AbstractEventLoop | None
    granted: Future[None] = field(default_factory=Future[None])

    def grant(self) -> bool:
        """Let this turn begin, and return whether its caller still waits for it."""
        # In one step with asking whether it was cancelled, or the lock could go to a caller that has left.
        waited_for = self.granted.set_running_or_notify_cancel()
        if waited_for:
            self.granted.set_result(None)
        return waited_for


class KeyedLocks:
    """A lock for each key, given in the order of asking; keys without a holder take no memory.

    Neither `threading.Lock` nor `asyncio.Lock` would do: a file is changed by threads and by tasks of several
    event loops at the same time, and a thread that blocks an event loop would wait for ever for its own task.
    """

    def __init__(self, still: float = _STILL) -> None:
        self._still = still
        self._queues: dict[Hashable, deque[_Waiter]] = {}
        # Held for a few dictionary operations only, so a task that takes it does not stop its event loop.
        self._mutex = threading.Lock()

    def __len__(self) -> int:
        """Count the keys that are held."""
        return len(self._queues)

    def acquire(self, key: Hashable) -> IOCall[None]:
        """Wait for the lock of a key.

        Raises:
            BackendError: `parallel_mutation`, when blocking would hold up the event loop of the task that
                has, or awaits, the lock.
        """
        return IOCall(lambda: self._block(key), lambda: self._wait(key))

    def release(self, key: Hashable) -> None:
        """Let the next one have the lock of a key."""
        with self._mutex:
            queue = self._queues[key]
            queue.popleft()
            while queue and not queue[0].grant():
                queue.popleft()
            if not queue:
                del self._queues[key]

    async def holding(self, keys: Iterable[Any], work: Callable[[], Coro[T]]) -> T:
        """Run code while holding the locks of some keys."""
        held: list[Hashable] = []
        try:
            # Always in the same order, or two callers could each hold what the other waits for.
            for key in sorted(set(keys)):
                await self.acquire(key)
                held.append(key)
            return await work()
        finally:
            for key in held:
                self.release(key)

    def _block(self, key: Hashable) -> None:
        turn = self._enter(key, None)
        try:
            while not turn.granted.done():
                self._wait_a_while(key, turn)
        except BaseException:
            self._leave(key, turn)
            raise

    def _wait_a_while(self, key: Hashable, turn: _Waiter) -> None:
        """Wait a while for a turn; give up when the event loop of the task that has it does not run."""
        ahead, turning = self._holder(key), threading.Event()
        if ahead.loop is None:
            turning.set()
        else:
            with suppress(RuntimeError):
                # Raises when that loop is closed, which then counts as one that does not run.
                ahead.loop.call_soon_threadsafe(turning.set)
        with suppress(TimeoutError):
            turn.granted.result(self._still)
        # The loop has not run in all that time and the turn has not moved, so it waits for this very thread.
        if not turning.is_set() and self._holder(key) is ahead:
            raise _endless()

    def _holder(self, key: Hashable) -> _Waiter:
        with self._mutex:
            return self._queues[key][0]

    async def _wait(self, key: Hashable) -> None:
        turn = self._enter(key, asyncio.get_running_loop())
        try:
            if not turn.granted.done():
                await asyncio.wrap_future(turn.granted)
        except BaseException:
            self._leave(key, turn)
            raise

    def _enter(self, key: Hashable, loop: asyncio.AbstractEventLoop | None) -> _Waiter:
        turn = _Waiter(loop)
        # A blocking call inside an event loop: no task of that loop can finish before it returns.
        here = running_loop() if loop is None else None
        with self._mutex:
            queue = self._queues.setdefault(key, deque())
            if here is not None and any(each.loop is here for each in queue):
                raise _endless()
            queue.append(turn)
            if len(queue) == 1:
                turn.grant()
        return turn

    def _leave(self, key: Hashable, turn: _Waiter) -> None:
        """Leave a queue, or give back a turn that came at that very moment."""
        # The turn may come between the exception and this line; then it is ours to give back.
        if turn.granted.cancel():
            with self._mutex:
                queue = self._queues.get(key, deque())
                if turn in queue:
                    queue.remove(turn)
        else:
            self.release(key)


def _endless() -> BackendError:
    return BackendError(
        "parallel_mutation",
        "A task of an event loop that waits here is changing the same file, so waiting for it would never "
        "end. Await the async method instead.",
    )


@cache
def get_shared_locks() -> KeyedLocks:
    """Return the locks that this whole process shares."""
    return KeyedLocks()
