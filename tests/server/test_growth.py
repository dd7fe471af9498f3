"""What a run costs, and a search, does not grow with what an owner keeps."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
import uvicorn
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from sqlalchemy import event

from deepagents_server.config import ServerConfig
from deepagents_server.database import Database
from deepagents_server.database.pragmas import set_pragmas
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
def recording(database: Database) -> Generator[list[tuple[str, Any]]]:
    """Note the statements that are executed meanwhile, with their parameters."""
    seen: list[tuple[str, Any]] = []

    def note(connection: Any, cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        seen.append((statement, parameters))

    event.listen(database.engine.sync_engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(database.engine.sync_engine, "before_cursor_execute", note)


def count_steps(file: Path, statements: Iterable[tuple[str, Any]]) -> int:
    """Count what SQLite does for statements, in hundreds of steps of its machine."""
    steps = 0

    def step() -> None:
        nonlocal steps
        steps += 1

    with closing(sqlite3.connect(file)) as opened:
        set_pragmas(opened, None)
        opened.execute("BEGIN IMMEDIATE")
        opened.set_progress_handler(step, 100)
        for statement, parameters in statements:
            if statement.startswith("BEGIN"):
                continue
            # What it inserts is there already.
            with suppress(sqlite3.IntegrityError):
                opened.execute(statement, parameters).fetchall()
        opened.set_progress_handler(None, 0)
        opened.rollback()
    return steps


@asynccontextmanager
async def served(directory: Path, address: str) -> AsyncGenerator[tuple[Database, str]]:
    """Serve in this event loop, so that one sees what the database does."""
    settings = Settings(address, slots=0)
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


def requests_of(client: LangGraphClient, mark: str) -> dict[str, Callable[[], Awaitable[Any]]]:
    """Return what is asked, by what it is for; `mark` is the id of a thread."""

    async def make_runs() -> None:
        thread = (await client.threads.create())["thread_id"]
        run = await client.runs.create(thread, "echo", input=say("hello"))
        await client.runs.create(thread, "echo", input=say("more"), multitask_strategy="interrupt")
        await client.runs.list(thread)
        await client.runs.delete(thread, run["run_id"])

    async def search_for_one() -> None:
        (found,) = await client.threads.search(metadata={"mark": mark, "graph_id": "echo"})
        assert found["thread_id"] == mark

    return {
        "runs": make_runs,
        "rare metadata": search_for_one,
        "common metadata": lambda: client.threads.search(metadata={"graph_id": "echo"}, limit=10),
        "status": lambda: client.threads.search(status="idle", limit=10),
    }


@pytest.mark.slow
async def test_what_a_file_does_for_a_request_does_not_grow_with_its_threads(tmp_path: Path) -> None:
    file = tmp_path / "server.db"
    async with (
        served(tmp_path, f"sqlite:///{file}") as (database, url),
        get_client(url=url, api_key=None) as client,
    ):

        async def measure() -> dict[str, int]:
            took: dict[str, int] = {}
            for name, ask in requests_of(client, await keep_threads(database, 1)).items():
                with recording(database) as statements:
                    await ask()
                took[name] = count_steps(file, statements)
            return took

        await keep_threads(database, 2000)
        few = await measure()
        await keep_threads(database, 4000)
        many = await measure()

    assert all(few.values()), "it was counted"
    assert not {name: (few[name], many[name]) for name in few if many[name] > 1.2 * few[name] + 10}


@pytest.mark.slow
async def test_postgresql_finds_by_indexes_what_requests_ask_for(postgres: str, tmp_path: Path) -> None:
    name = f"grown_{uuid4().hex}"
    with psycopg.connect(postgres, autocommit=True) as opened:
        opened.execute(f"CREATE DATABASE {name}".encode())
    host = dict(part.split("=") for part in postgres.split())["host"]
    async with (
        served(tmp_path, f"postgresql://postgres@/{name}?host={host}") as (database, url),
        get_client(url=url, api_key=None) as client,
    ):
        mark = await keep_threads(database, 3000)
        with psycopg.connect(f"host={host} user=postgres dbname={name}", autocommit=True) as opened:
            opened.execute("ANALYZE")
            with recording(database) as statements:
                for ask in requests_of(client, mark).values():
                    await ask()
            plans = {
                statement: str(opened.execute(f"EXPLAIN {statement}".encode(), parameters).fetchall())
                for statement, parameters in statements
                # That many rows fit is counted up to a limit, in the order in which they lie there.
                if "count(" not in statement or "LIMIT" not in statement
            }

    tables = ("threads", "runs", "leases")
    read_through = [f"Seq Scan on {table} " for table in tables]
    assert len(plans) > 20
    assert not [plan for plan in plans.values() if any(each in plan for each in read_through)]
