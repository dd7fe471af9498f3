"""Write I/O once, run it with or without an event loop.

Code that does I/O is `async def` and awaits `IOCall`s, or other such code. `arun` drives it for awaiting
callers. `run` drives it for blocking callers without an event loop: a coroutine is a generator, which says
what it waits for, and the driver decides how to wait. So such code must not sleep, create tasks or await
anything that needs an event loop; a foreign awaitable fails with a `TypeError` in both drivers.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future
from concurrent.futures import wait as wait_for_futures
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar, copy_context
from functools import update_wrapper
from time import monotonic
from typing import Any, Concatenate, Generic, ParamSpec, TypeAlias, TypeVar

from deepagents._values import valueclass

T = TypeVar("T")
P = ParamSpec("P")
Owner = TypeVar("Owner")

_SECONDS_TO_STOP = 2.0

Coro: TypeAlias = Coroutine[Any, Any, T]

# A context variable, because tasks inherit it: threads that a task starts deep inside are seen too.
_left_threads: ContextVar[list[Future[Any]] | None] = ContextVar("deepagents_left_threads", default=None)
# A moment of `monotonic()`: the wall clock may be set back while work is under way.
_DEADLINE: ContextVar[float | None] = ContextVar("deepagents_deadline", default=None)


@valueclass
class IOCall(Generic[T]):
    """One piece of I/O, as a function that blocks and as one that is awaited."""

    block: Callable[[], T]
    wait: Callable[[], Awaitable[T]]

    def __await__(self) -> Generator[IOCall[Any], Any, T]:
        result: T = yield self
        return result


def run(code: Coro[T]) -> T:
    """Run code to its end, blocking at each I/O call."""
    step = code.send
    value: Any = None
    try:
        while True:
            call = _io_call(step(value))
            try:
                value = call.block()
                step = code.send
            except BaseException as error:  # cancellation too: `finally` blocks of the code must run
                value = error
                step = code.throw
    except StopIteration as done:
        return done.value
    finally:
        code.close()


async def arun(code: Coro[T]) -> T:
    """Run code to its end, awaiting each I/O call."""
    step = code.send
    value: Any = None
    try:
        while True:
            call = _io_call(step(value))
            try:
                value = await call.wait()
                step = code.send
            except BaseException as error:
                value = error
                step = code.throw
    except StopIteration as done:
        return done.value
    finally:
        code.close()


def _io_call(awaited: Any) -> IOCall[Any]:
    if isinstance(awaited, IOCall):
        return awaited  # pyright: ignore[reportUnknownVariableType]
    raise TypeError(f"code that also runs without an event loop can only await IOCall, got {awaited!r}")


def sync_and_async(
    method: Callable[Concatenate[Owner, P], Coro[T]],
) -> tuple[Callable[Concatenate[Owner, P], T], Callable[Concatenate[Owner, P], Awaitable[T]]]:
    """Make the blocking and the awaiting method of one `async def`."""

    def blocking(owner: Owner, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return run(method(owner, *args, **kwargs))

    async def awaiting(owner: Owner, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await arun(method(owner, *args, **kwargs))

    for made in (blocking, awaiting):
        update_wrapper(made, method)
        # LangGraph and LangSmith look through `__wrapped__`, and would take `blocking` for a coroutine.
        del made.__wrapped__  # pyright: ignore[reportFunctionMemberAccess]
        made.__signature__ = inspect.signature(method)
        # Layers that know each other chain the code itself, and drive it once.
        made.io_code = method  # pyright: ignore[reportFunctionMemberAccess]
    return blocking, awaiting


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that runs in this thread, if there is one."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def start_thread(work: Callable[[], T]) -> Future[T]:
    """Start blocking work in a thread of its own, which a program that ends does not wait for."""
    outcome: Future[T] = Future()
    # From here on it cannot be cancelled: work in a thread cannot be stopped.
    outcome.set_running_or_notify_cancel()
    # LangGraph keeps the run in context variables, which a new thread does not inherit.
    context = copy_context()

    def do() -> None:
        try:
            outcome.set_result(context.run(work))
        # Raised again in a coroutine it would end that as if it had returned.
        except StopIteration as error:
            outcome.set_exception(_without_stop_iteration(error))
        except BaseException as error:
            outcome.set_exception(error)

    # Not a pool: its workers are joined at exit, where one hanging call would keep the program from ending.
    threading.Thread(target=do, name="deepagents-io", daemon=True).start()
    return outcome


def _without_stop_iteration(error: StopIteration) -> RuntimeError:
    """Replace an error that can neither be thrown into a coroutine nor awaited."""
    instead = RuntimeError(f"StopIteration: {error}")
    instead.__cause__ = error
    return instead


async def within(seconds: float | None, work: Awaitable[T]) -> T:
    """Await work for so many seconds at most, and lose no cancellation that comes together with its end.

    `asyncio.wait_for` of Python 3.11 does (python/cpython#86296).

    Raises:
        TimeoutError: when it takes longer.
    """
    async with asyncio.timeout(seconds):
        return await work


async def await_thread(work: Callable[[], T]) -> T:
    """Await blocking work in a thread of its own; the work goes on when this is cancelled."""
    running = start_thread(work)
    left = _left_threads.get()
    if left is not None:
        left.append(running)
    return await asyncio.wrap_future(running)


def collect_threads() -> AbstractContextManager[list[Future[Any]]]:
    """Collect the threads that tasks begun meanwhile await; they outlast the cancellation of these tasks."""
    return setting(_left_threads, list[Future[Any]]())


@contextmanager
def setting(variable: ContextVar[Any], value: T) -> Generator[T]:
    """Let what runs meanwhile find this value in a context variable; yield it."""
    token = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(token)


def sleep(seconds: float) -> IOCall[None]:
    """Wait so many seconds."""
    return IOCall(lambda: time.sleep(seconds), lambda: asyncio.sleep(seconds))


def in_thread(work: Callable[[], T]) -> IOCall[T]:
    """Make an I/O call of blocking work: it runs here, or in a thread of its own when awaited."""
    return IOCall(work, lambda: await_thread(work))


def finish_first(call: IOCall[T]) -> IOCall[T]:
    """Make a call that ends before its cancellation arrives; a second cancellation does not wait for that."""
    return IOCall(call.block, lambda: _finish(call.wait))


async def _finish(work: Callable[[], Awaitable[T]]) -> T:
    running = asyncio.ensure_future(work())
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        # A write that is cut off in the middle would leave it open whether it took effect.
        ended, _ = await asyncio.wait({running})
        for each in ended:
            # Retrieved, or asyncio logs an exception that nothing waits for.
            _ = each.cancelled() or each.exception()
        raise


def gather(calls: Sequence[IOCall[T]]) -> IOCall[list[T]]:
    """Make one call of many: one after the other when blocking, all at the same time when awaited."""
    return IOCall(lambda: [call.block() for call in calls], lambda: _gather(calls))


def gather_threads(calls: Sequence[IOCall[T]]) -> IOCall[list[T]]:
    """Make one call of many that run at the same time: in threads of their own when blocking."""
    if len(calls) == 1:
        return gather(calls)
    return IOCall(
        lambda: [running.result() for running in [start_thread(call.block) for call in calls]],
        lambda: _gather(calls),
    )


async def _gather(calls: Sequence[IOCall[T]]) -> list[T]:
    return await asyncio.gather(*(call.wait() for call in calls))


def as_io_call(start: Callable[[], Coro[T]]) -> IOCall[T]:
    """Make one I/O call of whole code, so that it can run at the same time as other calls."""
    return IOCall(lambda: run(start()), lambda: arun(start()))


class ParallelCode(Generic[T]):
    """Code by number that runs at the same time: in threads when blocking, in tasks when awaited."""

    def __init__(self) -> None:
        self._running: dict[int, Future[T] | asyncio.Task[T]] = {}

    def start(self, number: int, code: Callable[[], Coro[T]]) -> IOCall[None]:
        """Make the call that starts code."""

        def begin() -> None:
            self._running[number] = start_thread(lambda: run(code()))

        async def begin_task() -> None:
            self._running[number] = asyncio.ensure_future(arun(code()))

        return IOCall(begin, begin_task)

    def wait(self, seconds: float) -> IOCall[dict[int, T]]:
        """Make the call that waits until some of it has ended, and returns what that returned, by number.

        Where time runs out first, that is nothing.
        """

        def block() -> dict[int, T]:
            wait_for_futures(self._threads(), seconds, FIRST_COMPLETED)
            return self._take()

        async def wait() -> dict[int, T]:
            await asyncio.wait(self._tasks(), timeout=seconds, return_when=FIRST_COMPLETED)
            return self._take()

        return IOCall(block, wait)

    def cancel(self) -> IOCall[None]:
        """Make the call that cancels what still runs; a thread goes on, and what it returns is dropped."""

        async def wait() -> None:
            running = self._tasks()
            for each in running:
                each.cancel()
            if running:
                await asyncio.wait(running, timeout=_SECONDS_TO_STOP)

        return IOCall(lambda: None, wait)

    def _threads(self) -> list[Future[T]]:
        return [each for each in self._running.values() if isinstance(each, Future)]

    def _tasks(self) -> list[asyncio.Task[T]]:
        return [each for each in self._running.values() if isinstance(each, asyncio.Task)]

    def _take(self) -> dict[int, T]:
        done = [number for number, each in self._running.items() if each.done()]
        return {number: self._running.pop(number).result() for number in done}


class BackgroundCode:
    """Code that runs at the same time as other code, until it ends or is stopped."""

    def __init__(self) -> None:
        self._is_stopped = threading.Event()
        self._running: Future[None] | asyncio.Task[None] | None = None

    def start(self, code: Callable[[], Coro[None]]) -> IOCall[None]:
        """Make the call that starts the code: in a thread, or in a task when awaited."""

        def begin() -> None:
            self._running = start_thread(lambda: run(code()))

        async def begin_task() -> None:
            self._running = asyncio.ensure_future(arun(code()))

        return IOCall(begin, begin_task)

    def pause(self, seconds: float) -> IOCall[bool]:
        """Make a call by which the code waits; it returns whether to go on."""

        async def wait() -> bool:
            await asyncio.sleep(seconds)
            return not self._is_stopped.is_set()

        return IOCall(lambda: not self._is_stopped.wait(seconds), wait)

    def wait(self, seconds: float) -> IOCall[None]:
        """Make a call that waits for the end of the code, at most so many seconds."""

        def block() -> None:
            if isinstance(self._running, Future):
                wait_for_futures([self._running], seconds)

        async def wait() -> None:
            if isinstance(self._running, asyncio.Task):
                await asyncio.wait({self._running}, timeout=seconds)

        return IOCall(block, wait)

    def drop(self) -> None:
        """Cancel code that is awaited, without waiting for that; a thread goes on."""
        task = self._running
        if isinstance(task, asyncio.Task) and not task.get_loop().is_closed():
            task.get_loop().call_soon_threadsafe(task.cancel)

    def stop(self) -> IOCall[None]:
        """Make a call that stops the code, and waits for that a while: it may wait for something itself."""

        def block() -> None:
            self._is_stopped.set()
            if isinstance(self._running, Future):
                wait_for_futures([self._running], _SECONDS_TO_STOP)

        async def wait() -> None:
            self._is_stopped.set()
            if isinstance(self._running, asyncio.Task):
                self._running.cancel()
                await asyncio.wait({self._running}, timeout=_SECONDS_TO_STOP)

        return IOCall(block, wait)


def due_in(seconds: float | None) -> AbstractContextManager[float | None]:
    """Let what runs meanwhile know how long it may take; `None` says nothing new, and no bound is lifted."""
    bounds = (_DEADLINE.get(), None if seconds is None else monotonic() + seconds)
    return setting(_DEADLINE, min((each for each in bounds if each is not None), default=None))


def seconds_left() -> float | None:
    """Return how long the work in progress may still take; `None` without a bound."""
    deadline = _DEADLINE.get()
    return None if deadline is None else max(deadline - monotonic(), 0.0)
