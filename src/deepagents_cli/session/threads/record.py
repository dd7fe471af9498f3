"""Keep what a conversation has besides its checkpoints: texts not yet read, tokens, and goings back."""

from __future__ import annotations

import json
import sqlite3
import time
from asyncio import wrap_future
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import astuple
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from deepagents._values import valueclass
from deepagents.limits import Tokens
from deepagents_cli.session.threads.sessions import BUSY_SECONDS

_TABLES: Final = (
    "CREATE TABLE IF NOT EXISTS deepagents_queue "
    "(id TEXT PRIMARY KEY, thread_id TEXT NOT NULL, shown TEXT NOT NULL, content TEXT NOT NULL, "
    "model TEXT, at REAL NOT NULL, source TEXT)",
    "CREATE TABLE IF NOT EXISTS deepagents_usage "
    "(thread_id TEXT NOT NULL, agent TEXT NOT NULL, model TEXT NOT NULL, input INTEGER NOT NULL, "
    "output INTEGER NOT NULL, cached INTEGER NOT NULL, cache_written INTEGER NOT NULL, cost REAL, "
    "PRIMARY KEY (thread_id, agent, model))",
    "CREATE TABLE IF NOT EXISTS deepagents_breaks "
    "(thread_id TEXT NOT NULL, reason TEXT NOT NULL, count INTEGER NOT NULL, tokens INTEGER NOT NULL, "
    "PRIMARY KEY (thread_id, reason))",
    "CREATE TABLE IF NOT EXISTS deepagents_effort (thread_id TEXT PRIMARY KEY, level TEXT)",
    "CREATE TABLE IF NOT EXISTS deepagents_rewinds "
    "(number INTEGER PRIMARY KEY, thread_id TEXT NOT NULL, rewind TEXT NOT NULL, checkpoint TEXT NOT NULL, "
    "moved INTEGER NOT NULL, message INTEGER NOT NULL, begun TEXT)",
)


@valueclass
class Text:
    """What a person sent: as it was typed, and as a message's content; `id` becomes the message's.

    `model` is that of the command from a file whose text this is, if it names one. A text with a `source` was
    not typed to the agent.
    """

    id: str
    shown: str
    content: str | list[Any]
    model: str | None = None
    source: str | None = None


@valueclass
class Rewind:
    """A going back that can be taken back: its name in the history of files, and the checkpoint it left.

    `moved` where the conversation went back too; `message` is the number of the message it went back to.
    """

    rewind: str
    checkpoint: str
    moved: bool
    message: int


@valueclass
class Used:
    """What calls of one model by one agent used; the cost is in dollars, `None` where no price is known."""

    agent: str
    model: str
    tokens: Tokens = Tokens()
    cost: float | None = None


