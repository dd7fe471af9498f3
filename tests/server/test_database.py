from __future__ import annotations

import asyncio
import operator
import sqlite3
import sys
import threading
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypedDict, cast
from uuid import uuid4

import pytest
import sqlalchemy as sa
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, empty_checkpoint
from langgraph.graph import START, StateGraph
from langgraph.store.base import PutOp, SearchOp
from psycopg import OperationalError, connect
from sqlalchemy import event
from sqlalchemy.ext.asyncio import create_async_engine

from deepagents_server.database import open_database
from deepagents_server.database.assistants import add_system_assistants
from deepagents_server.database.notices import Notices
from deepagents_server.database.owners import Scope
from deepagents_server.database.runs import Here, new_run, pass_on
from deepagents_server.database.store import graphs_of
from deepagents_server.database.tables import assistants, leases, runs, threads
from deepagents_server.database.threads import add_thread
from deepagents_server.errors import ServeError
from deepagents_server.graphs import Graphs
from deepagents_server.serialize import now


class Notes(TypedDict):
    notes: Annotated[list[str], operator.add]


def address(directory: Path) -> str:
    (directory / "kept").mkdir(exist_ok=True)
    return f"sqlite:///{directory / 'kept' / 'server.db'}"


async def test_a_file_serves_one_process_at_a_time_and_again_later(tmp_path: Path) -> None:
    """By each of its names, and also where somebody has removed its lock."""
    (tmp_path / "linked.db").symlink_to(tmp_path / "kept" / "server.db")
    async with open_database(address(tmp_path)) as database:
        await database.execute(leases.insert().values(thread_id="t"))
        (tmp_path / "hard.db").hardlink_to(tmp_path / "kept" / "server.db")
        names = ["kept/server.db", "linked.db"]
        if sys.platform == "linux":
            (tmp_path / "kept" / "server.db.lock").unlink()
            names.append("hard.db")
        for name in names:
            with pytest.raises(ServeError, match="belongs to a server that runs"):
                async with open_database(f"sqlite:///{tmp_path / name}"):
                    pass

    async with open_database(address(tmp_path)) as database:
        assert await database.count(sa.select(leases)) == 1


async def test_to_read_waits_for_no_writer(tmp_path: Path) -> None:
    """Not even where a connection is new: the event loop would wait for a writer who waits for it."""
    async with open_database(address(tmp_path)) as database, AsyncExitStack() as stack:
        with closing(sqlite3.connect(tmp_path / "kept" / "server.db")) as writer:
            writer.execute("BEGIN IMMEDIATE")
            for _ in range(10):
                reader = await stack.enter_async_context(database.read())
                assert (await reader.execute(sa.select(leases))).first() is None
            assert await graphs_of(Graphs({}, database.saver, database.store), "ann").store.asearch(()) == []


async def test_the_store_can_be_written_while_others_write(tmp_path: Path) -> None:
    """Also where it has read before, in the same batch."""
    async with open_database(address(tmp_path)) as database:
        for number in range(20):
            batch = [SearchOp(("places",)), PutOp(("places",), str(number), {"metres": number})]
            stored = asyncio.create_task(database.store.abatch(batch))
            while not stored.done():
                await database.execute(leases.insert().values(thread_id=str(uuid4())))
                await asyncio.sleep(0)

            found: Any = (await stored)[0]
            assert len(found) == min(number, 10)


async def test_who_gives_up_on_the_store_leaves_it_to_others(tmp_path: Path) -> None:
    async with open_database(address(tmp_path)) as database:
        hers = graphs_of(Graphs({}, database.saver, database.store), "ann").store
        with closing(sqlite3.connect(tmp_path / "kept" / "server.db")) as writer:
            writer.execute("BEGIN IMMEDIATE")
            giving_up = asyncio.create_task(hers.aput(("places",), "tide", {"metres": 13}))
            await asyncio.wait([giving_up], timeout=0.1)
            giving_up.cancel()

        await hers.aput(("places",), "moon", {})
        await database.execute(leases.insert().values(thread_id="free"))

        assert "moon" in [item.key for item in await hers.asearch(("places",))]


async def test_a_database_of_a_newer_release_is_left_alone(tmp_path: Path) -> None:
    async with open_database(address(tmp_path)) as database, database.write() as connection:
        await connection.execute(sa.text("INSERT INTO server_migrations VALUES (999)"))

    with pytest.raises(ServeError, match="use the newer release"):
        async with open_database(address(tmp_path)):
            pass


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("mysql://me:hidden@nowhere/x", r"'mysql://me:\*\*\*@nowhere/x' is not a database"),
        ("mysql://nowhere/x?password=hidden", "'mysql://nowhere/x' is not a database"),
        ("mysql://me:hidden@nowhere:port/x", "'mysql:...' is not a database"),
        ("postgresql://me:hidden@127.0.0.1:1/x", r"refused.* name another with --database"),
        ("sqlite:///{directory}/gone/x.db", "There is no directory '.*/gone'; make it"),
        ("sqlite:///{directory}/notes.txt", "notes.txt' cannot be worked on: file is not a database"),
    ],
)
async def test_what_is_no_database_is_refused(tmp_path: Path, place: str, message: str) -> None:
    (tmp_path / "notes.txt").write_text("hello " * 1000)
    for alongside in (False, True):
        with pytest.raises(ServeError, match=message) as refused:
            async with open_database(place.format(directory=tmp_path), alongside=alongside):
                pass
        assert "hidden" not in str(refused.value)


