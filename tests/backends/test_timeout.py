"""A call is waited for only so long, and only so many overdue ones are left running."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from deepagents import FilesystemMiddleware, create_deep_agent
from deepagents._async import Coro, IOCall
from deepagents.backends import CompositeBackend, StateBackend
from deepagents.backends.handle import FileCalls
from deepagents.backends.protocol import BackendProtocol, GrepResult, ReadResult
from deepagents.backends.timeout import bound
from deepagents.errors import BackendError, ToolFailure
from deepagents.testing import ScriptedModel, call
from tests.backends.test_call import Files
from tests.conftest import CallMode

SHORT = 0.02


def waiting_for(work: Callable[[], Awaitable[str]]) -> Callable[[], Coro[str]]:
    """Make code whose one I/O call waits for something that only an event loop can do."""

    async def code() -> str:
        return await IOCall(lambda: "never", work)

    return code


class Wedged(BackendProtocol):
    """Reads nothing until it is let go; searches at once."""

    def __init__(self, let_go: threading.Event) -> None:
        self.let_go = let_go
        self.error: Exception | None = None

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        if self.error:
            raise self.error
        self.let_go.wait(60)
        return ReadResult(file_data={"content": "through", "encoding": "utf-8"})

    def grep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        return GrepResult(matches=[])


@pytest.fixture
def wedged(let_go: threading.Event) -> Wedged:
    return Wedged(let_go)


def read(call_mode: CallMode, files: Files) -> str:
    async def work(calls: FileCalls) -> str:
        page = await calls.read("/a", 0, 10)
        return str((page.file_data or {}).get("content"))

    return call_mode.call(files, "do", work)


def in_tree(let_go: threading.Event) -> Any:
    with pytest.warns(DeprecationWarning, match="factory"):
        return CompositeBackend(StateBackend(), {"/w/": lambda runtime: Wedged(let_go)})


@pytest.mark.filterwarnings("ignore:A backend factory")
@pytest.mark.parametrize(
    ("make_backend", "path"),
    [
        (lambda let_go: lambda runtime: Wedged(let_go), "/a"),
        (in_tree, "/w/a"),
        (
            lambda let_go: lambda runtime: CompositeBackend(StateBackend(), {"/w/": Wedged(let_go)}),
            "/w/a",
        ),
    ],
    ids=["factory", "factory of a route", "factory of a tree"],
)
def test_overdue_calls_count_for_all_that_a_factory_makes(
    call_mode: CallMode, let_go: threading.Event, make_backend: Callable[[threading.Event], Any], path: str
) -> None:
    backend = make_backend(let_go)
    with ScriptedModel(*[call("read_file", file_path=path)] * 6, "Done.") as model:
        files = FilesystemMiddleware(backend=backend, backend_timeout=SHORT)
        agent = create_deep_agent(model, middleware=[files])
        answers = call_mode.invoke(agent, {"messages": "Go"})["messages"][2:-1:2]

    assert ["was not tried" in each.text for each in answers] == [False] * 4 + [True] * 2


def test_files_that_hang_hold_up_no_search(call_mode: CallMode, wedged: Wedged) -> None:
    files = Files(wedged, SHORT)
    for _ in range(4):
        with suppress(ToolFailure):
            read(call_mode, files)

    async def search(calls: FileCalls) -> GrepResult:
        return await calls.grep("x", None)

    assert call_mode.call(files, "do", search).matches == []


def test_a_failure_in_time_is_that_failure(call_mode: CallMode, wedged: Wedged) -> None:
    wedged.error = TimeoutError("the server's own")

    with pytest.raises(ToolFailure, match="read failed: TimeoutError"):
        read(call_mode, Files(wedged, 30))


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

    bounded = bound(waiting_for(work), "read", 60, [])
    waiting = asyncio.ensure_future(bounded.wait())
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
        await bound(waiting_for(work), "read", SHORT, []).wait()
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

    bounded = bound(waiting_for(stubborn), "read", SHORT * 50, [])
    waiting = asyncio.ensure_future(bounded.wait())
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
        await bound(waiting_for(fail_late), "read", SHORT, []).wait()
    go_on.set()
    for _ in range(3):
        await asyncio.sleep(0)
    gc.collect()

    assert not caplog.records
