"""By which rows one run of a thread works at a time, and nobody else writes for it; on both databases."""

from __future__ import annotations

import asyncio
from collections import Counter
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
from deepagents_server.database.claims import Claim, queue_age
from deepagents_server.database.claims import claim as claim_runs
from deepagents_server.database.owners import Scope
from deepagents_server.database.quotas import Quota, list_quotas, set_quota
from deepagents_server.database.removal import open_remover
from deepagents_server.database.runs import Taken, finish, hand_back, new_run, take_again, take_over
from deepagents_server.database.store import graphs_of
from deepagents_server.database.tables import leases, run_events, runs
from deepagents_server.database.threads import add_thread
from deepagents_server.events import EventLog
from deepagents_server.graphs import Graphs
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
    plain = new_run({"assistant_id": "", "graph_id": "echo", "metadata": {}}, {})
    async with database.write() as connection:
        for number, row in enumerate(rows):
            stamp = {"created_at": now(number / 1e3 - 60), "due_at": now(-60)}
            await connection.execute(runs.insert().values({**plain, **stamp, **row}))
        for thread in {row["thread_id"] for row in rows}:
            await connection.execute(leases.insert().values(thread_id=thread))


async def claim(database: Database, wanted: Claim) -> list[Taken]:
    taken, _ = await claim_runs(database, wanted)
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
    ((run, first),) = await claim(database, Claim("worker", ["echo"], mark, 1))
    again = await take_again(database, run, first, "worker")
    assert again
    assert await take_again(database, run, first, "asleep") is None
    ends: Any = [(first, "error"), (again[1], "success"), (first, "error")]

    done = [
        await finish(database, run, token, {"status": status}, {"status": "idle"}) for token, status in ends
    ]
    (ended,) = await database.rows(sa.select(runs).where(runs.c.run_id == mark))

    assert done == [False, True, False]
    assert (ended["status"], ended["attempt"]) == ("success", 2)


async def test_who_lost_a_run_can_say_no_more(database: Database) -> None:
    """His events would come after those of the attempt that goes on."""
    mark = uuid4().hex
    await keep_runs(database, {"run_id": mark, "thread_id": mark, "version": mark})
    ((run, first),) = await claim(database, Claim("worker", ["echo"], mark, 1))
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

    await claim(database, Claim("worker", ["echo"], mark, 1))
    begun = runs.update().where(runs.c.run_id == mark)
    await database.execute(begun.values(updated_at=now(-3600)))
    await hand_back(database, mark, "worker")

    assert await queue_age(database) < 59


async def test_an_urgent_run_does_not_pass_another_of_its_thread(database: Database) -> None:
    thread, first, later, urgent = (uuid4().hex for _ in range(4))
    ranks = {first: 0, later: 0, urgent: 9}
    common = {"thread_id": thread, "version": thread}
    rows = [{**common, "run_id": run_id, "priority": rank} for run_id, rank in ranks.items()]
    await keep_runs(database, *rows)

    (taken,) = await claim(database, Claim("worker", ["echo"], thread, 10))
    refused = await take_over(database, urgent, "another")
    (left,) = await database.rows(sa.select(runs).where(runs.c.run_id == urgent))

    assert taken[0]["run_id"] == first
    assert refused is None, "a thread has one run at a time, whoever asks"
    assert (left["status"], left["attempt"]) == ("pending", 0)


async def test_a_thread_at_work_takes_no_room_from_others(database: Database) -> None:
    """What waits there is not even looked at."""
    busy, free = uuid4().hex, uuid4().hex
    of_threads = {f"{busy}0": busy, f"{busy}1": busy, free: free}
    rows = [{"run_id": run, "thread_id": thread, "version": busy} for run, thread in of_threads.items()]
    await keep_runs(database, *rows)
    wanted = Claim("worker", ["echo"], busy, 1)

    taken = [await claim(database, wanted) for _ in range(2)]

    assert [run["run_id"] for ((run, _),) in taken] == [f"{busy}0", free]