@pytest.mark.parametrize("alongside", [False, True])
async def test_a_file_is_read_by_its_owner_alone(tmp_path: Path, alongside: bool) -> None:
    """Also one that an earlier release has made; a lock that leads elsewhere is not followed."""
    file = tmp_path / ".deepagents" / "server.db"
    async with open_database(f"sqlite:///{file}", alongside=alongside) as database:
        await database.execute(leases.insert().values(thread_id="t"))
        made = [file.parent, *file.parent.iterdir()]
        assert {path.stat().st_mode & 0o077 for path in made} == {0}
        assert {"server.db", "server.db-shm", "server.db-wal"} <= {path.name for path in made}
    file.chmod(0o644)
    async with open_database(f"sqlite:///{file}", alongside=alongside):
        assert file.stat().st_mode & 0o777 == 0o600

    notes, lock = tmp_path / "notes.txt", file.with_name("server.db.lock")
    notes.write_text("dear diary")
    lock.unlink(missing_ok=True)
    lock.symlink_to(notes)
    with pytest.raises(ServeError, match="cannot be worked on"):
        async with open_database(f"sqlite:///{file}"):
            pass
    assert notes.read_text() == "dear diary"


async def test_what_all_share_is_changed_by_the_server_alone(tmp_path: Path) -> None:
    """Also by an endpoint that forgets to ask."""
    async with open_database(address(tmp_path)) as database:
        await add_system_assistants(database, ["echo"], {})
        alice = database.of(Scope("alice"))

        await alice.execute(assistants.update().values(name="mine"))
        await alice.execute(assistants.delete())

        assert [row["name"] for row in await alice.rows(sa.select(assistants))] == ["echo"]
        with pytest.raises(RuntimeError, match="not text"):
            await alice.rows(cast(Any, sa.text("SELECT * FROM threads")))


async def test_a_query_inside_of_another_sees_no_rows_of_others(tmp_path: Path) -> None:
    async with open_database(address(tmp_path)) as database:
        alice, bob = (database.of(Scope(name)) for name in ("alice", "bob"))
        for owner in (alice, bob):
            async with owner.write() as connection:
                await add_thread(connection, metadata={"of": owner.owner})
        others = sa.select(threads.c.thread_id).where(threads.c.owner == "bob")
        counted: Any = sa.select(sa.func.count()).select_from(threads).scalar_subquery()

        assert await alice.rows(sa.select(sa.literal("found")).where(sa.exists(others))) == []
        assert await alice.rows(sa.select(sa.literal("one")).where(counted == 1))
        assert await alice.rows(sa.select(others.subquery())) == []
        await alice.execute(threads.update().values(status="error").where(sa.exists(others)))
        assert [row["status"] for row in await database.rows(sa.select(threads))] == ["idle", "idle"]


async def test_who_lost_a_thread_can_keep_no_result_of_a_task(postgres: str) -> None:
    """A worker that slept while a node worked, and woke up when another had the thread."""
    host = dict(part.split("=") for part in postgres.split())["host"]
    async with open_database(f"postgresql://postgres@/postgres?host={host}") as database:
        thread = str(uuid4())
        await database.execute(leases.insert().values(thread_id=thread, token=1))
        taken = leases.update().where(leases.c.thread_id == thread).values(token=2)

        async def work(state: Notes) -> Notes:
            await database.execute(taken)
            return {"notes": ["late"]}

        builder = StateGraph(Notes)
        builder.add_node("work", work)
        builder.add_edge(START, "work")
        graph = builder.compile(checkpointer=database.saver)
        config: Any = {"configurable": {"thread_id": thread}, "metadata": {"lease": 1}}

        with pytest.raises(OperationalError, match="lease lost"):
            await graph.ainvoke({"notes": []}, config, durability="sync")

        (task,) = (await graph.aget_state(config)).tasks
        assert task.result is None, "the worker that has the thread now would believe it"


async def test_a_store_that_is_held_up_holds_up_no_checkpoint(postgres: str) -> None:
    host = dict(part.split("=") for part in postgres.split())["host"]
    url = f"postgresql://postgres@/postgres?host={host}"
    waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    async with open_database(url) as database:
        hers = graphs_of(Graphs({}, database.saver, database.store), "ann").store
        with connect(url) as locking, connect(url, autocommit=True) as looking:
            locking.execute("LOCK TABLE store")
            asked = [asyncio.create_task(hers.aget(("places",), str(number))) for number in range(10)]
            while len(looking.execute(waiting).fetchall()) < 4:
                await asyncio.sleep(0.05)

            found = await database.saver.aget_tuple({"configurable": {"thread_id": str(uuid4())}})

        assert found is None
        assert await asyncio.gather(*asked) == [None] * 10


