"""Turns at named things, across threads and tasks."""

from __future__ import annotations

import asyncio
import threading

import pytest

from deepagents._async import start_thread
from deepagents.backends._locks import KeyedLocks
from deepagents.errors import BackendError


async def test_threads_and_tasks_take_turns_in_order() -> None:
    locks = KeyedLocks()
    order: list[str] = []
    await locks.acquire("a").wait()

    async def task() -> None:
        await locks.acquire("a").wait()
        order.append("task")
        locks.release("a")

    def thread() -> None:
        locks.acquire("a").block()
        order.append("thread")
        locks.release("a")

    first = asyncio.ensure_future(task())
    await asyncio.sleep(0)
    second = threading.Thread(target=thread)
    second.start()
    locks.release("a")
    await first
    await asyncio.to_thread(second.join)

    assert order == ["task", "thread"]
    assert len(locks) == 0


async def test_a_cancelled_task_gives_up_its_place() -> None:
    locks = KeyedLocks()
    await locks.acquire("a").wait()
    waiting = asyncio.ensure_future(locks.acquire("a").wait())
    await asyncio.sleep(0)

    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    locks.release("a")

    assert len(locks) == 0


async def test_a_turn_that_comes_at_the_moment_of_cancelling_is_handed_on() -> None:
    locks = KeyedLocks()
    await locks.acquire("a").wait()
    waiting = asyncio.ensure_future(locks.acquire("a").wait())
    await asyncio.sleep(0)

    locks.release("a")
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    assert len(locks) == 0


async def test_blocking_for_a_task_of_the_same_loop_is_refused() -> None:
    locks = KeyedLocks()
    await locks.acquire("a").wait()

    with pytest.raises(BackendError, match="Await the async method") as caught:
        locks.acquire("a").block()
    locks.acquire("b").block()

    assert caught.value.code == "parallel_mutation"
    locks.release("b")
    locks.release("a")
    assert len(locks) == 0


async def test_a_task_that_gave_up_its_place_is_not_waited_for() -> None:
    locks = KeyedLocks()
    await asyncio.to_thread(locks.acquire("a").block)
    waiting = asyncio.ensure_future(locks.acquire("a").wait())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    threading.Timer(0.05, lambda: locks.release("a")).start()
    locks.acquire("a").block()
    locks.release("a")

    assert len(locks) == 0


async def test_a_thread_that_the_loop_waits_for_does_not_wait_for_a_task_of_that_loop() -> None:
    locks = KeyedLocks(still=0.02)
    await locks.acquire("a").wait()

    with pytest.raises(BackendError, match="Await the async method") as caught:
        start_thread(lambda: locks.acquire("a").block()).result(10)
    locks.release("a")

    assert caught.value.code == "parallel_mutation"
    assert len(locks) == 0


async def test_a_thread_waits_on_for_a_task_whose_loop_turns() -> None:
    locks = KeyedLocks(still=0.02)
    await locks.acquire("a").wait()
    waited = start_thread(lambda: locks.acquire("a").block())
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(waited)), 0.1)
    locks.release("a")
    await asyncio.wrap_future(waited)
    locks.release("a")

    assert len(locks) == 0
