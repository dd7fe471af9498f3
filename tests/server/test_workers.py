"""Servers and workers that share a PostgreSQL."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import ConflictError, UnprocessableEntityError

from tests.server.serving import Process, serving
from tests.server.test_runs import last, say
from tests.server.test_thread_sockets import ask, opened

pytestmark = pytest.mark.slow


@dataclass
class Shared:
    """A server that runs nothing itself, and workers, by the address of their database."""

    url: str
    database: str
    workers: list[Process]
    lifted: Path


@pytest.fixture(scope="module")
def shared(postgres: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    directory = tmp_path_factory.mktemp("shared")
    host = dict(part.split("=") for part in postgres.split())["host"]
    database = f"postgresql://postgres@/postgres?host={host}"
    lifted = directory / "lifted"
    options = ("--database", database)
    workers = [Process(directory, *options, command="worker", LIFTED=str(lifted)) for _ in range(2)]
    with serving(directory, database, slots=0) as url:
        for number, worker in enumerate(workers):
            worker.log = directory / f"log {number}"
            worker.start()
        yield Shared(url, database, workers, lifted)
        for worker in workers:
            worker.close()


@pytest.fixture
async def client(shared: Shared) -> AsyncIterator[LangGraphClient]:
    async with get_client(url=shared.url, api_key=None) as client:
        yield client


async def test_a_worker_runs_what_a_server_takes(client: LangGraphClient) -> None:
    thread = (await client.threads.create(metadata={"mark": "shared"}))["thread_id"]

    first = await client.runs.wait(thread, "deep", input=say("hello"))
    seen = [
        part.event
        async for part in client.runs.stream(
            thread, "deep", input=say("again"), stream_mode=["messages-tuple", "values"]
        )
    ]

    assert last(first) == "Thirteen metres."
    assert seen[0] == "metadata"
    assert {*seen} == {"metadata", "messages", "values"}
    found = await client.threads.search(metadata={"mark": "shared", "graph_id": "deep"})
    assert [each["thread_id"] for each in found] == [thread]
    copied: Any = await client.threads.copy(thread)
    history = await client.threads.get_history(copied["thread_id"], limit=100)
    assert len(history) == len(await client.threads.get_history(thread, limit=100))


async def test_text_that_postgresql_does_not_keep_is_refused(client: LangGraphClient) -> None:
    with pytest.raises(UnprocessableEntityError, match="NUL"):
        await client.assistants.create("echo", name="nul \0")
    with pytest.raises(UnprocessableEntityError, match="NUL"):
        await client.assistants.create("echo", context={"tone": "nul \0"})
    with pytest.raises(UnprocessableEntityError, match="NUL"):
        await client.store.put_item(["places"], "tide", {"text": "nul \0"})


def test_a_command_with_such_text_is_refused_on_either_way(shared: Shared) -> None:
    command: Any = {"id": 1, "method": "run.start", "params": {"assistant_id": "nul \0"}}
    thread = httpx.post(f"{shared.url}/threads", json={}).json()["thread_id"]
    told = httpx.post(f"{shared.url}/threads/{thread}/commands", json=command)
    with opened(shared.url, thread) as socket:
        refused = ask(socket, command["method"], command["params"])
        started = ask(socket, "run.start", {"assistant_id": "echo", "input": say("hello")})

    assert (told.status_code, told.json()) == (422, refused)
    assert (refused["error"], refused["id"]) == ("invalid_argument", 1)
    assert "NUL" in refused["message"]
    assert started["type"] == "success"


async def begin(client: LangGraphClient, graph: str, text: str) -> tuple[str, str, str]:
    """Start a run and read its events up to the first of its own."""
    thread = (await client.threads.create())["thread_id"]
    made = await client.runs.create(
        thread, graph, input=say(text), stream_mode=["custom", "updates"], stream_resumable=True
    )
    async for part in client.runs.join_stream(thread, made["run_id"], last_event_id="-1"):
        if part.event == "custom":
            return thread, made["run_id"], part.id or ""
    raise AssertionError("The run ended.")


async def test_a_run_elsewhere_is_cancelled_within_a_second(client: LangGraphClient) -> None:
    thread, run, _ = await begin(client, "echo", f"wait {uuid4()}")

    began = time.monotonic()
    await client.runs.cancel(thread, run, wait=True)

    assert time.monotonic() - began < 10, "nobody would look for 15 seconds"
    assert (await client.runs.get(thread, run))["status"] == "interrupted"


async def test_a_run_is_cancelled_though_its_worker_cannot_hear_it(
    client: LangGraphClient, shared: Shared
) -> None:
    """The connections on which notices arrive are cut, and come back a second later."""
    thread, run, _ = await begin(client, "echo", f"wait {uuid4()}")

    with psycopg.connect(shared.database) as connection:
        listening = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE query = 'LISTEN deepagents' AND datname = current_database()"
        )
        assert len(connection.execute(listening).fetchall()) == 3
    await client.runs.cancel(thread, run)

    async with asyncio.timeout(60):
        await client.runs.join(thread, run)
    assert (await client.runs.get(thread, run))["status"] == "interrupted"


async def test_an_error_of_another_database_ends_a_run(client: LangGraphClient) -> None:
    """It is not ours that is away, so there is nothing to wait for."""
    parts = [
        part async for part in client.runs.stream(None, "echo", input=say("query The price list is locked."))
    ]

    assert [part.data["attempt"] for part in parts if part.event == "metadata"] == [1]
    assert parts[-1].data == {"error": "OperationalError", "message": "The price list is locked."}


async def test_of_runs_that_come_at_once_a_thread_takes_one(client: LangGraphClient) -> None:
    thread = (await client.threads.create())["thread_id"]
    asked = (
        client.runs.create(thread, "echo", input=say(f"wait {uuid4()}"), multitask_strategy="reject")
        for _ in range(8)
    )

    answers = await asyncio.gather(*asked, return_exceptions=True)

    assert [type(each) for each in answers if not isinstance(each, dict)] == [ConflictError] * 7
    await client.threads.delete(thread)


async def test_batches_for_the_same_threads_do_not_wait_for_each_other_forever(
    client: LangGraphClient, shared: Shared
) -> None:
    """Each names them in another order."""
    threads = [(await client.threads.create())["thread_id"] for _ in range(12)]
    asked = [{"assistant_id": "echo", "thread_id": thread, "input": say("hello")} for thread in threads]

    async with httpx.AsyncClient(base_url=shared.url, timeout=60) as plain:
        batches = [plain.post("/runs/batch", json=asked[::order]) for order in (1, -1) * 3]
        answers = await asyncio.gather(*batches)

    assert [answer.status_code for answer in answers] == [200] * 6
    for thread in threads:
        await client.threads.delete(thread)


async def test_who_begins_to_follow_a_thread_as_its_run_ends_is_told_of_the_end(
    client: LangGraphClient, shared: Shared
) -> None:
    """Here after all that was said before, while the last events are written."""
    thread = (await client.threads.create())["thread_id"]
    slow = """
    CREATE FUNCTION wait_at_the_end() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN PERFORM pg_advisory_xact_lock(77); RETURN NEW; END $$;
    CREATE TRIGGER ends_slowly BEFORE INSERT ON run_events FOR EACH ROW
    WHEN (NEW.events LIKE '%"end",null]%') EXECUTE FUNCTION wait_at_the_end()
    """
    with psycopg.connect(shared.database, autocommit=True) as database:
        database.execute(slow.encode())
        database.execute("SELECT pg_advisory_lock(77)")
        run = await client.runs.create(thread, "echo", input=say("hello"), stream_resumable=True)
        while not database.execute(
            "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        ).fetchall():
            await asyncio.sleep(0.02)
        kept = "SELECT max(seq) FROM run_events WHERE run_id = %s"
        ((since,),) = database.execute(kept, (run["run_id"],)).fetchall()
        with opened(shared.url, thread) as socket:
            ask(socket, "subscription.subscribe", {"channels": ["lifecycle"], "since": since or 0})
            for number in range(10):
                # By then it has looked which runs there are.
                ask(socket, "agent.getTree", {}, number)
            database.execute("SELECT pg_advisory_unlock(77)")
            told: Any = {}
            while told.get("event") != "completed":
                told = json.loads(await asyncio.to_thread(socket.recv, 60))["params"]["data"]
        database.execute("DROP TRIGGER ends_slowly ON run_events; DROP FUNCTION wait_at_the_end")


def holder(shared: Shared, *more: Process) -> Process:
    """Return the worker that lifts."""
    pid = int(shared.lifted.read_text().splitlines()[-1].split()[-1])
    return next(worker for worker in (*shared.workers, *more) if worker.pid == pid)


@pytest.mark.slow
async def test_a_run_goes_on_with_another_worker(client: LangGraphClient, shared: Shared) -> None:
    """What was done is not done again, the tool at work starts again, and a reader misses nothing."""
    shared.lifted.write_text("")
    thread, run, seen = await begin(client, "lifter", "up")
    lost = holder(shared)

    lost.end(signal.SIGKILL)
    parts = [part async for part in client.runs.join_stream(thread, run, last_event_id=seen)]

    values: Any = await client.runs.join(thread, run)
    assert last(values) == "Both are up."
    lines = [line.split()[:2] for line in shared.lifted.read_text().splitlines()]
    assert lines == [["1", "light"], ["1", "heavy"], ["2", "heavy"]]
    assert [part.data for part in parts if part.event == "metadata"] == [{"run_id": run, "attempt": 2}]
    tools = [part.data["tools"] for part in parts if part.event == "updates" and "tools" in part.data]
    assert [each["messages"][0]["content"] for each in tools] == ["lifted heavy"]
    lost.start()


async def test_a_run_whose_worker_does_not_know_that_it_has_it_begins_all_the_same(
    client: LangGraphClient, shared: Shared
) -> None:
    """As when a connection breaks after the commit that gave a worker the run, before its first step."""
    thread = (await client.threads.create())["thread_id"]
    await client.runs.wait(thread, "echo", input=say("before"))
    run = await client.runs.create(thread, "echo", input=say("hello"), after_seconds=3600)

    with psycopg.connect(shared.database) as connection:
        one = "(SELECT max(worker_id) FROM workers)"
        given = f"UPDATE leases SET run_id = %s, worker = {one} WHERE thread_id = %s"
        connection.execute(given, (run["run_id"], thread))
        begun = "UPDATE runs SET status = 'running', attempt = 1, due_at = created_at WHERE run_id = %s"
        connection.execute(begun, (run["run_id"],))

    values: Any = await client.runs.join(thread, run["run_id"])
    contents = [each["content"] for each in values["messages"]]
    assert contents == ["before", "Echo: before", "hello", "Echo: hello"]
    await client.threads.delete(thread)


@pytest.mark.slow
async def test_a_worker_that_slept_cannot_write_over_its_successor(
    client: LangGraphClient, shared: Shared
) -> None:
    shared.lifted.write_text("")
    thread, run, _ = await begin(client, "lifter", "up")
    asleep = holder(shared)
    asleep.signal(signal.SIGSTOP)
    await client.runs.join(thread, run)

    shared.lifted.with_name("go").touch()
    asleep.signal(signal.SIGCONT)
    while "refused" not in shared.lifted.read_text():
        time.sleep(0.05)
    assert asleep.log
    while f"Run {run} goes on elsewhere" not in (log := asleep.log.read_text()):
        time.sleep(0.05)
    assert f"Run {run} begins again" not in log

    values: Any = await client.runs.wait(thread, "echo", input=say("next"))
    contents = [each["content"] for each in values["messages"] if each["content"]]
    assert contents == ["up", "lifted light", "lifted heavy", "Both are up.", "next", "Echo: next"]
    assert len(await client.runs.list(thread)) == 2
    shared.lifted.with_name("go").unlink()


async def test_a_run_goes_on_where_the_database_went_away_as_it_saved(
    client: LangGraphClient, shared: Shared
) -> None:
    """From its last checkpoint, with the same worker."""
    shared.lifted.write_text("")
    thread, run, _ = await begin(client, "lifter", "up")
    cut_off = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"

    # Two, since the first one sees no news within its transaction.
    with (
        psycopg.connect(shared.database) as locking,
        psycopg.connect(shared.database, autocommit=True) as looking,
    ):
        locking.execute("LOCK TABLE checkpoint_writes IN SHARE MODE")
        shared.lifted.with_name("go").touch()
        while not looking.execute(cut_off).fetchall():
            await asyncio.sleep(0.05)

    assert last(await client.runs.join(thread, run)) == "Both are up."
    lines = [line.split() for line in shared.lifted.read_text().splitlines()]
    assert [line[:2] for line in lines] == [["1", "light"], ["1", "heavy"], ["2", "heavy"]]
    assert len({line[-1] for line in lines}) == 1
    shared.lifted.with_name("go").unlink()


@pytest.mark.slow
async def test_a_worker_that_is_asked_to_end_hands_its_runs_over(
    client: LangGraphClient, shared: Shared
) -> None:
    shared.lifted.write_text("")
    thread, run, _ = await begin(client, "lifter", "up")
    ending = holder(shared)

    assert ending.end(signal.SIGTERM) == 0

    assert last(await client.runs.join(thread, run)) == "Both are up."
    ending.start()


@pytest.mark.slow
async def test_a_worker_takes_over_no_more_than_it_has_room_for(shared: Shared, tmp_path: Path) -> None:
    shared.lifted.write_text("")
    options = ("--database", shared.database, "--code-version", "narrow", "--runs", "1")
    narrow = [Process(tmp_path, *options, command="worker", LIFTED=str(shared.lifted)) for _ in range(2)]
    with serving(tmp_path, shared.database, slots=0, version="narrow") as url:
        async with get_client(url=url, api_key=None) as client:
            for worker in narrow:
                worker.start()
            lost = await begin(client, "lifter", "up")
            ending = holder(shared, *narrow)
            kept = await begin(client, "lifter", "up")

            ending.end(signal.SIGKILL)
            while (await client.runs.get(*lost[:2]))["status"] == "running":
                await asyncio.sleep(0.5)
            states = [(await client.runs.get(*run[:2]))["status"] for run in (lost, kept)]
            assert states == ["pending", "running"]

            shared.lifted.with_name("go").touch()
            assert last(await client.runs.join(*kept[:2])) == "Both are up."
            assert last(await client.runs.join(*lost[:2])) == "Both are up."
    for worker in narrow:
        worker.close()
    shared.lifted.with_name("go").unlink()


@pytest.mark.slow
async def test_runs_stay_with_the_version_of_the_code_that_they_began_with(
    client: LangGraphClient, shared: Shared, tmp_path: Path
) -> None:
    """The workers take the runs of their version, and those of a former one when they are told to."""
    with serving(tmp_path, shared.database, slots=0, version="0") as url:
        async with get_client(url=url, api_key=None) as former:
            thread = (await former.threads.create())["thread_id"]
            left = (await former.runs.create(thread, "deep", input=say("hello")))["run_id"]
            await client.runs.wait(None, "deep", input=say("later"))
            assert (await former.runs.get(thread, left))["status"] == "pending"

            mover = Process(tmp_path, "--database", shared.database, "--move-from", "0", command="worker")
            mover.start()
            assert last(await former.runs.join(thread, left)) == "Thirteen metres."
            assert mover.end(signal.SIGTERM) == 0


@pytest.mark.slow
async def test_a_run_that_was_moved_at_work_goes_on_with_the_new_version(
    client: LangGraphClient, shared: Shared, tmp_path: Path
) -> None:
    """A worker moves it too early, while the old one is at work, and that is then killed."""
    shared.lifted.write_text("")
    thread, run, _ = await begin(client, "lifter", "up")
    former, options = holder(shared), ("--code-version", "2", "--move-from", "1")
    later = Process(
        tmp_path, "--database", shared.database, *options, command="worker", LIFTED=str(shared.lifted)
    )
    later.start()

    former.end(signal.SIGKILL)

    assert last(await client.runs.join(thread, run)) == "Both are up."
    assert holder(shared, later) is later
    assert later.end(signal.SIGTERM) == 0
    former.start()