async def test_of_thousands_of_runs_that_wait_on_a_thread_a_few_are_looked_at(tmp_path: Path) -> None:
    async with open_database(address(tmp_path)) as database:
        plain = new_run({"assistant_id": "", "graph_id": "echo", "metadata": {}}, {})
        plain |= {"created_at": now(), "updated_at": now(), "thread_id": "busy"}
        async with database.write() as connection:
            await connection.execute(runs.insert(), [{**plain, "run_id": str(n)} for n in range(3000)])
            await connection.execute(leases.insert().values(thread_id="busy"))
        steps = 0

        def step() -> None:
            nonlocal steps
            steps += 1

        @event.listens_for(database.engine.sync_engine, "checkout")
        def watch(connection: Any, *_: Any) -> None:
            connection.set_progress_handler(step, 100)

        async with database.write() as connection:
            taken = await pass_on(connection, database.queue, "busy", Here("worker", lambda _: True))

        assert taken
        assert taken[0]["run_id"] == "0"
        assert steps < 50, "to look at all takes thousands"


async def test_what_no_connection_was_free_for_is_told_later(
    postgres: str, caplog: pytest.LogCaptureFixture
) -> None:
    """For as long as a database only answers slowly: whoever tells others goes on with it."""
    host = dict(part.split("=") for part in postgres.split())["host"]
    async with open_database(f"postgresql://postgres@/postgres?host={host}") as database:
        engine = create_async_engine(
            f"postgresql+psycopg://postgres@/postgres?host={host}",
            pool_size=2,
            max_overflow=0,
            pool_timeout=0.01,
        )
        heard, listens = asyncio.Queue[str](), asyncio.Event()
        hearing, telling = Notices(database), Notices(replace(database, engine=engine))
        hearing.on("begin", heard.put_nowait)
        telling.on_return = listens.set
        async with hearing.exchanging(), telling.exchanging():
            await listens.wait()
            async with engine.connect():
                telling.send(("begin", "first"))
                while "QueuePool limit" not in caplog.text:
                    await asyncio.sleep(0.01)
            telling.send(("begin", "second"))
            assert {await heard.get(), await heard.get()} == {"first", "second"}
        await engine.dispose()


async def test_graphs_write_to_a_file_from_event_loops_of_their_own(tmp_path: Path) -> None:
    """As a tool does that calls `asyncio.run`, beside graphs and rows of the server's own event loop."""
    async with open_database(address(tmp_path)) as database:

        def add_first(state: Notes) -> Notes:
            return {"notes": ["first"]}

        def add_second(state: Notes) -> Notes:
            return {"notes": ["second"]}

        builder = StateGraph(Notes)
        builder.add_node("first", add_first)
        builder.add_node("second", add_second)
        builder.add_edge(START, "first")
        builder.add_edge("first", "second")
        graph = builder.compile(checkpointer=database.saver)

        async def work() -> list[Any]:
            return [
                (await graph.ainvoke({"notes": []}, {"configurable": {"thread_id": str(uuid4())}}))["notes"]
                for _ in range(10)
            ]

        async def add_rows() -> None:
            for _ in range(100):
                await database.execute(leases.insert().values(thread_id=str(uuid4())))

        elsewhere = [asyncio.to_thread(asyncio.run, work()) for _ in range(4)]
        here = [work() for _ in range(4)]
        *notes, _ = await asyncio.gather(*elsewhere, *here, add_rows())

        assert notes == [[["first", "second"]] * 10] * 8


@dataclass
class Heavy:
    """Takes long to load."""

    begun: ClassVar = threading.Event()
    loaded: ClassVar = threading.Event()
    grams: int

    def __post_init__(self) -> None:
        if self.grams == 1:
            self.begun.set()
            self.loaded.wait(20)


async def test_nothing_that_is_written_waits_for_a_state_that_is_read(tmp_path: Path) -> None:
    async with open_database(address(tmp_path)) as database:

        async def put(thread: str, grams: int) -> RunnableConfig:
            place: RunnableConfig = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
            checkpoint = empty_checkpoint() | {"channel_values": {"stone": Heavy(grams)}}
            return await database.saver.aput(place, cast(Checkpoint, checkpoint), {}, {})

        Heavy.loaded.set()
        place = await put("heavy", 1)
        Heavy.loaded.clear()
        Heavy.begun.clear()

        reading = asyncio.create_task(database.saver.aget_tuple(place))
        await asyncio.to_thread(Heavy.begun.wait)
        writing = asyncio.create_task(put("light", 0))
        await database.execute(leases.insert().values(thread_id="t"))
        await writing
        waited = reading.done()
        Heavy.loaded.set()

        found = await reading
        assert found
        assert found.checkpoint["channel_values"] == {"stone": Heavy(1)}
        assert not waited
