"""Read the events of a run, or of a thread: all of its runs, one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final

import sqlalchemy as sa

from deepagents._values import field, recordclass
from deepagents_server.database.engine import Row
from deepagents_server.database.runs import ACTIVE
from deepagents_server.database.tables import run_events, runs, threads
from deepagents_server.events import Event
from deepagents_server.serialize import load
from deepagents_server.server import Server

_AHEAD: Final = 64
"""Events that are read before a client takes them."""
_LOOKED_AT: Final = 100
"""The newest runs of a thread among which new ones are looked for."""

_RUNS: Final[Any] = sa.select(*[runs.c[name] for name in ("run_id", "graph_id", "status")])
"""What is read of the runs of a thread: there may be thousands, with all that they were asked."""

Followed = tuple[Row, Event | None]
"""An event of a run, of which `run_id` and `graph_id` are given; `None` once there are no more."""


async def is_over(server: Server, run_id: str) -> bool:
    """Tell whether a run has ended."""
    status, _ = await read_end(server, run_id)
    return status not in ACTIVE


async def read_end(server: Server, run_id: str) -> tuple[str | None, Mapping[str, Any]]:
    """Return the status of a run, and how it failed; one that was taken back is gone."""
    query: Any = sa.select(runs.c.status, runs.c.error).where(runs.c.run_id == run_id)
    row = await server.database.row(query)
    return (row["status"], load(row["error"]) or {}) if row else (None, {})


def read_run(server: Server, run_id: str, after: int, beat: float) -> aclosing[AsyncGenerator[Event | None]]:
    """Read the events of a run after a number, in a block; after `beat` silent seconds comes `None`."""
    return aclosing(server.events.read(run_id, after, lambda: is_over(server, run_id), beat))


@asynccontextmanager
async def follow_thread(
    server: Server, thread_id: str, since: int | None, *, whole: bool, beat: float
) -> AsyncGenerator[AsyncGenerator[Followed | None]]:
    """Yield the events of a thread's runs after a number, as long as the thread is there.

    `since` is `None` for what happens from now on. A run with later events is given from its beginning with
    `whole`. After `beat` silent seconds comes `None`.
    """
    follower = _Follower(server, thread_id, since, whole=whole, beat=beat)
    try:
        async with aclosing(follower.read()) as events:
            yield events
    finally:
        await follower.close()


@recordclass
class _Follower:
    server: Server
    thread_id: str
    since: int | None
    whole: bool
    beat: float
    _queue: asyncio.Queue[Followed | None] = field(default_factory=lambda: asyncio.Queue(_AHEAD))
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by the run whose events are read; a thread has one run at a time, so nobody waits for long."""
    _known: set[str] = field(default_factory=set[str])
    _tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    async def read(self) -> AsyncGenerator[Followed | None]:
        with self.server.events.news_of(self.thread_id) as news:
            ended = await self._begin()
            looking = asyncio.create_task(self._look(news))
            self._tasks.add(looking)
            for run in ended:
                async for event in self._events(run):
                    yield run, event
                yield run, None
            self._turn.release()
            while (followed := await self._next()) or await self._is_there():
                yield followed

    async def _next(self) -> Followed | None:
        try:
            async with asyncio.timeout(self.beat):
                return await self._queue.get()
        except TimeoutError:
            return None

    async def _begin(self) -> list[Row]:
        """Follow the runs that are not over, behind those that are, which are returned in order."""
        await self._turn.acquire()
        of_thread = runs.c.thread_id == self.thread_id
        found = await self.server.database.rows(_RUNS.where(of_thread))
        self._known = {row["run_id"] for row in found}
        for row in found:
            if row["status"] in ACTIVE:
                self._follow(row)
        if self.since is None:
            return []
        by_id = {row["run_id"]: row for row in found if row["status"] not in ACTIVE}
        first, last = sa.func.min(run_events.c.seq), sa.func.max(run_events.c.seq)
        kept = (
            sa.select(run_events.c.run_id).join(runs, runs.c.run_id == run_events.c.run_id).where(of_thread)
        )
        kept = kept.group_by(run_events.c.run_id).having(last > self.since).order_by(first)
        ids = [row["run_id"] for row in await self.server.database.rows(kept)]
        return [by_id[run_id] for run_id in ids if run_id in by_id]

    async def _look(self, news: asyncio.Event) -> None:
        newest = (
            _RUNS.where(runs.c.thread_id == self.thread_id).order_by(runs.c.number.desc()).limit(_LOOKED_AT)
        )
        while True:
            await news.wait()
            news.clear()
            for row in reversed(await self.server.database.rows(newest)):
                if row["run_id"] not in self._known:
                    self._known.add(row["run_id"])
                    self._follow(row)
            if not await self._is_there():
                await self._queue.put(None)

    def _follow(self, run: Row) -> None:
        task = asyncio.create_task(self._pass_on(run))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _pass_on(self, run: Row) -> None:
        has_turn = False
        try:
            async for event in self._events(run):
                if not has_turn:
                    has_turn = await self._turn.acquire()
                await self._queue.put((run, event))
            if has_turn:
                await self._queue.put((run, None))
        finally:
            if has_turn:
                self._turn.release()

    async def _events(self, run: Row) -> AsyncGenerator[Event]:
        after = 0 if self.whole else self.since or 0
        async with read_run(self.server, run["run_id"], after, self.beat) as events:
            async for event in events:
                if event:
                    yield event

    async def _is_there(self) -> bool:
        query = sa.select(threads.c.thread_id).where(threads.c.thread_id == self.thread_id)
        return await self.server.database.row(query) is not None

    async def close(self) -> None:
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
