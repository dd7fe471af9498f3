"""Carry out a going back, so that a kill at any moment leaves what was before or what was to be."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, cast

from langchain_core.runnables import RunnableConfig

from deepagents._async import IOCall, as_io_call, finish_first, in_thread
from deepagents.checkpoints import count_on_from
from deepagents.errors import PlanOutdated, UndoBusy, UndoError
from deepagents.undo import threads
from deepagents.undo.journal import Journal
from deepagents.undo.recorder import Recorder
from deepagents.undo.restore import Restorer
from deepagents.undo.steps import are_near
from deepagents.undo.store import StoreOff
from deepagents.undo.threads import place

_log = logging.getLogger(__name__)


class Rewinds:
    """The goings back in one store; those of this process that are `under way` stay for them."""

    def __init__(self, recorder: Recorder, most: int) -> None:
        self._recorder = recorder
        self._store = recorder.store
        self._most = most
        self._under_way: set[str] = set()

    async def carry_out(
        self, agent: Any, journal: Journal, checkpoint: str
    ) -> tuple[RunnableConfig, list[str]]:
        """Carry one out; return where the thread stands then, and the paths where that failed.

        Raises:
            UndoError: where there is no room for it, or the new checkpoint cannot be written.
        """
        # As a whole: a going back that is cancelled must not happen later, nor stay half done.
        return await finish_first(as_io_call(lambda: self._carry_out(agent, journal, checkpoint)))

    async def _carry_out(
        self, agent: Any, journal: Journal, checkpoint: str
    ) -> tuple[RunnableConfig, list[str]]:
        self._under_way.add(journal.rewind)
        try:
            await in_thread(lambda: self._stage(journal))
            config = await self._decide(agent, journal, checkpoint)
            failed = await in_thread(self._restorer(journal).apply)
            try:
                await in_thread(lambda: self._record(journal, config))
            except StoreOff as error:
                # All has changed, and must not be told otherwise: who comes next finds the journal.
                _log.warning("a going back was not recorded yet: %s", error)
                await self._leave(journal)
        except BaseException:
            await self._leave(journal)
            raise
        finally:
            self._under_way.discard(journal.rewind)
        return config, failed

    async def _decide(self, agent: Any, journal: Journal, checkpoint: str) -> RunnableConfig:
        """Write the checkpoint that decides: a kill before it leaves all as it was, after it all is done."""
        saver = threads.saver_of(agent)
        await self._check_head(saver, journal)
        if not journal.moves:
            await in_thread(lambda: self._mark_decided(journal))
            return place(journal.thread, journal.left)
        try:
            return await _copy_checkpoint(agent, place(journal.thread, checkpoint))
        except Exception as error:
            why = f"the checkpoint to go on from could not be written: {error}"
            try:
                copy = await threads.find_copy(saver, journal.thread, journal.left, journal.parent)
            except Exception:  # noqa: BLE001
                text = f"{why}; whether it was is found out as soon as the checkpointer can be read"
                raise UndoError(text) from error
            if copy is None:
                await in_thread(lambda: self._drop(journal))
                raise UndoError(f"{why}; nothing has changed") from error
            return copy

    def _stage(self, journal: Journal) -> None:
        restorer = self._restorer(journal)
        text = journal.dump()
        self._store.make_room(len(text))
        with self._store.write() as database:
            if journal.items:
                # Within the transaction: a step that begins from here on waits.
                self.check_free([*journal.roots, *(each.path for each in journal.items)])
            # Until all is staged, nothing is decided, whichever half of it is wanted.
            undecided = journal.dump(is_decided=False)
            values = [journal.rewind, self._store.process, journal.thread, undecided]
            database.execute("INSERT INTO journal VALUES (?, ?, ?, ?)", values)
        try:
            restorer.stage()
        except OSError as error:
            self._drop(journal)
            raise UndoError(f"the files cannot be put back: {error}") from error

    def _mark_decided(self, journal: Journal) -> None:
        with self._store.write() as database:
            database.execute("UPDATE journal SET data = ? WHERE id = ?", [journal.dump(), journal.rewind])

    async def _check_head(self, saver: Any, journal: Journal) -> None:
        """Check once more that the thread has not gone on: a run that begins from here on waits.

        Raises:
            PlanOutdated: where it has. UndoError: where that cannot be read.
        """
        try:
            head = await threads.read_checkpoint(saver, place(journal.thread))
        except Exception as error:
            await in_thread(lambda: self._drop(journal))
            raise UndoError(f"the thread cannot be read: {error}; nothing has changed") from error
        if threads.checkpoint_id(head) != journal.left:
            await in_thread(lambda: self._drop(journal))
            raise PlanOutdated(f"thread {journal.thread!r} has gone on since the plan was made")
        # The newest is the one with the highest id, whatever clock that was made by.
        count_on_from(head)

    def check_free(self, paths: Sequence[str]) -> None:
        """Check that nothing else is about to change these.

        Raises:
            UndoBusy: where a step or another going back is under way.
        """
        if self._recorder.find_busy(paths) or self._recorder.find_rewind(paths):
            raise UndoBusy("a step of an agent is under way in this directory; wait until it ends")

    def _restorer(self, journal: Journal) -> Restorer:
        return Restorer(self._store, journal.items, journal.folders, self._most)

    def _finish(self, journal: Journal, config: RunnableConfig) -> None:
        """Rename, and record what has changed."""
        if failed := self._restorer(journal).apply():
            _log.warning("these could not be put back: %s", ", ".join(failed))
        self._record(journal, config)

    def _record(self, journal: Journal, config: RunnableConfig) -> None:
        paths = [each.path for each in journal.items]
        with self._store.write() as database:
            seen = self._recorder.record_rewind(journal.thread, journal.rewind, paths)
            checkpoint = cast("dict[str, Any]", config.get("configurable"))["checkpoint_id"]
            threads.note_checkpoint(journal.thread, checkpoint, seen, self._store)
            database.executemany(
                "INSERT OR REPLACE INTO news VALUES (?, ?, ?)",
                [(journal.thread, os.fsencode(path), not journal.moves) for path in paths],
            )
            database.execute("DELETE FROM journal WHERE id = ?", [journal.rewind])

    def _leave(self, journal: Journal) -> IOCall[None]:
        """Let the next call finish or drop one, though this process lives."""

        def leave() -> None:
            with suppress(StoreOff), self._store.write() as database:
                database.execute("UPDATE journal SET process = '' WHERE id = ?", [journal.rewind])

        return in_thread(leave)

    def _drop(self, journal: Journal) -> None:
        self._restorer(journal).clear()
        with self._store.write() as database:
            database.execute("DELETE FROM journal WHERE id = ?", [journal.rewind])

    async def finish_left(self, saver: Any, thread: str, roots: Sequence[str]) -> None:
        """Finish or drop the goings back that were cut off, of a thread or below these; wait for others."""
        rows = await in_thread(lambda: self._store.read("SELECT process, data FROM journal"))
        for process, data in rows:
            journal = Journal.load(data)
            if journal.thread != thread and not are_near(journal.roots, roots):
                continue
            is_of_other = process != self._store.process and self._store.is_alive(process)
            if is_of_other or journal.rewind in self._under_way:
                continue
            if journal.thread != thread and not await self._is_known(saver, journal):
                # Only by the checkpoints of its thread can it be known whether that was decided.
                continue
            if await in_thread(partial(self._claim, journal, process)):
                await finish_first(as_io_call(partial(self._finish_one, saver, journal)))
        await in_thread(partial(self._recorder.wait_for_rewind, roots))

    async def _is_known(self, saver: Any, journal: Journal) -> bool:
        where = place(journal.thread, journal.left)
        return not journal.moves or await threads.read_checkpoint(saver, where) is not None

    def _claim(self, journal: Journal, process: str) -> bool:
        """Take one over, unless somebody else was faster."""
        with self._store.write() as database:
            values = [self._store.process, journal.rewind, process]
            row = database.execute("UPDATE journal SET process = ? WHERE id = ? AND process = ?", values)
            return row.rowcount > 0

    async def _finish_one(self, saver: Any, journal: Journal) -> None:
        self._under_way.add(journal.rewind)
        try:
            head: RunnableConfig | None = place(journal.thread, journal.left) if journal.is_decided else None
            if journal.moves:
                head = await threads.find_copy(saver, journal.thread, journal.left, journal.parent)
            drop = partial(self._drop, journal)
            await in_thread(partial(self._finish, journal, head) if head else drop)
        except BaseException:
            await self._leave(journal)
            raise
        finally:
            self._under_way.discard(journal.rewind)


async def _copy_checkpoint(agent: Any, config: RunnableConfig) -> RunnableConfig:
    """Make a checkpoint the newest of its thread, with all that is to be done next."""
    return await IOCall(
        lambda: agent.update_state(config, None, as_node="__copy__"),
        lambda: agent.aupdate_state(config, None, as_node="__copy__"),
    )
