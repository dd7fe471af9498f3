"""A call is waited for only so long, and only so many overdue ones are left running."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from deepagents._async import IOCall, await_thread
from deepagents.backends._patience import Patience
from deepagents.errors import BackendError
from tests.conftest import CallMode

SHORT = 0.02


class Door:
    """Calls that wait here until it opens."""

    def __init__(self, call_mode: CallMode) -> None:
        self.opened = threading.Event()
        self.call_mode = call_mode
        self.call = IOCall(self.wait, lambda: await_thread(self.wait))

    def wait(self) -> str:
        self.opened.wait(60)
        return "through"

    def open(self) -> None:
        self.opened.set()
        for thread in threading.enumerate():
            if thread.name == "deepagents-io":
                thread.join(10)

    def try_(self, patience: Patience, seconds: float | None = None, part: str = "/") -> str:
        bound = patience.bound(self.call, "read", seconds, part)
        return self.call_mode.call(_Bound(bound), "go")


class _Bound:
    def __init__(self, call: IOCall[str]) -> None:
        self.go = call.block
        self._wait = call.wait

    async def ago(self) -> str:
        return await self._wait()


@pytest.fixture
def door(call_mode: CallMode) -> Iterator[Door]:
    """A door that is open at the end."""
    door = Door(call_mode)
    yield door
    door.open()


def test_a_call_in_time_answers(door: Door) -> None:
    door.open()

    assert door.try_(Patience(30)) == "through"


def test_without_a_bound_the_call_stays_as_it_is(door: Door) -> None:
    assert Patience().bound(door.call, "read") is door.call


def test_an_overdue_call_says_that_it_may_still_take_effect(door: Door) -> None:
    with pytest.raises(
        BackendError, match=r"read timed out after 0\.02s\. It may still take effect"
    ) as raised:
        door.try_(Patience(SHORT))

    assert raised.value.code == "timeout"


def test_a_bound_of_one_call_goes_before_that_of_all(door: Door) -> None:
    with pytest.raises(BackendError, match=r"after 0\.02s"):
        door.try_(Patience(60), SHORT)


def test_the_fifth_overdue_call_is_not_tried_until_one_is_back(door: Door) -> None:
    patience = Patience(SHORT)
    for _ in range(4):
        with suppress(BackendError):
            door.try_(patience)
    with pytest.raises(BackendError, match="too many calls are already running"):
        door.try_(patience)
    door.open()
    door.try_(Patience(30))

    assert door.try_(patience, 30) == "through"


def test_one_part_that_hangs_holds_up_no_other(door: Door) -> None:
    patience = Patience(SHORT)
    for _ in range(4):
        with suppress(BackendError):
            door.try_(patience, part="/wedged")
    with pytest.raises(BackendError, match="was not tried"):
        door.try_(patience, part="/wedged")
    other = Door(door.call_mode)
    other.opened.set()

    assert other.try_(patience, 30, part="/healthy") == "through"


def test_a_failure_in_time_is_that_failure(call_mode: CallMode) -> None:
    def fail() -> str:
        raise TimeoutError("the server's own")

    door = Door(call_mode)
    door.call = IOCall(fail, lambda: await_thread(fail))
    with pytest.raises(TimeoutError, match="the server's own"):
        door.try_(Patience(30))


async def test_cancelling_the_wait_cancels_what_is_awaited() -> None:
    seen: list[str] = []
    started = asyncio.Event()

    async def work() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise
        return "never"

    bound = Patience(60).bound(IOCall(lambda: "never", work), "read")
    waiting = asyncio.ensure_future(bound.wait())
    await started.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    assert seen == ["cancelled"]


async def test_an_overdue_call_is_cancelled_and_leaves_no_task() -> None:
    async def work() -> str:
        await asyncio.Event().wait()
        return "never"

    with pytest.raises(BackendError, match="timed out"):
        await Patience(SHORT).bound(IOCall(lambda: "never", work), "read").wait()
    await asyncio.sleep(0)

    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_cancelling_does_not_wait_without_end_for_what_will_not_stop() -> None:
    started, stop = asyncio.Event(), asyncio.Event()

    async def stubborn() -> str:
        started.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await stop.wait()
        return "at last"

    bound = Patience(SHORT * 50).bound(IOCall(lambda: "never", stubborn), "read")
    waiting = asyncio.ensure_future(bound.wait())
    await started.wait()
    waiting.cancel()
    ended, _ = await asyncio.wait({waiting}, timeout=30)
    stop.set()

    assert waiting in ended
    assert waiting.cancelled()


async def test_how_an_overdue_call_ends_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    go_on = asyncio.Event()

    async def fail_late() -> str:
        await go_on.wait()
        raise ValueError("postgres://user:password@host")

    with suppress(BackendError):
        await Patience(SHORT).bound(IOCall(lambda: "never", fail_late), "read").wait()
    go_on.set()
    for _ in range(3):
        await asyncio.sleep(0)
    gc.collect()

    assert not caplog.records
