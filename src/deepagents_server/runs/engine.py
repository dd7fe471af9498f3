"""Start runs as workflows of DBOS, cancel them, and take up those that a crash has left."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import socket
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal
from uuid import uuid4

import sqlalchemy as sa
from dbos import DBOS, SetWorkflowID
from dbos import error as dbos_error

from deepagents_server.database import Database
from deepagents_server.database.claims import Claim, claim, first_due
from deepagents_server.database.engine import Row
from deepagents_server.database.notices import RUNS, Notices
from deepagents_server.database.run_control import end_run, find_marked
from deepagents_server.database.runs import STEER, Taken, hand_back, move_runs, take_again, take_over
from deepagents_server.database.tables import leases, runs
from deepagents_server.errors import OUTAGES, show_cause
from deepagents_server.events import EventLog
from deepagents_server.graphs import Graphs
from deepagents_server.logs import log_about
from deepagents_server.metrics import Metrics
from deepagents_server.runs.active import Active
from deepagents_server.runs.execute import Attempt
from deepagents_server.runs.liveness import BEAT, DEAD, beating, hand_back_idle, look_around, reap
from deepagents_server.runs.workflows import RECOVERY_QUEUE, launch

Action = Literal["interrupt", "rollback"]
_LOOK_AGAIN: Final = 30.0
"""Seconds after which a worker looks for runs though nobody said that there are any."""
_SHORT: Final = 1.0
"""Seconds in which a run may end without being a workflow of DBOS; to record one costs two transactions."""
_SPARE: Final = 10
"""Of so many places, one is kept for those who have no run at work: owners, however busy, share a worker."""
_PAUSE: Final = 0.02
"""Seconds until a worker looks again that another held up."""
_RETRY: Final = 0.5
"""Seconds between two tries to reach the database."""
_log: Final = logging.getLogger("deepagents.server")


@dataclass
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
    _active: dict[str, Active] = field(default_factory=dict[str, Active], init=False)
    _driven: dict[str, asyncio.Task[None]] = field(default_factory=dict[str, asyncio.Task[None]], init=False)
    """Attempts that began here, by the names of their workflows."""
    _expected: set[str] = field(default_factory=set[str], init=False)
    """Runs that are about to begin here, which have room kept for them."""
    _news: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _workflow: Any = field(default=None, init=False)
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
            with beating(url, self.worker) if self.database.is_shared else nullcontext():
                async with self._working():
                    yield

    @asynccontextmanager
    async def _working(self) -> AsyncGenerator[None]:
        async def run_workflow(run_id: str) -> None:
            await self._run_workflow(run_id)

        async with launch(self.database, self.worker, self.version, run_workflow) as self._workflow:
            await self._recover_own()
            others = self._reap() if self.database.is_shared else self._look_for_commands()
            tasks = [asyncio.create_task(each) for each in (self._dispatch(), others)]
            try:
                yield
            finally:
                self._stopping = True
                for task in tasks:
                    task.cancel()
                await self._leave_runs()

    def _listen_to_others(self) -> None:
        self.notices.on("runs", lambda _: self._news.set())
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
        self._news.set()
        self.events.wake_all()
        for active in self._active.values():
            self._in_background(self._heed(active))

    async def wake(self) -> None:
        """Let workers look for runs that may start."""
        self.notices.send(RUNS)

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

    async def _recover_own(self) -> None:
        """Let runs start again whose process ended before DBOS had heard of them."""
        await DBOS.register_queue_async(RECOVERY_QUEUE, worker_concurrency=self.slots)
        if self.database.is_shared:
            return
        await move_runs(self.database, self.version)
        # DBOS begins again what had the same version of the code, or has begun it already.
        listed = await DBOS.list_workflows_async(
            status=["PENDING", "ENQUEUED"], app_version=self.version, load_input=False
        )
        known = {each.workflow_id.rsplit(":", 1)[0] for each in listed}
        self._expected = known - self._active.keys()
        for row in await self.database.rows(sa.select(leases.c.run_id).where(leases.c.run_id.is_not(None))):
            if row["run_id"] not in known:
                await hand_back(self.database, row["run_id"], self.worker)

    async def _reap(self) -> None:
        idle: set[str] = set()
        for beat in itertools.count(1):
            await asyncio.sleep(BEAT)
            if beat % _LOOK_AGAIN == 0:
                # A process that was killed may have left something unsaid.
                self._look_again()
            try:
                is_lost, held = await look_around(self.database, self.worker)
                moved = await reap(self.database, RECOVERY_QUEUE) if is_lost else 0
                before, idle = idle, held - self._active.keys()
                if moved + await hand_back_idle(self.database, self.worker, idle, before):
                    await self.wake()
            except (*OUTAGES, dbos_error.DBOSException) as error:
                _log.warning("Lost workers cannot be looked for: %s", show_cause(error))
                # While the database was away nobody could show signs of life.
                await asyncio.sleep(DEAD)

    async def _look_for_commands(self) -> None:
        """Heed what `deepagents runs` writes into a file: no notice leads from there to this process."""
        while True:
            await asyncio.sleep(BEAT)
            self._news.set()
            working = [run_id for run_id, each in self._active.items() if not each.work.cancelling()]
            with suppress(*OUTAGES):
                for row in await find_marked(self.database, working):
                    self._end_early(row["cancelled"], row["run_id"])

    async def _dispatch(self) -> None:
        while True:
            self._news.clear()
            try:
                pause = await self._start_what_may()
            except Exception as error:  # noqa: BLE001
                # Whatever it was: without this loop no run would begin any more.
                self.database.log_failure("Runs cannot be looked for", error)
                pause = 1.0
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._news.wait()

    async def _start_what_may(self) -> float:
        """Take runs and start them; return the seconds to the next look."""
        # Mostly nothing waits, and that is found without a transaction.
        due, moment = await first_due(self.database)
        if due is not None and due <= 0:
            if (room := self.room) > 0:
                mine = (self.worker, [*self.graphs], self.version)
                wanted = Claim(*mine, room, self.owner_limit, self._owners, self.slots // _SPARE)
                begun, is_held_up = await claim(self.database, wanted)
                for taken in begun:
                    self.start(taken)
                if is_held_up:
                    return _PAUSE
            due, _ = await first_due(self.database, moment)
        return _LOOK_AGAIN if due is None else max(0.01, min(due, _LOOK_AGAIN))

    @property
    def room(self) -> int:
        """How many more runs can work here."""
        return 0 if self._stopping else self.slots - len({*self._active, *self._expected})

    @property
    def _owners(self) -> set[str]:
        return {active.attempt.run["owner"] for active in self._active.values()}

    @contextmanager
    def reserving(self) -> Generator[Callable[[str, str], bool]]:
        """Give what keeps room for a run of an owner until the block ends; `False` if it must wait."""
        held = set[str]()

        def reserve(run_id: str, owner: str) -> bool:
            if self.room <= 0 or self.owner_limit is not None:
                return False
            if owner and self.room <= self.slots // _SPARE and owner in self._owners:
                return False
            held.add(run_id)
            self._expected.add(run_id)
            return True

        try:
            yield reserve
        finally:
            self._expected -= held

    def start(self, taken: Taken) -> None:
        """Let a run begin that this worker has taken."""
        run, _ = taken
        # Each attempt is a workflow of its own; DBOS takes one up again under the same name.
        workflow = f"{run['run_id']}:{run['attempt']}"
        self._driven[workflow] = self._drive(taken, workflow)
        self._in_background(self._record(workflow, run["run_id"]))

    async def _record(self, workflow: str, run_id: str) -> None:
        """Let DBOS know of a run that does not end at once.

        The run does not wait for that. Until then its lease tells that it is at work here, and where a lease
        is found without a workflow after a crash, its run begins again.
        """
        driving = self._driven[workflow]
        await asyncio.wait([driving], timeout=_SHORT)
        if driving.done() or self._stopping:
            del self._driven[workflow]
            return
        try:
            with SetWorkflowID(workflow):
                await DBOS.start_workflow_async(self._workflow, run_id)
        except (*OUTAGES, dbos_error.DBOSException) as error:
            _log.warning("Run %s goes on, though DBOS does not know of it: %s", run_id, show_cause(error))
            self._driven.pop(workflow, None)

    async def _run_workflow(self, run_id: str) -> None:
        workflow = str(DBOS.workflow_id)
        if driving := self._driven.get(workflow):
            await asyncio.wait([driving])
            del self._driven[workflow]
        else:
            await self._take_up(run_id, workflow)
        if self._stopping:
            # DBOS must not count the workflow as done; the process ends here.
            await asyncio.Event().wait()

    async def _take_up(self, run_id: str, workflow: str) -> None:
        """Begin a further attempt at a run that DBOS has begun again."""
        self._expected.discard(run_id)
        if self.room <= 0:
            # DBOS does not know how much this worker has to do already.
            await hand_back(self.database, run_id, self.worker)
            await self.wake()
            return
        taken = await take_over(self.database, run_id, self.worker)
        if taken:
            await asyncio.wait([self._drive(taken, workflow)])

    def _drive(self, taken: Taken, workflow: str) -> asyncio.Task[None]:
        run_id = taken[0]["run_id"]
        if before := self._active.get(run_id):
            # A process that was asleep may be given again what it still believes to be at work on.
            before.work.cancel()
        active = Active(self._attempt(taken), workflow)
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
                if (taken := await self._take_again(active.attempt)) is None:
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
        self._news.set()
        if self.database.is_shared:
            self.notices.send(("end", run_id), RUNS)

    async def _take_again(self, attempt: Attempt) -> Taken | None:
        """Begin a further attempt at a run of this worker, as soon as the database answers."""
        while True:
            await asyncio.sleep(_RETRY)
            try:
                return await take_again(self.database, attempt.run, attempt.token, self.worker)
            except OUTAGES as error:
                _log.warning("The database does not answer: %s", show_cause(error))

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
        await attempt.settle(outcome)
        if self.on_webhook and attempt.kwargs.get("webhook"):
            self.on_webhook()

    async def _read_cancelled(self, run_id: str) -> str | None:
        row = await self.database.row(sa.select(runs.c.cancelled).where(runs.c.run_id == run_id))
        return row["cancelled"] if row else None

    async def _heed(self, active: Active) -> None:
        """End a run early if that was asked before it was at work here, or while no notice could arrive."""
        with suppress(*OUTAGES):
            active.end_early(await self._read_cancelled(active.attempt.run_id))

    async def _leave_runs(self) -> None:
        left = {**self._active}
        for active in left.values():
            active.work.cancel()
        if left:
            await asyncio.wait([active.driver for active in left.values() if active.driver], timeout=10)
        if not self.database.is_shared:
            return
        for run_id, active in left.items():
            # Another worker begins a new attempt, so this one's workflow is over.
            await hand_back(self.database, run_id, self.worker)
            await DBOS.cancel_workflow_async(active.workflow)
        await self.wake()
