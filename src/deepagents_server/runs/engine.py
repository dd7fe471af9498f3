"""Start runs as soon as they may, see them through, and let those go on that a crash has cut off."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext, suppress
from functools import partial
from typing import Any, Final, Literal, TypeVar
from uuid import uuid4

import sqlalchemy as sa

from deepagents._values import field, recordclass
from deepagents_server.background import in_background
from deepagents_server.database import Database
from deepagents_server.database.engine import Row
from deepagents_server.database.notices import Notices
from deepagents_server.database.run_control import end_run, find_marked
from deepagents_server.database.runs import (
    STEER,
    Here,
    Taken,
    begin,
    move_runs,
    pass_on_overdue,
    recover,
    take_again,
)
from deepagents_server.database.tables import runs
from deepagents_server.errors import OUTAGES, show_cause
from deepagents_server.events import EventLog
from deepagents_server.graphs import Graphs
from deepagents_server.logs import log_about
from deepagents_server.metrics import Metrics
from deepagents_server.runs.active import Active
from deepagents_server.runs.execute import Attempt
from deepagents_server.runs.liveness import BEAT, DEAD, beating, find_most_slots, look_around, reap
from deepagents_server.runs.workflows import working_off

T = TypeVar("T")
Action = Literal["interrupt", "rollback"]
_LOOK_AGAIN: Final = 30
"""Seconds after which a worker looks for what it may not have been told."""
_SPARE: Final = 10
"""Of so many places, one is kept for those who have no run at work: owners, however busy, share a worker."""
_PATIENCE: Final = 1.0
"""Seconds for which a run from the queue waits for a place here, before it is given back."""
_RETRY: Final = 0.5
"""Seconds between two tries to reach the database."""
_log: Final = logging.getLogger("deepagents.server")


@recordclass
class RunEngine:
    """The runs of this process: as many at once as there is room for, one on each thread."""

    database: Database
    graphs: Graphs
    events: EventLog
    notices: Notices
    slots: int = 10
    version: str = "1"
    """Of the code: runs are left to workers of the version with which they began."""
    owner_limit: int | None = None
    """How many runs of one owner may work at once, everywhere."""
    worker: str = field(default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:8]}")
    on_webhook: Callable[[], None] | None = None
    """Called when a run has ended of which a webhook is to hear."""
    metrics: Metrics = field(default_factory=Metrics)
    has_owners: bool = True
    """Whether callers have names, and so share the places of a worker."""
    _active: dict[str, Active] = field(default_factory=dict[str, Active], init=False)
    _expected: set[str] = field(default_factory=set[str], init=False)
    """Runs that are about to begin here, which have room kept for them."""
    _given: set[str] = field(default_factory=set[str], init=False)
    """Runs that the queue has given to this worker."""
    _waiting: dict[str, tuple[int, str]] = field(default_factory=dict[str, tuple[int, str]], init=False)
    """Those of them that wait for a place, with their ranks and owners."""
    _freed: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _background: set[asyncio.Task[Any]] = field(default_factory=set[asyncio.Task[Any]], init=False)
    _stopping: bool = field(default=False, init=False)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Work until the block ends; what still runs then goes on elsewhere, or at the next start."""
        self._listen_to_others()
        async with self.notices.exchanging():
            if self.slots == 0:
                yield
                return
            url = sa.make_url(self.database.url)
            with beating(url, self.worker, self.slots) if self.database.is_shared else nullcontext():
                async with self._working():
                    yield

    @asynccontextmanager
    async def _working(self) -> AsyncGenerator[None]:
        if not self.database.is_shared:
            # The one process of a file takes up what the one before it has left.
            await move_runs(self.database, self.version)
            await recover(self.database, None)
        others = self._reap if self.database.is_shared else self._look_for_commands
        try:
            async with await self._working_off(), in_background(others()):
                try:
                    yield
                finally:
                    self._stopping = True
                    await self._cut_off()
        finally:
            # From now on the queue gives nothing to this worker.
            with suppress(*OUTAGES):
                await recover(self.database, self.worker)

    async def _working_off(self) -> AbstractAsyncContextManager[None]:
        async def run_workflow(run_id: str, owner: str, rank: int) -> None:
            self._given.add(run_id)
            try:
                await self._run(run_id, owner, rank)
            finally:
                self._given.discard(run_id)

        # The queue has one limit for all workers, of whatever size. What is too much for one waits in `_run`.
        slots = max(self.slots, await find_most_slots(self.database))
        limits: dict[str, Any] = {"worker_concurrency": slots, "partition_concurrency": self.owner_limit}
        if self.has_owners:
            limits["partition_worker_concurrency"] = min(slots - slots // _SPARE, self.owner_limit or slots)
        return working_off(self.database, self.worker, self.version, run_workflow, **limits)

    def _listen_to_others(self) -> None:
        self.notices.on("stop", partial(self._end_early, "interrupt"))
        self.notices.on("steer", partial(self._end_early, STEER))
        self.notices.on("events", self.events.wake)
        self.notices.on("end", self.events.wake)
        self.notices.on("watch", self.events.keep)
        self.notices.on("begin", self.events.wake)
        self.notices.on_return = self._look_again
        if self.database.is_shared:
            self.events.on_kept = lambda run_id: self.notices.send(("events", run_id))
            self.events.on_reader = lambda run_id: self.notices.send(("watch", run_id))

    def _look_again(self) -> None:
        self.events.wake_all()
        for active in self._active.values():
            self._in_background(self._heed(active))

    async def cancel(self, run: Row, action: Action) -> None:
        """End a run early; `rollback` also takes back what it did to its thread."""
        await end_run(self.database, self.notices, run, action)

    def cancel_soon(self, run: Row, action: Action) -> None:
        """End a run early, from a task that is being cancelled itself."""
        self._in_background(self.cancel(run, action))

    def _in_background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    def _end_early(self, why: str, run_id: str) -> None:
        if active := self._active.get(run_id):
            active.end_early(why)

    async def _reap(self) -> None:
        idle: set[str] = set()
        for beat in itertools.count(1):
            await asyncio.sleep(BEAT)
            if beat % _LOOK_AGAIN == 0:
                # A process that was killed may have left something unsaid.
                self._look_again()
            try:
                seen = await look_around(self.database, self.worker)
                if seen.is_lost:
                    await reap(self.database)
                if seen.overdue:
                    await pass_on_overdue(self.database, seen.overdue)
                if beat % DEAD == 0:
                    idle = await self._recover_idle(seen.held, idle)
            except OUTAGES as error:
                _log.warning("Lost workers cannot be looked for: %s", show_cause(error))
                # While the database was away nobody could show signs of life.
                await asyncio.sleep(DEAD)

    async def _recover_idle(self, begun: set[str], before: set[str]) -> set[str]:
        """Give back what this worker was given without hearing of it, as when a connection broke in a commit.

        Twice idle in a row, since a run may just have been given. Returned is what is idle now.
        """
        queue = self.database.queue
        given = await self.database.in_thread(queue.find, status="PENDING", executor_id=self.worker)
        known = {*self._active, *self._expected, *self._given}
        idle = {*begun, *given.values()} - known
        if lost := idle & before:
            _log.warning("%d runs did not begin here though they were given; they wait anew", len(lost))
            await recover(self.database, self.worker, known | idle - lost)
        return idle

    async def _look_for_commands(self) -> None:
        """Heed what `deepagents runs` writes into a file: no notice leads from there to this process."""
        while True:
            await asyncio.sleep(BEAT)
            working = [run_id for run_id, each in self._active.items() if not each.work.cancelling()]
            with suppress(*OUTAGES):
                for row in await find_marked(self.database, working):
                    self._end_early(row["cancelled"], row["run_id"])

    @property
    def room(self) -> int:
        """How many more runs can work here."""
        return 0 if self._stopping else self.slots - len({*self._active, *self._expected})

    @contextmanager
    def reserving(self) -> Generator[Here]:
        """Give what keeps room for runs that can begin here at once, until the block ends."""
        held = set[str]()

        def keep_place(run: Row) -> bool:
            if not self._may_begin(run) or not self._has_place(run["owner"]):
                return False
            held.add(run["run_id"])
            self._expected.add(run["run_id"])
            return True

        try:
            yield Here(self.worker, keep_place)
        finally:
            self._release(held)

    def _has_place(self, owner: str) -> bool:
        """Tell whether there is a place for an owner: the last ones are for those who have no run at work."""
        at_work = (active.attempt.run["owner"] for active in self._active.values())
        return self.room > 0 and not (owner and self.room <= self.slots // _SPARE and owner in at_work)

    def _may_begin(self, run: Row) -> bool:
        """Tell whether a run may begin here without the queue, which alone counts for all workers."""
        is_mine = run["version"] == self.version and run["graph_id"] in self.graphs
        return is_mine and self.owner_limit is None and not self._stopping

    def _release(self, run_ids: set[str]) -> None:
        self._expected -= run_ids
        self._freed.set()

    async def _run(self, run_id: str, owner: str, rank: int) -> None:
        """Run what the queue has given to this worker, or give it back if there is no room for long."""
        has_place = await self._wait_for_place(run_id, owner, rank)
        graphs = [*self.graphs] if has_place else None
        try:
            taken = await self._insist(
                lambda: begin(self.database, run_id, self.worker, self.version, graphs)
            )
            driver = self.start(taken) if taken else None
        finally:
            self._release({run_id})
        if driver:
            await asyncio.wait([driver])

    async def _wait_for_place(self, run_id: str, owner: str, rank: int) -> bool:
        """Wait for a place: the queue knows only of those that it has filled itself."""
        self._waiting[run_id] = rank, owner
        try:
            async with asyncio.timeout(_PATIENCE):
                while rank != self._first_rank():
                    self._freed.clear()
                    await self._freed.wait()
        except TimeoutError:
            if self._stopping:
                # It is given back when the queue is at rest.
                await asyncio.Event().wait()
            return False
        finally:
            del self._waiting[run_id]
            self._freed.set()
        self._expected.add(run_id)
        return True

    def _first_rank(self) -> int:
        """Return the rank of the run that is to have the next place; 0 if there is none for any."""
        return min((rank for rank, owner in self._waiting.values() if self._has_place(owner)), default=0)

    async def _insist(self, change: Callable[[], Awaitable[T]]) -> T:
        """Change the database as soon as it answers."""
        while True:
            try:
                return await change()
            except Exception as error:  # noqa: BLE001
                # Whatever it was: a run that is given up here would never begin.
                self.database.log_failure("A run cannot begin", error)
            await asyncio.sleep(_RETRY)

    def start(self, taken: Taken) -> asyncio.Task[None]:
        """Let a run begin that this worker has taken."""
        run_id = taken[0]["run_id"]
        if before := self._active.get(run_id):
            # A process that was asleep may be given again what it still believes to be at work on.
            before.end_early("interrupt")
        active = Active(self._attempt(taken))
        self._active[run_id] = active
        self._in_background(self._heed(active))
        active.driver = self._in_background(self._see_through(active))
        return active.driver

    def _attempt(self, taken: Taken) -> Attempt:
        return Attempt(self.database, self.graphs, self.events, self.metrics, *taken)

    async def _see_through(self, active: Active) -> None:
        """Let a run work until it is over, or has to go on elsewhere."""
        run_id = active.attempt.run_id
        log_about(**active.attempt.named)
        try:
            while not await self._is_through(active):
                attempt = active.attempt
                await asyncio.sleep(_RETRY)
                again = partial(take_again, self.database, attempt.run, attempt.token, self.worker)
                if (taken := await self._insist(again)) is None:
                    _log.warning(
                        "Run %s goes on elsewhere; what this attempt still wrote was refused", run_id
                    )
                    return
                _log.warning("Run %s begins again, since the database could not be used", run_id)
                active.begin(self._attempt(taken))
                await self._heed(active)
        finally:
            if self._active.get(run_id) is active:
                del self._active[run_id]
            # Also where this fails, readers must not wait for a process that does no more.
            await active.attempt.leave()
            self._freed.set()
        if self.database.is_shared:
            self.notices.send(("end", run_id))

    async def _is_through(self, active: Active) -> bool:
        """Wait for an attempt and write how it ended; `False` if the database was away meanwhile."""
        await asyncio.wait([active.work])
        if active.work.cancelled() and self._stopping:
            return True
        error = None if active.work.cancelled() else active.work.exception()
        if error and self.database.is_away(error):
            return False
        try:
            await self._settle(active.attempt, active.work, error)
        except Exception as failure:
            # Also a disk that is full: the end of a run is written when there is room.
            if isinstance(failure, OUTAGES) or self.database.is_away(failure):
                return False
            raise
        return True

    async def _settle(self, attempt: Attempt, work: asyncio.Task[None], error: BaseException | None) -> None:
        action = await self._read_cancelled(attempt.run_id) if work.cancelled() else None
        if action == "rollback":
            outcome = await attempt.undo()
        elif work.cancelled():
            outcome = await attempt.outcome("interrupted")
        elif error:
            _log.warning("Run %s failed", attempt.run_id, exc_info=error)
            outcome = await attempt.outcome("error", error)
        else:
            outcome = await attempt.outcome("interrupted" if attempt.gave_way else "success")
        following = await attempt.settle(outcome, Here(self.worker, self._may_begin))
        if following:
            self.start(following)
        if self.on_webhook and attempt.kwargs.get("webhook"):
            self.on_webhook()

    async def _read_cancelled(self, run_id: str) -> str | None:
        row = await self.database.row(sa.select(runs.c.cancelled).where(runs.c.run_id == run_id))
        return row["cancelled"] if row else None

    async def _heed(self, active: Active) -> None:
        """End a run early if that was asked before it was at work here, or while no notice could arrive."""
        with suppress(*OUTAGES):
            active.end_early(await self._read_cancelled(active.attempt.run_id))

    async def _cut_off(self) -> None:
        """End the attempts at work here; their runs go on elsewhere, or at the next start."""
        for active in self._active.values():
            active.end_early("interrupt")
        if drivers := [active.driver for active in self._active.values() if active.driver]:
            await asyncio.wait(drivers, timeout=10)
