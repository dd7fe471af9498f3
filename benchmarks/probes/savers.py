"""Checkpoint savers of each kind, and the bytes that they hold of a thread."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver

Weigh = Callable[[str], int]
"""Tell how many bytes a saver holds of one thread."""

_SQLITE = (
    "SELECT coalesce(sum(length(checkpoint) + length(metadata)), 0) FROM checkpoints WHERE thread_id = ?",
    "SELECT coalesce(sum(length(value)), 0) FROM writes WHERE thread_id = ?",
)
_POSTGRES = (
    "SELECT coalesce(sum(octet_length(checkpoint::text) + octet_length(metadata::text)), 0) AS held"
    " FROM checkpoints WHERE thread_id = %s",
    "SELECT coalesce(sum(octet_length(blob)), 0) AS held FROM checkpoint_blobs WHERE thread_id = %s",
    "SELECT coalesce(sum(octet_length(blob)), 0) AS held FROM checkpoint_writes WHERE thread_id = %s",
)


@contextmanager
def saver(kind: str, place: str = "") -> Generator[tuple[Any, Weigh]]:
    """Open a saver: `memory`, `sqlite`, or `postgres` at the server that `place` says how to reach."""
    match kind:
        case "memory":
            made = InMemorySaver()
            yield made, lambda thread: _in_memory(made, thread)
        case "sqlite":
            with _sqlite() as opened:
                yield opened
        case _:
            with _postgres(place) as opened:
                yield opened


@contextmanager
def _sqlite() -> Generator[tuple[Any, Weigh]]:
    with TemporaryDirectory() as root, SqliteSaver.from_conn_string(str(Path(root) / "threads.db")) as made:

        def weigh(thread: str) -> int:
            with made.cursor(transaction=False) as cursor:
                return sum(cursor.execute(query, (thread,)).fetchone()[0] for query in _SQLITE)

        yield made, weigh


@contextmanager
def _postgres(place: str) -> Generator[tuple[Any, Weigh]]:
    with PostgresSaver.from_conn_string(place) as made:
        made.setup()

        def weigh(thread: str) -> int:
            connection: Any = made.conn
            found = [connection.execute(query, (thread,)).fetchone() for query in _POSTGRES]
            return sum(int(row["held"]) for row in found)

        yield made, weigh


def _in_memory(made: InMemorySaver, thread: str) -> int:
    saved = [
        part
        for of in made.storage[thread].values()
        for checkpoint, metadata, _ in of.values()
        for part in (checkpoint, metadata)
    ]
    saved += [write[2] for key, of in made.writes.items() if key[0] == thread for write in of.values()]
    saved += [blob for key, blob in made.blobs.items() if key[0] == thread]
    return sum(len(data) for _, data in saved)
