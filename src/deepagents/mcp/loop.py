"""Run an event loop in a thread of its own, which callers of any kind share."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import Context
from typing import Any, TypeVar

from deepagents._async import Coro, IOCall, seconds_left

T = TypeVar("T")


class LoopThread:
    """One daemon thread with one event loop, from the first call until `stop`.

    Connections belong to the loop that opened them, and callers come and go with loops of their own.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def is_here(self) -> bool:
        """Whether this code runs in the thread of the loop."""
        return threading.current_thread() is self._thread

    def call(self, work: Callable[[], Coro[T]]) -> IOCall[T]:
        """Make a call of work in the loop; a cancelled call cancels the work."""

        def block() -> T:
            running = self.begin(work)
            try:
                return running.result(seconds_left())
            except BaseException:
                running.cancel()
                raise

        async def wait() -> T:
            return await asyncio.wrap_future(self.begin(work))

        return IOCall(block, wait)

    def begin(self, work: Callable[[], Coro[T]]) -> Future[T]:
        """Begin work in the loop, which starts with the first."""
        with self._lock:
            if self._loop is None:
                # In an empty context: the first handle of a loop keeps its context as long as the loop
                # lives, and with LangGraph's run in it the agent, which then is never collected.
                self._loop = Context().run(asyncio.new_event_loop)
                self._thread = threading.Thread(
                    target=Context().run, args=(_run, self._loop), name="deepagents-mcp", daemon=True
                )
                self._thread.start()
            loop = self._loop
        return Context().run(asyncio.run_coroutine_threadsafe, work(), loop)

    def tell(self, work: Callable[[], object]) -> None:
        """Have something done in the loop, if it still runs, and do not wait."""
        with suppress(RuntimeError):
            if self._loop is not None:
                self._loop.call_soon_threadsafe(work, context=Context())

    def stop(self, last: Callable[[], Coro[Any]]) -> threading.Thread | None:
        """Do some last work in the loop, then end it; return its thread, to wait for."""
        with self._lock:
            loop, thread = self._loop, self._thread
        if loop is None or loop.is_closed():
            return None
        work = last()
        try:
            running = Context().run(asyncio.run_coroutine_threadsafe, work, loop)
        except RuntimeError:
            # It was closed between the two lines.
            work.close()
            return None
        running.add_done_callback(lambda _: loop.call_soon_threadsafe(loop.stop))
        return thread


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        for each in left:
            each.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        asyncio.set_event_loop(None)
        # Three descriptors of each loop stay open otherwise.
        loop.close()
