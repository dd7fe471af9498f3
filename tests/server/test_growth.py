"""What a run costs, and a search, does not grow with what an owner keeps."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import uvicorn
from langgraph_sdk import get_client
from sqlalchemy import event

from deepagents_server.config import ServerConfig
from deepagents_server.database import Database
from deepagents_server.database.runs import new_run
from deepagents_server.database.tables import leases, runs, threads
from deepagents_server.serialize import now
from deepagents_server.serve import listen, listener
from deepagents_server.server import Settings, open_server
from tests.server.serving import GRAPHS
from tests.server.test_runs import say

_STAMPS = ("created_at", "updated_at", "state_updated_at")


async def keep_threads(database: Database, number: int, owner: str = "") -> str:
    """Keep threads on which one run has ended; return the id of one of them."""
    plain = new_run({"assistant_id": "", "graph_id": "echo", "metadata": {}}, {})
    ids = [str(uuid4()) for _ in range(number)]
    ended = {**plain, "status": "success", "owner": owner, **dict.fromkeys(_STAMPS[:2], now())}
    thread = {"owner": owner, "status": "idle", "config": {}}
    async with database.write() as connection:
        for table, rows in {
            threads: [
                {
                    **thread,
                    "thread_id": each,
                    "metadata": {"graph_id": "echo", "mark": each},
                    **dict.fromkeys(_STAMPS, now(place / 1e6)),
                }
                for place, each in enumerate(ids)
            ],
            leases: [{"thread_id": each} for each in ids],
            runs: [{**ended, "run_id": each, "thread_id": each} for each in ids],
        }.items():
            await connection.execute(table.insert(), rows)
    return ids[-1]


@contextmanager
def counting(database: Database) -> Generator[list[int]]:
    """Count what SQLite does, in hundreds of steps of its machine."""
    counted = [0]

    def step() -> None:
        counted[0] += 1

    def watch(connection: Any, *_: Any) -> None:
        connection.set_progress_handler(step, 100)

    event.listen(database.engine.sync_engine, "checkout", watch)
    try:
        yield counted
    finally:
        event.remove(database.engine.sync_engine, "checkout", watch)


@asynccontextmanager
async def served(directory: Path) -> AsyncGenerator[tuple[Database, str]]:
    """Serve in this event loop, so that one sees what the database does."""
    settings = Settings(f"sqlite:///{directory / 'server.db'}", slots=0)
    async with open_server(ServerConfig(directory, GRAPHS), settings) as server:
        socket = listen("127.0.0.1", 0)
        answering: uvicorn.Server = listener(server, settings)
        serving = asyncio.create_task(answering.serve([socket]))
        try:
            yield server.engine.database, f"http://127.0.0.1:{socket.getsockname()[1]}"
        finally:
            answering.should_exit = True
            await serving
            socket.close()


async def test_what_a_file_does_for_a_request_does_not_grow_with_its_threads(tmp_path: Path) -> None:
    async with served(tmp_path) as (database, url), get_client(url=url, api_key=None) as client:

        async def make_and_cancel() -> None:
            thread = (await client.threads.create())["thread_id"]
            run = await client.runs.create(thread, "echo", input=say("hello"))
            await client.runs.create(thread, "echo", input=say("more"), multitask_strategy="interrupt")
            await client.runs.list(thread)
            await client.runs.delete(thread, run["run_id"])

        async def measure(mark: str) -> dict[str, int]:
            async def by_mark() -> None:
                (found,) = await client.threads.search(metadata={"mark": mark, "graph_id": "echo"})
                assert found["thread_id"] == mark

            requests = {
                "runs": make_and_cancel,
                "rare metadata": by_mark,
                "common metadata": lambda: client.threads.search(metadata={"graph_id": "echo"}, limit=3),
                "status": lambda: client.threads.search(status="idle", limit=3),
            }
            took: dict[str, int] = {}
            for name, ask in requests.items():
                with counting(database) as counted:
                    await ask()
                took[name] = counted[0]
            return took

        await keep_threads(database, 2000)
        few = await measure(await keep_threads(database, 1))
        await keep_threads(database, 4000)
        many = await measure(await keep_threads(database, 1))

    grown = {name: (few[name], many[name]) for name in few if many[name] > 1.2 * few[name] + 10}
    assert not grown
