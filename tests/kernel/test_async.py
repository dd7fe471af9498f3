"""A flow is one body for two colours: what its calls return or raise arrives inside it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from deepagents._async import Coro, IOCall, arun, finish_first, run, sync_and_async, within


def answering(value: Any) -> IOCall[Any]:
    async def later() -> Any:
        await asyncio.sleep(0)
        return value

    return IOCall(lambda: value, later)


def failing(error: BaseException) -> IOCall[Any]:
    def now() -> Any:
        raise error

    async def later() -> Any:
        raise error

    return IOCall(now, later)


@pytest.fixture(params=["run", "arun"])
def drive(request: pytest.FixtureRequest) -> Callable[[Coro[Any]], Any]:
    return run if request.param == "run" else lambda flow: asyncio.run(arun_to_end(flow))


async def arun_to_end(flow: Coro[Any]) -> Any:
    return await arun(flow)


def test_an_error_can_be_handled_inside(drive: Callable[[Coro[Any]], Any]) -> None:
    async def careful() -> str:
        try:
            await failing(OSError("disk"))
        except OSError as error:
            return f"handled {error}"
        return "not reached"

    assert drive(careful()) == "handled disk"


def test_cancellation_arrives_inside_the_flow() -> None:
    seen: list[str] = []

    async def waiting() -> None:
        try:
            await IOCall(lambda: None, lambda: asyncio.Event().wait())
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    async def scenario() -> None:
        task = asyncio.create_task(arun_to_end(waiting()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    assert seen == ["cancelled"]


async def test_what_lasts_is_over_when_its_cancellation_arrives() -> None:
    go_on, ended = asyncio.Event(), list[str]()

    async def work() -> None:
        await go_on.wait()
        ended.append("work")
        raise ValueError("nobody asks any more")

    waiting = asyncio.ensure_future(finish_first(IOCall(lambda: None, work)).wait())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.sleep(0)
    assert not waiting.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    assert ended == ["work"]


def test_one_flow_makes_both_methods() -> None:
    class Greeter:
        async def _greet(self, name: str) -> str:
            """Say hello."""
            hello = await answering("hello")
            return f"{hello} {name}"

        greet, agreet = sync_and_async(_greet)

    assert Greeter().greet("Ada") == "hello Ada"
    assert asyncio.run(arun_of(Greeter().agreet("Ada"))) == "hello Ada"
    assert Greeter.greet.__doc__ == "Say hello."


async def arun_of(awaitable: Any) -> Any:
    return await awaitable


@pytest.mark.parametrize("steps", range(4))
async def test_a_cancellation_that_comes_with_the_end_of_what_is_awaited_is_not_lost(steps: int) -> None:
    ended = asyncio.get_running_loop().create_future()
    waiting = asyncio.ensure_future(within(60, ended))
    await asyncio.sleep(0)
    ended.set_result("it has ended")
    for _ in range(steps):
        await asyncio.sleep(0)
    was_under_way = waiting.cancel()
    await asyncio.wait([waiting])

    assert waiting.cancelled() == was_under_way
