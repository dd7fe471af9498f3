"""Keep what runs say while they work, once and in batches, read by any number of clients."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from itertools import takewhile
from typing import Any, Final

import sqlalchemy as sa

from deepagents._values import field, recordclass, valueclass
from deepagents_server.database import Database
from deepagents_server.database.runs import add_events
from deepagents_server.database.tables import run_events
from deepagents_server.errors import OUTAGES, show_cause
from deepagents_server.serialize import dump, dump_text, load

END: Final = "end"
"""The last event of a run; readers stop at it, and clients do not see it."""
_HELD: Final = 4_000_000
"""Bytes of a run's events that are held in memory for readers that are a little behind."""
PER_ATTEMPT: Final = 2**28
"""Numbers of events are below this, times the number of the attempt's lease: they grow in a whole thread."""
_BATCH: Final = 0.1
_SHARED_BATCH: Final = 0.02
"""Seconds for which events are gathered into one row; shorter where another process reads them."""
_log: Final = logging.getLogger("deepagents.server")


@valueclass
class Event:
    """One event of a run; `data` is JSON."""

    seq: int
    name: str
    data: bytes


@recordclass
class _Channel:
    """The events of a run that works in this process, or is read in it."""

    works: bool = False
    attempt: int = 0
    keep: bool = False
    streamed: bool = False
    """Whether a client is about to read, who made the run for that."""
    seq: int = 0
    start: int = 0
    """The number before the first event of the run, once its first attempt has begun here."""
    held: deque[Event] = field(default_factory=deque[Event])
    size: int = 0
    kept: int = 0
    """The last event that is in the database."""
    readers: set[asyncio.Event] = field(default_factory=set[asyncio.Event])
    timer: asyncio.Task[None] | None = None
    writing: asyncio.Lock = field(default_factory=asyncio.Lock)

    def add(self, name: str, data: Any) -> None:
        self.seq += 1
        # A copy: orjson cuts its result without giving back the buffer, 8 KB for a text of one.
        event = Event(self.seq, name, bytes(memoryview(dump(data))))
        self.held.append(event)
        self.size += len(event.data)
        self.trim()
        self.wake()

    def trim(self) -> None:
        """Drop the oldest events that no reader will ask the memory for."""
        while self.size > _HELD and (self.held[0].seq <= self.kept or not (self.keep or self.readers)):
            self.size -= len(self.held.popleft().data)

    def since(self, after: int) -> list[Event]:
        """Return the events that are held after a number."""
        # From the end: who reads along has all but the last of thousands.
        return [*takewhile(lambda event: event.seq > after, reversed(self.held))][::-1]

    def wake(self) -> None:
        for news in self.readers:
            news.set()


