"""Keep what a conversation has besides its checkpoints: texts that were not read yet, and tokens used."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from deepagents.events import Usage
from deepagents_cli.threads import BUSY_SECONDS

_TABLES: Final = (
    "CREATE TABLE IF NOT EXISTS deepagents_queue "
    "(id TEXT PRIMARY KEY, thread_id TEXT NOT NULL, shown TEXT NOT NULL, content TEXT NOT NULL, "
    "at REAL NOT NULL)",
    "CREATE TABLE IF NOT EXISTS deepagents_usage "
    "(thread_id TEXT NOT NULL, agent TEXT NOT NULL, model TEXT NOT NULL, input INTEGER NOT NULL, "
    "output INTEGER NOT NULL, cached INTEGER NOT NULL, cache_written INTEGER NOT NULL, "
    "PRIMARY KEY (thread_id, agent, model))",
)


@dataclass(frozen=True)
class Text:
    """What a person sent: as it was typed, and as a message's content; `id` becomes the message's."""

    id: str
    shown: str
    content: str | list[Any]


@dataclass(frozen=True)
class Used:
    """The tokens of all calls of one model by one agent; input tokens hold the cached ones."""

    agent: str
    model: str
    input: int
    output: int
    cached: int
    cache_written: int


class Record:
    """The tables of conversations, in the file of the threads; each change is saved at once."""

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
        for table in _TABLES:
            self._database.execute(table)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def add_text(self, thread: str, shown: str, content: str | list[Any]) -> Text:
        """Keep a text until it is known to be in the thread."""
        text = Text(uuid4().hex, shown, content)
        row = (text.id, thread, shown, json.dumps(content), time.time())
        self._database.execute("INSERT INTO deepagents_queue VALUES (?, ?, ?, ?, ?)", row)
        return text

    def texts(self, thread: str) -> list[Text]:
        """Return the texts that are kept for a thread, the first first."""
        rows = self._database.execute(
            "SELECT id, shown, content FROM deepagents_queue WHERE thread_id = ? ORDER BY at", (thread,)
        )
        return [Text(key, shown, json.loads(content)) for key, shown, content in rows]

    def remove_texts(self, texts: Iterable[Text]) -> None:
        """Forget texts."""
        self._database.executemany(
            "DELETE FROM deepagents_queue WHERE id = ?", [(each.id,) for each in texts]
        )

    def add_usage(self, thread: str, model: str, event: Usage) -> None:
        """Add what one call of a model used."""
        self._database.execute(
            "INSERT INTO deepagents_usage VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
            "input = input + excluded.input, output = output + excluded.output, "
            "cached = cached + excluded.cached, cache_written = cache_written + excluded.cache_written",
            (
                thread,
                event.agent or "",
                model,
                event.input_tokens,
                event.output_tokens,
                event.cached_tokens,
                event.cache_write_tokens,
            ),
        )

    def usage(self, thread: str) -> list[Used]:
        """Return what a thread has used so far."""
        rows = self._database.execute(
            "SELECT agent, model, input, output, cached, cache_written FROM deepagents_usage "
            "WHERE thread_id = ? ORDER BY input DESC",
            (thread,),
        )
        return [Used(*row) for row in rows]