async def test_an_owner_has_as_many_runs_at_work_as_its_limit(database: Database) -> None:
    """Also where two workers look at once; the runs of others do not wait behind them."""
    ann, ben = uuid4().hex, uuid4().hex
    rows = [
        {"run_id": f"{owner}{number}", "thread_id": f"{owner}{number}", "owner": owner, "version": ann}
        for owner, runs_of_owner in ((ann, 5), (ben, 1))
        for number in range(runs_of_owner)
    ]
    await keep_runs(database, *rows)
    wanted = Claim("worker", ["echo"], ann, 3, owner_limit=2)

    at_once = await asyncio.gather(*(claim(database, wanted) for _ in range(2 if database.is_shared else 1)))
    # Who finds that another counts the runs of an owner leaves them, and looks again.
    later = [await claim(database, wanted) for _ in range(2)]

    begun = Counter(run["run_id"][:-1] for taken in (*at_once, *later) for run, _ in taken)
    assert begun == {ann: 2, ben: 1}


async def test_a_worker_that_falls_asleep_while_it_counts_holds_up_one_owner(database: Database) -> None:
    """What was begun of others works, and their next runs begin: nobody waits for the one who counts."""
    ann, ben = uuid4().hex, uuid4().hex
    rows = [
        {"run_id": f"{owner}{n}", "thread_id": f"{owner}{n}", "owner": owner, "version": ann}
        for owner in (ann, ben)
        for n in range(2)
    ]
    await keep_runs(database, *rows)
    wanted = Claim("worker", ["echo"], ann, 2, owner_limit=1)
    if not database.is_shared:
        taken, is_held_up = await claim_runs(database, wanted)
        assert ([run["run_id"] for run, _ in taken], is_held_up) == ([f"{ann}0", f"{ben}0"], False)
        return

    async with database.write() as asleep:
        await asleep.execute(sa.select(sa.func.pg_advisory_xact_lock(0x6465_6572, sa.func.hashtext(ann))))
        taken, is_held_up = await claim_runs(database, wanted)
        assert ([run["run_id"] for run, _ in taken], is_held_up) == ([f"{ben}0"], True)
    taken, is_held_up = await claim_runs(database, wanted)
    assert ([run["run_id"] for run, _ in taken], is_held_up) == ([f"{ann}0"], False)


async def test_owners_begin_in_turn_and_each_with_its_most_urgent_run(database: Database) -> None:
    """However many one has waiting, and however urgent they are to him."""
    ann, ben, cem = (uuid4().hex for _ in range(3))
    asked = [*[(ann, 0)] * 3, *[(ann, 10)] * 3, (ben, 0), (ben, 0), (cem, -10)]
    rows = [
        {"run_id": f"{owner}{number}", "thread_id": f"{owner}{number}", "owner": owner, "priority": rank}
        for number, (owner, rank) in enumerate(asked)
    ]
    await keep_runs(database, *({**row, "version": ann} for row in rows))

    begun = [await claim(database, Claim("worker", ["echo"], ann, size)) for size in (1, 3, 2, 9)]

    assert [[run["run_id"][-1] for run, _ in taken] for taken in begun] == [
        ["3"],
        ["6", "8", "4"],
        ["7", "5"],
        ["0", "1", "2"],
    ]


async def test_the_last_place_of_a_worker_is_for_those_who_have_none_at_work(database: Database) -> None:
    ann, ben = uuid4().hex, uuid4().hex
    rows = [
        {"run_id": f"{owner}{n}", "thread_id": f"{owner}{n}", "owner": owner}
        for owner in (ann, ben)
        for n in range(2)
    ]
    await keep_runs(database, *({**row, "version": ann} for row in rows))

    begun = await claim(database, Claim("worker", ["echo"], ann, 2, busy=[ann], spare=1))

    assert [run["run_id"] for run, _ in begun] == [f"{ann}0", f"{ben}0"]
    assert await claim(database, Claim("worker", ["echo"], ann, 1, busy=[ann, ben], spare=1)) == []


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