class EventLog:
    """Write and read the events of all runs."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._channels: dict[str, _Channel] = {}
        self._waiting: dict[str, set[asyncio.Event]] = {}
        """Who waits for the end of a run, or for news of a thread, by its id."""
        self.on_kept: Callable[[str], None] | None = None
        """Called when events of a run have come into the database, to tell other processes."""
        self.on_reader: Callable[[str], None] | None = None
        """Called when somebody begins to read a run that works elsewhere."""

    def open(self, run_id: str, token: int, *, attempt: int, keep: bool, streamed: bool = False) -> None:
        """Begin to take the events of an attempt at a run, which has a lease with the number `token`."""
        channel = self._channels.setdefault(run_id, _Channel())
        channel.works = True
        channel.keep = channel.keep or keep
        channel.streamed = streamed
        # Above all numbers of the attempt before, whose last ones a reader may have and the database not.
        channel.seq = channel.kept = token * PER_ATTEMPT
        channel.start = channel.seq if attempt == 1 else 0
        channel.attempt = attempt

    def keep(self, run_id: str) -> None:
        """Write a run's events to the database from now on, since another process reads them."""
        if channel := self._at_work(run_id):
            channel.keep = True

    def _at_work(self, run_id: str) -> _Channel | None:
        channel = self._channels.get(run_id)
        return channel if channel and channel.works else None

    def wanted(self, run_id: str) -> bool:
        """Tell whether anybody may ever see an event of this run."""
        channel = self._channels.get(run_id)
        return bool(channel and (channel.keep or channel.readers or channel.streamed))

    async def put(self, run_id: str, name: str, data: Any) -> None:
        """Add an event; waits only for the database, never for a reader."""
        channel = self._at_work(run_id)
        if channel is None:
            return
        channel.add(name, data)
        if channel.size > _HELD:
            # A reader is far behind: what it has not read goes to the database, for this run from now on.
            channel.keep = True
            await self._flush(run_id, channel)
            channel.trim()
        elif channel.keep and channel.timer is None:
            channel.timer = asyncio.create_task(self._flush_soon(run_id, channel))

    async def flush(self, run_id: str) -> None:
        """Write what is to be kept, before a checkpoint makes it something that is not done again."""
        if (channel := self._at_work(run_id)) and channel.keep:
            await self._flush(run_id, channel)

    def last_batch(self, run_id: str, error: Any) -> dict[str, Any] | None:
        """Return the row of what is left to be kept if the run ends now; `None` if that is not, or is much.

        It belongs into the transaction that ends the run: readers that begin then find all of it.
        """
        channel = self._at_work(run_id)
        if not channel or not channel.keep or channel.size > _HELD:
            return None
        left = channel.since(channel.kept)
        ending = enumerate(_endings(error), channel.seq + 1)
        return _row(run_id, [*left, *(Event(seq, name, dump(data)) for seq, (name, data) in ending)])

    async def close(self, run_id: str, token: int, *, ended: bool, error: Any = None, kept: int = 0) -> None:
        """Stop taking events; an attempt that did not end the run leaves its readers waiting for the next.

        `kept` is the last number of the batch with which the run has ended.
        """
        channel = self._at_work(run_id)
        # A later attempt in this process may have opened it anew.
        if channel and channel.seq // PER_ATTEMPT == token:
            channel.kept = max(channel.kept, kept)
            for name, data in _endings(error) if ended else ():
                channel.add(name, data)
            channel.works = False
            if channel.timer:
                channel.timer.cancel()
            if channel.keep:
                await self._flush(run_id, channel)
            self._drop(run_id, channel)
        self.wake(run_id)

    async def read(
        self, run_id: str, after: int, ended: Callable[[], Awaitable[bool]], beat: float
    ) -> AsyncGenerator[Event | None]:
        """Yield the events after a number until the run has ended, and `None` after `beat` silent seconds."""
        async with self._reading(run_id) as (channel, news):
            over = not channel.works and await ended()
            while True:
                news.clear()
                found = await self._after(run_id, after, channel)
                over = found[-1].name == END if found else over
                for event in found[: -1 if over and found else None]:
                    yield event
                if over:
                    return
                if found:
                    after = found[-1].seq
                elif not await _wait(news, beat):
                    yield None
                over = not found and not channel.works and await ended()

    @asynccontextmanager
    async def _reading(self, run_id: str) -> AsyncGenerator[tuple[_Channel, asyncio.Event]]:
        channel = self._channels.setdefault(run_id, _Channel())
        news = asyncio.Event()
        channel.readers.add(news)
        try:
            if self.on_reader and not channel.works:
                self.on_reader(run_id)
            yield channel, news
        finally:
            channel.readers.discard(news)
            self._drop(run_id, channel)

    def _drop(self, run_id: str, channel: _Channel) -> None:
        if not channel.works and not channel.readers:
            self._channels.pop(run_id, None)

    async def wait_for_end(self, run_id: str, ended: Callable[[], Awaitable[bool]], beat: float) -> None:
        """Wait until a run has ended; `ended` is asked when its events stop, and every `beat` seconds."""
        with self.news_of(run_id) as news:
            while not await ended():
                await _wait(news, beat)
                news.clear()

    @contextmanager
    def news_of(self, key: str) -> Generator[asyncio.Event]:
        """Give what is set when a run has ended, or when a run of a thread may begin."""
        news = asyncio.Event()
        waiting = self._waiting.setdefault(key, set())
        waiting.add(news)
        try:
            yield news
        finally:
            waiting.discard(news)
            if not waiting:
                self._waiting.pop(key, None)

    def is_watched(self, thread_id: str) -> bool:
        """Tell whether somebody reads all that happens on a thread."""
        return thread_id in self._waiting

    def wake(self, run_id: str) -> None:
        """Let everybody look who reads a run, waits for its end, or follows the thread with this id."""
        for news in self._waiting.get(run_id, ()):
            news.set()
        if channel := self._channels.get(run_id):
            channel.wake()

    def wake_all(self) -> None:
        """Let all readers look again, after a notification may have been missed."""
        for run_id in {*self._channels, *self._waiting}:
            self.wake(run_id)

    async def _after(self, run_id: str, after: int, channel: _Channel) -> list[Event]:
        if channel.works and after >= channel.seq:
            # To ask the database for each event whether there is a further one would be half of the work.
            return []
        in_memory = channel.since(after)
        if in_memory and (in_memory[0].seq == max(after, channel.start) + 1 or not channel.keep):
            return in_memory
        return await self._read_stored(run_id, after) or in_memory

    async def _read_stored(self, run_id: str, after: int) -> list[Event]:
        batches = (
            sa.select(run_events.c.events)
            .where(run_events.c.run_id == run_id, run_events.c.seq > after)
            .order_by(run_events.c.seq)
            .limit(20)
        )
        rows = await self._database.rows(batches)
        events = {seq: (name, data) for row in rows for seq, name, data in load(row["events"])}
        return [Event(seq, name, dump(data)) for seq, (name, data) in events.items() if seq > after]

    async def _flush_soon(self, run_id: str, channel: _Channel) -> None:
        while channel.kept < channel.seq:
            await asyncio.sleep(_SHARED_BATCH if self._database.is_shared else _BATCH)
            try:
                # From here on `close` cannot cancel it.
                await asyncio.shield(self._flush(run_id, channel))
            except OUTAGES as error:
                _log.warning("The database does not answer: %s", show_cause(error))
        channel.timer = None

    async def _flush(self, run_id: str, channel: _Channel) -> None:
        async with channel.writing:
            batch = channel.since(channel.kept)
            if not batch:
                return
            row = _row(run_id, batch)
            async with self._database.write() as connection:
                is_mine = await add_events(connection, row, channel.attempt)
            channel.kept = batch[-1].seq
            if not is_mine:
                # The run goes on elsewhere: what is still said here, nobody may hear.
                channel.works = False
                self._drop(run_id, channel)
            if self.on_kept:
                self.on_kept(run_id)


def _endings(error: Any) -> list[tuple[str, Any]]:
    return [*([("error", error)] if error else []), (END, None)]


def _row(run_id: str, batch: Sequence[Event]) -> dict[str, Any]:
    texts = (f"[{each.seq},{dump_text(each.name)},{each.data.decode()}]" for each in batch)
    return {"run_id": run_id, "seq": batch[-1].seq, "events": f"[{','.join(texts)}]"}


async def _wait(news: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await news.wait()
    except TimeoutError:
        return False
    return True
