"""Carry out a going back, so that a kill at any moment leaves what was before or what was to be."""

from __future__ import annotations

import os
from functools import partial
from typing import Any, cast

from langchain_core.runnables import RunnableConfig

from deepagents._async import IOCall, in_thread
from deepagents.errors import UndoError
from deepagents.undo import threads
from deepagents.undo.journal import Journal
from deepagents.undo.recorder import Recorder
from deepagents.undo.restore import Restorer
from deepagents.undo.threads import place


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
            UndoError: where there is no room for it; nothing has changed then.
        """
        self._under_way.add(journal.rewind)
        try:
            await in_thread(lambda: self._stage(journal))
            config = place(journal.thread, journal.left)
            if journal.moves:
                # This write decides: a kill before it leaves all as it was, after it the rest is finished.
                config = await _copy_checkpoint(agent, place(journal.thread, checkpoint))
            failed = await in_thread(lambda: self._finish(journal, config))
        finally:
            self._under_way.discard(journal.rewind)
        return config, failed

    def _stage(self, journal: Journal) -> None:
        restorer = self._restorer(journal)
        text = journal.dump()
        self._store.make_room(len(text))
        with self._store.write() as database:
            values = [journal.rewind, self._store.process, journal.thread, text]
            # Until all is staged, nothing is decided, whichever half of it is wanted.
            values[3] = journal.dump(is_decided=False)
            database.execute("INSERT INTO journal VALUES (?, ?, ?, ?)", values)
        try:
            restorer.stage()
        except OSError as error:
            self._drop(journal)
            raise UndoError(f"there is no room to put the files back: {error}") from error
        with self._store.write() as database:
            database.execute("UPDATE journal SET data = ? WHERE id = ?", [text, journal.rewind])

    def _restorer(self, journal: Journal) -> Restorer:
        return Restorer(self._store, journal.items, journal.folders, self._most)

    def _finish(self, journal: Journal, config: RunnableConfig) -> list[str]:
        """Rename, and record what has changed."""
        failed = self._restorer(journal).apply()
        paths = [each.path for each in journal.items]
        with self._store.write() as database:
            seen = self._recorder.record_rewind(journal.thread, journal.rewind, paths)
            checkpoint = cast("dict[str, Any]", config.get("configurable"))["checkpoint_id"]
            database.execute(
                "INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?)", [journal.thread, checkpoint, seen]
            )
            database.executemany(
                "INSERT OR REPLACE INTO news VALUES (?, ?, ?)",
                [(journal.thread, os.fsencode(path), not journal.moves) for path in paths],
            )
            database.execute("DELETE FROM journal WHERE id = ?", [journal.rewind])
        return failed

    def _drop(self, journal: Journal) -> None:
        self._restorer(journal).clear()
        with self._store.write() as database:
            database.execute("DELETE FROM journal WHERE id = ?", [journal.rewind])

    async def finish_left(self, saver: Any, thread: str) -> None:
        """Finish or drop the goings back of a thread that were cut off."""
        rows = self._store.read("SELECT process, data FROM journal WHERE thread = ?", thread)
        for process, data in rows:
            journal = Journal.load(data)
            if journal.rewind in self._under_way:
                continue
            if process != self._store.process and self._store.is_alive(process):
                continue
            head: RunnableConfig | None = place(thread, journal.left) if journal.is_decided else None
            if journal.moves:
                head = await threads.find_copy(saver, thread, journal.left, journal.parent)
            drop = partial(self._drop, journal)
            await in_thread(partial(self._finish, journal, head) if head else drop)


async def _copy_checkpoint(agent: Any, config: RunnableConfig) -> RunnableConfig:
    """Make a checkpoint the newest of its thread, with all that is to be done next."""
    return await IOCall(
        lambda: agent.update_state(config, None, as_node="__copy__"),
        lambda: agent.aupdate_state(config, None, as_node="__copy__"),
    )
