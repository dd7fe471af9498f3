"""Write I/O once, run it blocking or awaiting.

A flow is a generator that yields `Call`s and receives their results. It does no I/O itself, so the same
body serves
a blocking and an awaiting caller. A flow must not sleep, spawn or touch an event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")
Owner = TypeVar("Owner")

Flow = Generator["Call[Any]", Any, T]


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


def in_thread(work: Callable[[], T]) -> Call[T]:
    """Make a call of blocking work: run here, or in a worker thread when awaited."""
    return Call(work, lambda: asyncio.to_thread(work))