class Record:
    """The tables of conversations, in the file of the threads.

    Changes are made by one thread in the order of the calls: the saver of the checkpoints may be in the
    middle of a change of its own, and goes on only while the event loop does.
    """

    def __init__(self, path: Path) -> None:
        self._thread = ThreadPoolExecutor(1, "record")
        self._last: Future[sqlite3.Cursor] | None = None
        self._database = sqlite3.connect(
            path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        for table in _TABLES:
            self._database.execute(table)

    def close(self) -> None:
        """Finish writing, and close the file."""
        self._thread.shutdown()
        self._database.close()

    async def flush(self) -> None:
        """Wait until all changes so far are saved.

        Raises:
            sqlite3.Error: where the last one could not be.
        """
        last, self._last = self._last, None
        if last is not None:
            await wrap_future(last)

    def add_text(
        self,
        thread: str,
        shown: str,
        content: str | list[Any],
        model: str | None = None,
        source: str | None = None,
        id: str | None = None,
    ) -> Text:
        """Keep a text until it is known to be in the thread; one that was in it has an `id`."""
        text = Text(id or uuid4().hex, shown, content, model, source)
        self._change(
            "INSERT OR REPLACE INTO deepagents_queue (id, thread_id, shown, content, model, source, at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (text.id, thread, shown, json.dumps(content), model, source, time.time()),
        )
        return text

    async def texts(self, thread: str) -> list[Text]:
        """Return the texts that are kept for a thread, the first first."""
        rows = await self._read(
            "SELECT id, shown, content, model, source FROM deepagents_queue WHERE thread_id = ? "
            "ORDER BY rowid",
            thread,
        )
        return [Text(key, shown, json.loads(content), *rest) for key, shown, content, *rest in rows]

    def remove_text(self, text: Text) -> None:
        """Forget a text."""
        self._change("DELETE FROM deepagents_queue WHERE id = ?", (text.id,))

    def save_usage(self, thread: str, used: Used) -> None:
        """Keep what a model has used in a thread for an agent."""
        self._change(
            "INSERT OR REPLACE INTO deepagents_usage VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (thread, used.agent, used.model, *astuple(used.tokens), used.cost),
        )

    async def usage(self, thread: str) -> list[Used]:
        """Return what a thread has used so far."""
        rows = await self._read(
            "SELECT agent, model, input, output, cached, cache_written, cost FROM deepagents_usage "
            "WHERE thread_id = ?",
            thread,
        )
        return [Used(agent, model, Tokens(*tokens), cost) for agent, model, *tokens, cost in rows]

    def save_breaks(self, thread: str, reason: str, count: int, tokens: int) -> None:
        """Keep how often the cache of a thread was broken for a reason, and how many tokens that lost."""
        self._change(
            "INSERT OR REPLACE INTO deepagents_breaks VALUES (?, ?, ?, ?)", (thread, reason, count, tokens)
        )

    async def breaks(self, thread: str) -> dict[str, tuple[int, int]]:
        """Return how often the cache of a thread was broken, and how many tokens that lost, by reason."""
        statement = "SELECT reason, count, tokens FROM deepagents_breaks WHERE thread_id = ?"
        return {reason: (count, tokens) for reason, count, tokens in await self._read(statement, thread)}

    def save_effort(self, thread: str, level: str | None) -> None:
        """Keep how much the model of a thread is to reason; `None` leaves that to its provider."""
        self._change("INSERT OR REPLACE INTO deepagents_effort VALUES (?, ?)", (thread, level))

    async def effort(self, thread: str) -> str | None:
        """Return how much the model of a thread is to reason, where that was chosen."""
        rows = await self._read("SELECT level FROM deepagents_effort WHERE thread_id = ?", thread)
        return rows[0][0] if rows else None

    def begin_rewind(self, thread: str, rewind: Rewind, *, is_forth: bool) -> None:
        """Keep that a thread is about to go back, or forth."""
        self._change(
            "INSERT INTO deepagents_rewinds (thread_id, rewind, checkpoint, moved, message, begun) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            (thread, *astuple(rewind), "forth" if is_forth else "back"),
        )

    def end_rewind(self, rewind: Rewind) -> None:
        """Keep that a going back has happened."""
        self._change("UPDATE deepagents_rewinds SET begun = NULL WHERE rewind = ?", (rewind.rewind,))

    async def begun_rewind(self, thread: str) -> tuple[Rewind, bool] | None:
        """Return what is not known to have happened yet in a thread, and whether that is a going forth."""
        rows = await self._read(
            "SELECT rewind, checkpoint, moved, message, begun FROM deepagents_rewinds WHERE thread_id = ? "
            "AND begun IS NOT NULL ORDER BY number DESC LIMIT 1",
            thread,
        )
        return next(((Rewind(a, b, bool(c), d), begun == "forth") for a, b, c, d, begun in rows), None)

    async def last_rewind(self, thread: str) -> Rewind | None:
        """Return the last going back of a thread that was not taken back."""
        rows = await self._read(
            "SELECT rewind, checkpoint, moved, message FROM deepagents_rewinds WHERE thread_id = ? "
            "AND begun IS NULL ORDER BY number DESC LIMIT 1",
            thread,
        )
        return next((Rewind(name, left, bool(moved), number) for name, left, moved, number in rows), None)

    def remove_rewind(self, rewind: Rewind) -> None:
        """Forget a going back, which was taken back."""
        self._change("DELETE FROM deepagents_rewinds WHERE rewind = ?", (rewind.rewind,))

    def _change(self, statement: str, row: Sequence[Any]) -> None:
        self._last = self._thread.submit(self._database.execute, statement, row)

    async def _read(self, statement: str, thread: str) -> list[Any]:
        cursor = await wrap_future(self._thread.submit(self._database.execute, statement, (thread,)))
        return cursor.fetchall()
