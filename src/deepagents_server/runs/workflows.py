"""Let DBOS work off the queue of the runs that wait."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

from dbos import DBOS, DBOSConfig, DBOSPortableJSONSerializer

from deepagents_server.database import Database
from deepagents_server.database.queue import APPLICATION, QUEUE, WORKFLOW

_LOOK: Final = 0.1
"""Seconds between two looks at the queue, which nothing wakes; each takes 4 ms of a core."""
_log: Final = logging.getLogger("dbos")
_SILENT: Final = logging.NullHandler()
"""Without any, DBOS adds one that keeps the stderr of the moment; so its lines go where all others go."""


@asynccontextmanager
async def working_off(
    database: Database,
    worker: str,
    version: str,
    run: Callable[[str, str, int], Coroutine[Any, Any, None]],
    **limits: Any,
) -> AsyncGenerator[None]:
    """Let DBOS give runs to `run`, by their ids, owners and ranks, until the block ends.

    `limits` are those of its queue; what was registered last holds for all workers.
    """
    queue = database.queue
    await database.in_thread(queue.client.register_queue, QUEUE, polling_interval_sec=_LOOK, **limits)
    _log.addHandler(_SILENT)
    DBOS(
        config=DBOSConfig(
            name=APPLICATION,
            system_database_url=queue.address,
            system_database_engine=queue.engine,
            sys_db_pool_size=5,
            # To ask each connection first is half of what an idle worker does; DBOS tries again by itself.
            db_engine_kwargs={"pool_pre_ping": False},
            executor_id=worker,
            application_version=version,
            serializer=DBOSPortableJSONSerializer(),
            log_level="ERROR",
        )
    )
    DBOS.workflow(name=WORKFLOW, max_recovery_attempts=None)(run)
    try:
        DBOS.launch()
        yield
    finally:
        # Not in the event loop's own threads: DBOS puts its own in their place, which may have ended.
        with ThreadPoolExecutor(1) as thread:
            end = partial(DBOS.destroy, destroy_registry=True)
            await asyncio.get_running_loop().run_in_executor(thread, end)
