"""Write I/O once, run it blocking or awaiting.

A flow is a generator that yields `Call`s and receives their results. It does no I/O itself, so the same
body serves a blocking and an awaiting caller. A flow must not sleep, spawn or touch an event loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable, Sequence
from concurrent.futures import Future
from contextlib import aclosing, contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

T = TypeVar("T")
S = TypeVar("S")
P = ParamSpec("P")
Owner = TypeVar("Owner")

Flow = Generator["Call[Any]", Any, T]

_noted: ContextVar[list[Future[Any]] | None] = ContextVar("deepagents_noted", default=None)


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One piece of I/O, in both colours."""

    block: Callable[[], T]
    wait: Callable[[], Awaitable[T]]

    def __iter__(self) -> Flow[T]:
        result: T = yield self
        return result


def run(flow: Flow[T]) -> T:
    """Drive a flow, blocking at each call."""
    step = flow.send
    value: Any = None
    try:
        while True:
            call = step(value)
            try:
                value = call.block()
                step = flow.send
            except BaseException as error:
                value = error
                step = flow.throw
    except StopIteration as done:
        return done.value
    finally:
        flow.close()


async def arun(flow: Flow[T]) -> T:
    """Drive a flow, awaiting each call."""
    step = flow.send
    value: Any = None
    try:
        while True:
            call = step(value)
            try:
                value = await call.wait()
                step = flow.send
            except BaseException as error:
                value = error
                step = flow.throw
    except StopIteration as done:
        return done.value
    finally:
        flow.close()


def twins(
    flow: Callable[Concatenate[Owner, P], Flow[T]],
) -> tuple[Callable[Concatenate[Owner, P], T], Callable[Concatenate[Owner, P], Awaitable[T]]]:
    """Make the blocking and the awaiting method of one flow method."""

    @wraps(flow)
    def blocking(owner: Owner, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return run(flow(owner, *args, **kwargs))

    @wraps(flow)
    async def awaiting(owner: Owner, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await arun(flow(owner, *args, **kwargs))

    return blocking, awaiting


async def aflattened(
    begin: Flow[None],
    parts: AsyncGenerator[S],
    see: Callable[[S], Iterable[T]],
    end: Callable[[], Iterable[T]],
) -> AsyncGenerator[T]:
    """Drive a flow, then yield what each part becomes, and what the end does; closing closes the parts."""
    await arun(begin)
    async with aclosing(parts):
        async for part in parts:
            for each in see(part):
                yield each
    for each in end():
        yield each


def aside(work: Callable[[], T]) -> Future[T]:
    """Start blocking work in a thread of its own, which nothing waits for when the program ends."""
    outcome: Future[T] = Future()
    outcome.set_running_or_notify_cancel()
    context = copy_context()

    def do() -> None:
        try:
            outcome.set_result(context.run(work))
        except StopIteration as error:
            outcome.set_exception(_as_in_a_coroutine(error))
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=do, name="deepagents-aside", daemon=True).start()
    return outcome


def _as_in_a_coroutine(error: StopIteration) -> RuntimeError:
    """Stand in for an error that can neither be thrown into a generator nor awaited."""
    instead = RuntimeError(f"StopIteration: {error}")
    instead.__cause__ = error
    return instead


async def await_aside(work: Callable[[], T]) -> T:
    """Await blocking work in a thread of its own; the work goes on when this is cancelled."""
    running = aside(work)
    noted = _noted.get()
    if noted is not None:
        noted.append(running)
    return await asyncio.wrap_future(running)


@contextmanager
def threads_noted() -> Generator[list[Future[Any]]]:
    """Note the blocking work that tasks begun meanwhile await, which outlasts their cancellation."""
    noted: list[Future[Any]] = []
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)


def in_thread(work: Callable[[], T]) -> Call[T]:
    """Make a call of blocking work: run here, or in a thread of its own when awaited."""
    return Call(work, lambda: await_aside(work))


def lasting(call: Call[T]) -> Call[T]:
    """Make a call that ends before its cancellation arrives; a second cancellation does not wait for that."""
    return Call(call.block, lambda: _lasted(call.wait))


async def _lasted(work: Callable[[], Awaitable[T]]) -> T:
    running = asyncio.ensure_future(work())
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        ended, _ = await asyncio.wait({running})
        for each in ended:
            _ = each.cancelled() or each.exception()
        raise


def together(calls: Sequence[Call[T]]) -> Call[list[T]]:
    """Make one call of many: one after the other when blocking, all at the same time when awaited."""
    return Call(lambda: [call.block() for call in calls], lambda: _gathered(calls))


def at_once(calls: Sequence[Call[T]]) -> Call[list[T]]:
    """Make one call of many that run at the same time: in threads of their own when blocking."""
    if len(calls) == 1:
        return together(calls)
    return Call(
        lambda: [running.result() for running in [aside(call.block) for call in calls]],
        lambda: _gathered(calls),
    )


async def _gathered(calls: Sequence[Call[T]]) -> list[T]:
    return await asyncio.gather(*(call.wait() for call in calls))


def as_call(flow: Callable[[], Flow[T]]) -> Call[T]:
    """Make a call of a whole flow, so that it can run beside others."""
    return Call(lambda: run(flow()), lambda: arun(flow()))
