"""By which rows one run of a thread works at a time, and nobody else writes for it; on both databases."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from sqlite3 import IntegrityError
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa
from langgraph.checkpoint.base import empty_checkpoint
from psycopg import OperationalError

from deepagents_server.config import Ages
from deepagents_server.database import Database, open_database
from deepagents_server.database.owners import Scope
from deepagents_server.database.quotas import Quota, list_quotas, set_quota
from deepagents_server.database.removal import open_remover
from deepagents_server.database.run_control import queue_age
from deepagents_server.database.runs import Taken, finish, new_run, recover, take_again
from deepagents_server.database.runs import begin as begin_run
from deepagents_server.database.store import graphs_of
from deepagents_server.database.tables import leases, run_events, runs
from deepagents_server.database.threads import add_thread
from deepagents_server.events import EventLog
from deepagents_server.graphs import Graphs
from deepagents_server.rewinds import fence
from deepagents_server.serialize import load, now


@pytest.fixture(params=["sqlite", "postgresql"])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'server.db'}"
    else:
        place: str = request.getfixturevalue("postgres")
        host = dict(part.split("=") for part in place.split())["host"]
        url = f"postgresql://postgres@/postgres?host={host}"
    async with open_database(url) as opened:
        yield opened


async def keep_runs(database: Database, *rows: dict[str, Any]) -> None:
    """Keep runs that wait, in this order, and leases of their threads."""
    async with database.write() as connection:
        for number, row in enumerate(rows):
            await connection.execute(runs.insert().values(waiting(row, number)))
        for thread in {row["thread_id"] for row in rows}:
            await connection.execute(leases.insert().values(thread_id=thread))


def waiting(row: dict[str, Any], number: int = 0) -> dict[str, Any]:
    """Return the row of a run that waits."""
    plain = new_run({"assistant_id": "", "graph_id": "echo", "metadata": {}}, {})
    return {**plain, "created_at": now(number / 1e3 - 60), "due_at": now(-60), **row}


async def begin(database: Database, mark: str, worker: str = "worker") -> Taken:
    """Begin a run whose id, thread and version are the same."""
    taken = await begin_run(database, mark, worker, mark, ["echo"])
    assert taken
    return taken


async def test_who_lost_a_thread_can_write_no_checkpoint(database: Database) -> None:
    thread = str(uuid4())
    await database.execute(leases.insert().values(thread_id=thread, token=2))

    async def write(lease: int) -> None:
        config: Any = {
            "configurable": {"thread_id": thread, "checkpoint_ns": ""},
            "metadata": {"lease": lease},
        }
        await database.saver.aput(config, empty_checkpoint(), {"source": "loop", "step": 1}, {})

    await write(2)
    with pytest.raises((IntegrityError, OperationalError), match="lease lost"):
        await write(1)


async def test_who_lost_a_run_cannot_end_it(database: Database) -> None:
    """Neither while another attempt works, nor after it has ended the run; nor can he take it back."""
    mark = uuid4().hex
    await keep_runs(database, {"run_id": mark, "thread_id": mark, "version": mark})
    run, first = await begin(database, mark)
    again = await take_again(database, run, first, "worker")
    assert again
    assert await take_again(database, run, first, "asleep") is None
    ends: Any = [(first, "error"), (again[1], "success"), (first, "error")]

    done = [
        (await finish(database, run, token, {"status": status}, {"status": "idle"}))[0]
        for token, status in ends
    ]
    (ended,) = await database.rows(sa.select(runs).where(runs.c.run_id == mark))

    assert done == [False, True, False]
    assert (ended["status"], ended["attempt"]) == ("success", 2)


async def test_who_lost_a_run_can_say_no_more(database: Database) -> None:
    """His events would come after those of the attempt that goes on."""
    mark = uuid4().hex
    await keep_runs(database, {"run_id": mark, "thread_id": mark, "version": mark})
    run, first = await begin(database, mark)
    log = EventLog(database)
    log.open(mark, first, attempt=run["attempt"], keep=True)
    await log.put(mark, "updates", {"said": "in time"})
    await log.flush(mark)

    await take_again(database, run, first, "worker")
    await log.put(mark, "updates", {"said": "too late"})
    await log.flush(mark)
    await log.put(mark, "updates", {"said": "later"})
    await log.close(mark, first, ended=False)

    kept = await database.rows(sa.select(run_events.c.events).where(run_events.c.run_id == mark))
    assert [load(row["events"])[0][2] for row in kept] == [{"said": "in time"}]
    assert not log.wanted(mark)


async def test_a_run_that_is_handed_back_waits_from_then_on(database: Database) -> None:
    """Or an operator would be told of a queue of hours after each worker that was lost."""
    mark = uuid4().hex
    await database.execute(runs.update().where(runs.c.status == "pending").values(status="error"))
    stamp = now(-60)
    await keep_runs(database, {"run_id": mark, "thread_id": mark, "version": mark, "updated_at": stamp})
    assert await queue_age(database) > 59

    await begin(database, mark, mark)
    begun = runs.update().where(runs.c.run_id == mark)
    await database.execute(begun.values(updated_at=now(-3600)))
    assert await recover(database, mark) == 1

    assert await queue_age(database) < 59


async def test_a_run_begins_once_however_often_it_was_put_into_the_queue(database: Database) -> None:
    """By two that have heard of it at once; not with another version; and not when it is over."""
    mark = uuid4().hex
    await keep_runs(database, {"run_id": mark, "thread_id": mark, "version": mark})
    assert await begin_run(database, mark, "worker", "another version", ["echo"]) is None

    taken = await asyncio.gather(
        *(begin_run(database, mark, worker, mark, ["echo"]) for worker in ("one", "other"))
    )
    ((run, token),) = [each for each in taken if each]
    await finish(database, run, token, {"status": "success"}, {"status": "idle"})

    assert run["attempt"] == 1
    assert await begin_run(database, mark, "late", mark, ["echo"]) is None


async def test_what_an_owner_keeps_is_measured(database: Database) -> None:
    """In threads, their states, and items of the store; and only where it has a bound."""
    ann, ben = uuid4().hex, uuid4().hex
    await set_quota(database, ann, Quota(megabytes=1))
    await set_quota(database, ben, Quota(runs=1))
    for owner in (ann, ben):
        async with database.of(Scope(owner)).write() as connection:
            thread = await add_thread(connection, metadata={"note": uuid4().hex})
        config: Any = {"configurable": {"thread_id": thread["thread_id"], "checkpoint_ns": ""}}
        held: Any = {**empty_checkpoint(), "channel_values": {"said": [uuid4().hex for _ in range(100)]}}
        await database.saver.aput(config, held, {"source": "loop", "step": 1}, {"said": "1"})
        store = graphs_of(Graphs({}, database.saver, database.store), owner).store
        await store.aput(("notes",), "one", {"text": [uuid4().hex for _ in range(100)]})
    with open_remover(database.url) as remover:
        await asyncio.to_thread(remover.sweep, Ages())

    kept = {row["owner"]: row["kept_bytes"] for row in await list_quotas(database)}
    assert kept[ben] == 0
    assert 5000 < kept[ann] < 12000


async def test_what_goes_back_writes_until_a_run_begins(database: Database) -> None:
    mark = str(uuid4())
    await database.execute(leases.insert().values(thread_id=mark))

    async def take() -> int | None:
        async with database.write() as connection:
            return await fence(connection, mark)

    async def write(lease: int) -> None:
        config: Any = {"configurable": {"thread_id": mark, "checkpoint_ns": ""}}
        saver: Any = database.saver
        await saver.under(lease).aput(config, empty_checkpoint(), {"source": "fork", "step": 1}, {})

    first, second = await take(), await take()
    assert first
    assert second
    with pytest.raises((IntegrityError, OperationalError), match="lease lost"):
        await write(first)
    await write(second)
    async with database.write() as connection:
        row = {"run_id": mark, "thread_id": mark, "version": mark}
        await connection.execute(runs.insert().values(waiting(row)))
    assert await take() is None
    await begin(database, mark)
    with pytest.raises((IntegrityError, OperationalError), match="lease lost"):
        await write(second)
