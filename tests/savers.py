"""Checkpoint savers of every kind, in the call_mode of a test."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from tests.conftest import CallMode

KINDS = ("memory", "sqlite", "postgres")
PAIRS = (("sync", "memory"), ("async", "memory"), ("sync", "sqlite"), ("async", "postgres"))
"""Both call modes, and every kind of saver in one of them: what a graph saves is the same in both."""


class Opening:
    """A saver that is opened and closed in one call_mode."""

    def __init__(self, kind: str, place: str) -> None:
        self.kind, self.place = kind, place
        self.stack: Any = None

    def open(self) -> Any:
        self.stack = ExitStack()
        kind = SqliteSaver if self.kind == "sqlite" else PostgresSaver
        saver: Any = self.stack.enter_context(kind.from_conn_string(self.place))
        saver.setup()
        return saver

    async def aopen(self) -> Any:
        self.stack = AsyncExitStack()
        kind = AsyncSqliteSaver if self.kind == "sqlite" else AsyncPostgresSaver
        saver: Any = await self.stack.enter_async_context(kind.from_conn_string(self.place))
        await saver.setup()
        return saver

    def close(self) -> None:
        self.stack.close()

    async def aclose(self) -> None:
        await self.stack.aclose()


@contextmanager
def opened(kind: str, call_mode: CallMode, place: str = "") -> Generator[Any]:
    """Open a saver of a kind; `place` is a file for SQLite, and how to connect for PostgreSQL."""
    if kind == "memory":
        yield InMemorySaver()
        return
    opening = Opening(kind, place)
    saver = call_mode.call(opening, "open")
    try:
        yield saver
    finally:
        call_mode.call(opening, "close")
