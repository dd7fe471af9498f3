"""Stream a completion, for blocking and for awaiting callers. Leaving the stream stops the work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import ExitStack, suppress
from queue import SimpleQueue
from threading import Event as Flag
from threading import Thread

from deepagents_local.engine import Engine, Event, Request

Item = Event | BaseException | None


def stream(engine: Engine, request: Request) -> Generator[Event]:
    """The events of a completion, one by one."""
    box: SimpleQueue[Item] = SimpleQueue()
    stop = _start(engine, request, box.put)
    try:
        while (item := box.get()) is not None:
            yield _event(item)
    finally:
        stop.set()


async def astream(engine: Engine, request: Request) -> AsyncGenerator[Event]:
    """The events of a completion, one by one."""
    loop = asyncio.get_running_loop()
    box: asyncio.Queue[Item] = asyncio.Queue()
    stop = _start(engine, request, lambda item: _post(loop, box, item))
    try:
        while (item := await box.get()) is not None:
            yield _event(item)
    finally:
        stop.set()


def _post(loop: asyncio.AbstractEventLoop, box: asyncio.Queue[Item], item: Item) -> None:
    with suppress(RuntimeError):  # the loop is gone, and with it whoever listened
        loop.call_soon_threadsafe(box.put_nowait, item)


def _start(engine: Engine, request: Request, put: Callable[[Item], None]) -> Flag:
    stop = Flag()

    def end(_kind: object, error: BaseException | None, _trace: object) -> bool:
        put(error)
        return True

    def work() -> None:
        with ExitStack() as stack:
            stack.push(end)
            engine.complete(request, put, stop.is_set)

    Thread(target=work, name="deepagents-local-model", daemon=True).start()
    return stop


def _event(item: Event | BaseException) -> Event:
    if isinstance(item, BaseException):
        raise item
    return item
