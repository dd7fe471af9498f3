"""What the log of events holds in memory."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

from deepagents_server import events, serialize
from deepagents_server.database import open_database
from deepagents_server.events import EventLog
from tests.server.test_database import address

_OURS = [tracemalloc.Filter(True, str(module.__file__)) for module in (events, serialize)]


async def test_held_events_take_little_more_memory_than_their_text(tmp_path: Path) -> None:
    async with open_database(address(tmp_path)) as database:
        log = EventLog(database)
        log.open("run", 1, attempt=1, keep=False)

        tracemalloc.start()
        for _ in range(300):
            await log.put("run", "messages", {"content": "x" * 900})
        snapshot = tracemalloc.take_snapshot().filter_traces(_OURS)
        tracemalloc.stop()

        held = sum(each.size for each in snapshot.statistics("filename"))
        assert 300 * 900 < held < 300 * 1500
